"""Lines of text files, also compressed ones."""

import contextlib
import glob
import lzma
import os
from pathlib import Path

from keras_gmlp.utils.errors import refuse_nul
from keras_gmlp.utils.files import why_missing
from keras_gmlp.utils.inputs import TEXTS, list_suffix

LONGEST = 2**24  # bytes of a line


def find_files(files):
    """Returns the paths of text files."""
    files = [files] if isinstance(files, (str, os.PathLike)) else files
    paths = [path for name in files for path in _find_matches(os.fspath(name))]
    if not paths:
        raise ValueError("received no text files; name at least one, .txt or .txt.xz.")
    return paths


def _find_matches(name):
    path, found = Path(name), []
    if not name:  # an unset shell variable, not the current folder
        name, reason = "''", "an empty path"
    elif path.is_dir():
        found, reason = list_suffix(path, TEXTS), "the folder has no .txt or .txt.xz files"
    elif path.exists() and not path.is_file():
        reason = "not a file but a device or a pipe"
    else:
        found = [path] if path.exists() else map(Path, glob.glob(name, recursive=True))
        found, reason = [file for file in found if file.is_file()], why_missing(path, "file")
    if not found:
        raise ValueError(f"{name}: {reason}; give text files in UTF-8.")
    return sorted(found)


def read_lines(path, progress=None):
    """Yields the lines of a text file without their ends."""
    path = Path(path)
    with open(path, "rb") as stored, contextlib.ExitStack() as stack:
        packed = path.suffix.lower() == ".xz"
        file = stack.enter_context(lzma.open(stored)) if packed else stored
        try:
            for number, line in enumerate(split_lines(file, path)):
                if progress and number % 1000 == 0:
                    progress(stored.tell())
                yield line
        except (lzma.LZMAError, EOFError) as error:
            raise ValueError(
                f"{path}: damaged or truncated ({error}); compress it again."
            ) from None


def split_lines(file, name):
    """Yields the lines of an open file of bytes without their ends."""
    for number, line in enumerate(iter(lambda: file.readline(LONGEST + 1), b""), 1):
        if len(line) > LONGEST:
            raise ValueError(
                f"{name}: line {number:,} has more than {LONGEST:,} bytes; expected lines of text."
            )
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{name}: not UTF-8 in line {number:,}; convert it.") from None
        refuse_nul(text, name, number)
        yield text.rstrip("\r\n")
