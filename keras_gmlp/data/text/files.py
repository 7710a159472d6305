"""Lines of text files, also compressed ones."""

import contextlib
import glob
import lzma
import os
from pathlib import Path

from keras_gmlp.utils.inputs import TEXTS, list_suffix


def find_files(files):
    """Returns the paths of text files."""
    if isinstance(files, (str, os.PathLike)):
        files = [files]
    paths = [path for name in files for path in _matches(os.fspath(name))]
    if not paths:
        raise ValueError("received no text files; name at least one, .txt or .txt.xz.")
    return paths


def _matches(name):
    if not name:  # an unset shell variable, not the current folder
        raise ValueError("'': an empty path; give text files in UTF-8.")
    path = Path(name)
    if path.is_dir():
        found = list_suffix(path, TEXTS)
        expected = "the folder has no .txt or .txt.xz files"
    elif path.exists():
        return [path]
    else:
        found = map(Path, glob.glob(name, recursive=True))
        found = [file for file in found if file.is_file()]
        expected = "no such file"
    if not found:
        raise ValueError(f"{name}: {expected}; give text files in UTF-8.")
    return sorted(found)


def read_lines(path, progress=None):
    """Yields the lines of a text file without their ends."""
    path, position = Path(path), 0
    with open(path, "rb") as stored, contextlib.ExitStack() as stack:
        packed = path.suffix.lower() == ".xz"
        file = stack.enter_context(lzma.open(stored)) if packed else stored
        try:
            for number, line in enumerate(file):
                text = line.decode()
                yield (text if number else text.removeprefix("\ufeff")).rstrip("\r\n")
                position += len(line)
                if progress and number % 1000 == 0:
                    progress(stored.tell())
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}: not UTF-8 at byte {position + error.start:,}; convert it to UTF-8."
            ) from None
        except (lzma.LZMAError, EOFError) as error:
            raise ValueError(
                f"{path}: damaged or truncated ({error}); compress it again."
            ) from None
