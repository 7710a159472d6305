"""Encodes text files into the files of a corpus."""

import numpy as np

from keras_gmlp.data.text.files import read_lines
from keras_gmlp.utils.files import write_json
from keras_gmlp.utils.progress import ProgressBar

LINES, CHARACTERS = 1000, 2**19  # encoded together, at most


def encode_files(paths, tokenizer, folder, job):
    """Writes tokens.npy, starts.npy and corpus.json, which `Corpus` reads."""
    starts, tokens, unknown, words, characters = [0], 0, 0, 0, 0
    with open(folder / "tokens.npy", "wb") as file:
        _write_header(file, 0)  # their number is known at the end only
        for lines in _batches(_lines_of(paths, job)):
            new = []
            for text, ids in zip(lines, tokenizer.encode_plain(lines), strict=True):
                inside = tokens + len(new) > starts[-1]
                if ids:
                    new += [tokenizer.sep_id, *ids] if inside else ids
                elif inside and not text.strip():
                    starts.append(tokens + len(new))
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


def _lines_of(paths, job):
    """Yields the lines of all files, a blank line after each file, and shows a bar."""
    sizes = [path.stat().st_size for path in paths]
    with ProgressBar(job, max(sum(sizes), 1)) as bar:
        for number, path in enumerate(paths):
            before = sum(sizes[:number])
            yield from read_lines(path, lambda done, before=before: bar.show(before + done))
            yield ""


def _batches(lines):
    batch, size = [], 0
    for text in lines:
        batch.append(text)
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
