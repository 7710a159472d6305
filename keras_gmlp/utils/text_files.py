"""Text files in UTF-8, also compressed ones, line by line."""

import os
from pathlib import Path

from keras_gmlp.utils.inputs import TEXTS, list_suffix

LONGEST = 2**24  # bytes of a line


def find_files(files):
    """Returns the paths of text files, given paths, folders or patterns such as `"wiki/*.txt"`."""
    import glob

    paths = []
    for name in [files] if isinstance(files, (str, os.PathLike)) else files:
        path = Path(name)
        found = [path] if path.is_file() else map(Path, glob.glob(str(name), recursive=True))
        found = list_suffix(path, TEXTS) if path.is_dir() else sorted(filter(Path.is_file, found))
        if not found:
            raise ValueError(f"{name}: no such text file; give files or folders with .txt in them.")
        paths += found
    return paths


def read_text(path):
    """Returns the text of a file."""
    return "".join(read_lines(path, keep_ends=True))


def read_lines(path, progress=None, keep_ends=False):
    """Yields the lines of a text file; `progress` gets the number of bytes that are read."""
    import lzma  # here, and glob above: classify.py starts faster without them

    is_packed = Path(path).suffix.lower() == ".xz"
    with open(path, "rb") as stored:
        file = lzma.LZMAFile(stored) if is_packed else stored  # noqa: SIM115 (not its own)
        try:
            for number, line in enumerate(split_lines(file, path)):
                if progress and number % 1000 == 0:
                    progress(stored.tell())
                yield line if keep_ends else line.rstrip("\r\n")
        except (lzma.LZMAError, EOFError) as error:
            raise ValueError(f"{path}: damaged or truncated ({error}).") from None


def split_lines(file, name):
    """Yields the lines of an open file of bytes with their ends."""
    for number, line in enumerate(iter(lambda: file.readline(LONGEST + 1), b""), 1):
        if len(line) > LONGEST:
            raise ValueError(
                f"{name}: line {number:,} has more than {LONGEST:,} bytes; expected lines of text."
            )
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{name}: not UTF-8 in line {number:,}; convert it.") from None
        if "\0" in text:  # as in UTF-16, whose letters would become others
            raise ValueError(
                f"{name}: a NUL character in line {number:,}; save UTF-16 as UTF-8, or remove it."
            )
        yield text
