"""Lines of text files, also compressed ones."""

import codecs
import contextlib
import glob
import itertools
import lzma
import os
from pathlib import Path

from keras_gmlp.utils.errors import refuse_nul
from keras_gmlp.utils.files import why_missing
from keras_gmlp.utils.inputs import TEXTS, list_suffix

PIECE = 2**14  # characters of a line that are tokenized at a time
LONGEST = 2**24  # characters of a line that is read whole
BOMB = 2**28  # bytes of an .xz file from which on its ratio counts


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


def read_lines(path):
    """Yields the lines of a text file without their ends."""
    yield from join_lines(read_pieces(path), path)


def join_lines(pieces, name):
    """Yields whole lines of pieces; raises a `ValueError` for one that is too long."""
    parts, size, number = [], 0, 1
    for piece, ends in pieces:
        parts.append(piece)
        size += len(piece)
        if size > LONGEST:
            raise ValueError(
                f"{name}: line {number:,} has more than {LONGEST:,} characters; expected lines of "
                "text."
            )
        if ends:
            yield "".join(parts).rstrip("\r\n")
            parts, size, number = [], 0, number + 1


def read_pieces(path, progress=None):
    """Yields `(piece, ends)` for a text file: a line or a part of a long one, and if it ends it."""
    path = Path(path)
    with open(path, "rb") as stored, contextlib.ExitStack() as stack:
        packed = path.suffix.lower() == ".xz"
        file = stack.enter_context(lzma.open(stored)) if packed else stored

        def look():
            if packed and file.tell() > max(BOMB, 1000 * stored.tell()):
                raise ValueError(
                    f"{path}: unpacks to more than a thousand times its size; unpack it first if "
                    "it is text."
                )
            if progress:
                progress(stored.tell())

        try:
            yield from split_pieces(file, path, look)
        except (lzma.LZMAError, EOFError) as error:
            raise ValueError(
                f"{path}: damaged or truncated ({error}); compress it again."
            ) from None


def split_pieces(file, name, look=lambda: None):
    """Yields the pieces of an open file of bytes; see `read_pieces`."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    position, held, lines = 0, "", 1
    for number in itertools.count():
        line = file.readline(PIECE)
        ends, waiting = line.endswith(b"\n"), len(decoder.getstate()[0])
        try:
            text = decoder.decode(line, final=ends or not line)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}: not UTF-8 at byte {position - waiting + error.start:,}; convert it to "
                "UTF-8."
            ) from None
        refuse_nul(text, name, lines)
        if position == 0:
            text = text.removeprefix("\ufeff")
        position += len(line)
        lines += ends
        if ends:
            yield held + text, True
            held = ""
        elif line:
            *whole, held = cut_text(held + text)
            yield from ((piece, False) for piece in whole)
        else:
            if held or text:
                yield held + text, True
            return
        if number % 1000 == 0:
            look()


def cut_text(text):
    """Yields a long text in pieces, cut at a space where there is one."""
    start = 0
    while len(text) - start > PIECE:
        space = text.rfind(" ", start, start + PIECE)
        stop = space + 1 if space > start else start + PIECE
        yield text[start:stop]
        start = stop
    yield text[start:]
