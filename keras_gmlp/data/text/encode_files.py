"""Encodes text files into the files of a corpus, piece by piece."""

import numpy as np

from keras_gmlp.data.text.files import read_pieces
from keras_gmlp.utils.files import write_json
from keras_gmlp.utils.progress import ProgressBar

LINES, CHARACTERS = 1000, 2**19  # encoded together, at most


def encode_files(paths, tokenizer, folder, job):
    """Writes tokens.npy, starts.npy and corpus.json, which `Corpus` reads."""
    starts, tokens, unknown, words, characters = [0], 0, 0, 0, 0
    fresh, blank = True, True  # whether a line begins here, and whether it has had no text so far
    with open(folder / "tokens.npy", "wb") as file:
        _write_header(file, 0)  # their number is known at the end only
        for pieces in _batches(_pieces_of(paths, job)):
            new = []
            encoded = tokenizer.encode_plain([text for text, _ in pieces])
            for (text, ends), ids in zip(pieces, encoded, strict=True):
                inside = tokens + len(new) > starts[-1]
                if ids:
                    new += [tokenizer.sep_id, *ids] if inside and fresh else ids
                    fresh = False
                blank = blank and not text.strip()
                if ends:
                    if inside and blank:
                        starts.append(tokens + len(new))
                    fresh, blank = True, True
                words += len(text.split())
                characters += len(text)
            array = np.array(new, "uint16")
            file.write(array)
            tokens += len(array)
            unknown += int(np.count_nonzero(array == tokenizer.unk_id))
        file.seek(0)
        _write_header(file, tokens)
    if not tokens:
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        raise ValueError(f"{paths[0]}{more}: no text; expected a paragraph a line.")
    if tokens > starts[-1]:
        starts.append(tokens)
    np.save(folder / "starts.npy", np.array(starts, "int64"))
    info = {
        "tokenizer": tokenizer.hash,
        "vocabulary_size": tokenizer.size,
        "special_ids": list(tokenizer.special_ids),
        "tokens": tokens,
        "documents": len(starts) - 1,
        "words": words,
        "characters": characters,
        "unknown": unknown,
        "files": [path.name for path in paths],
    }
    write_json(folder / "corpus.json", info)


def _pieces_of(paths, job):
    """Yields the pieces of lines of all files, a blank line after each file, and shows a bar."""
    sizes = [path.stat().st_size for path in paths]
    with ProgressBar(job, max(sum(sizes), 1)) as bar:
        for number, path in enumerate(paths):
            before = sum(sizes[:number])
            yield from read_pieces(path, lambda done, before=before: bar.show(before + done))
            yield "", True


def _batches(pieces):
    batch, size = [], 0
    for text, ends in pieces:
        text = text.rstrip("\r\n") if ends else text
        batch.append((text, ends))
        size += len(text)
        if len(batch) >= LINES or size >= CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _write_header(file, tokens):
    # NumPy leaves room for a larger number: all headers are equally long.
    header = {"descr": "<u2", "fortran_order": False, "shape": (tokens,)}
    np.lib.format.write_array_header_1_0(file, header)
