"""Encodes text files into the files of a corpus, piece by piece."""

import itertools

import numpy as np

from keras_gmlp.data.text.files import read_lines
from keras_gmlp.utils.files import write_json
from keras_gmlp.utils.progress import ProgressBar

LINES = 1000  # encoded together


def encode_files(paths, tokenizer, folder, job):
    """Writes tokens.npy, starts.npy and corpus.json, which `Corpus` reads."""
    starts, tokens, unknown, words, characters = [0], 0, 0, 0, 0
    with open(folder / "tokens.npy", "wb") as file:
        _write_header(file, 0)  # their number is known at the end only
        every_line = _lines_of(paths, job)
        while lines := list(itertools.islice(every_line, LINES)):
            new = []
            for line, ids in zip(lines, tokenizer.encode_plain(lines), strict=True):
                inside = tokens + len(new) > starts[-1]
                if ids:
                    new += [tokenizer.sep_id, *ids] if inside else ids
                elif inside and not line.strip():
                    starts.append(tokens + len(new))
                words += len(line.split())
                characters += len(line)
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
    """Yields the lines of all files, a blank one after each file, and shows a bar."""
    sizes = [path.stat().st_size for path in paths]
    with ProgressBar(job, max(sum(sizes), 1)) as bar:
        for number, path in enumerate(paths):
            before = sum(sizes[:number])
            yield from read_lines(path, lambda done, before=before: bar.show(before + done))
            yield ""


def _write_header(file, tokens):
    # NumPy leaves room for a larger number: all headers are equally long.
    header = {"descr": "<u2", "fortran_order": False, "shape": (tokens,)}
    np.lib.format.write_array_header_1_0(file, header)
