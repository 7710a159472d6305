"""How programs read and print texts."""

import json
import sys

from keras_gmlp.programs.shared.cli import fail
from keras_gmlp.utils.errors import printable, shortened

SHOWN = 400  # characters of a text

COLUMNS = """\
--column NAME*  column of the texts; give two for pairs; default: text
--label NAME  column of the labels, with | between several; default: label
--test FILE  texts to test on
"""


def read_texts(options, texts):
    """Yields texts and those of --file, without empty lines."""
    from keras_gmlp.utils.text_files import read_lines, split_lines

    for text in texts:
        if text == "-":
            name = "standard input"
            yield from _number_lines(options, name, split_lines(sys.stdin.buffer, name))
        else:
            options.place = None
            yield text
    for path in options.file:
        yield from _number_lines(options, path, read_lines(path))
        if options.place is None:
            fail(options, f"{path}: has no text; expected one text a line.")


def _number_lines(options, name, lines):
    """Yields the lines with text; `options.place` is the current one, for `fail`."""
    options.place = None
    for number, text in enumerate(lines, 1):
        if text.strip():
            options.place = f"{name}, line {number:,}"
            yield text.rstrip("\r\n")


def print_json(**entries):
    # The names of files may hold what is not UTF-8.
    print(json.dumps(entries, ensure_ascii="file" in entries), flush=True)


def print_text(*texts):
    """Prints texts on one line, cut; those of strangers may be long or hold escape sequences."""
    print(" | ".join(printable(shortened(text, SHOWN)) for text in texts if text is not None))
