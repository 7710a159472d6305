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
    with TokenFile(folder / "tokens.npy") as file:
        for lines in _batches(_lines_of(paths, job)):
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


def _batches(lines):
    lines = iter(lines)
    while batch := list(itertools.islice(lines, LINES)):
        yield batch


class TokenFile:
    """Writes a one-dimensional .npy file of uint16; a context manager.

    Args:
        path: The file; its length is known at the end only.
    """

    def __init__(self, path):
        self.path, self.count = path, 0

    def __enter__(self):
        self.file = open(self.path, "wb")
        self._write_header()
        return self

    def write(self, array):
        """Appends a uint16 array."""
        array.tofile(self.file)
        self.count += len(array)

    def __exit__(self, *error):
        try:
            # NumPy leaves room for a larger number: this header is as long as the first one.
            self.file.seek(0)
            self._write_header()
        finally:
            self.file.close()

    def _write_header(self):
        header = {"descr": "<u2", "fortran_order": False, "shape": (self.count,)}
        np.lib.format.write_array_header_1_0(self.file, header)
