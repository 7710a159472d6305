"""Shared parts of the programs that use text models: the model, the texts, bars."""

import contextlib
import functools
import json
import sys

from keras_gmlp.programs.shared.cli import ROOT, count, one_line, quiet

MODELS = ROOT / "saved_models"


def add_model(parser, default, top=5, what="words"):
    """Adds the options of all three programs: --model, --top and --json."""
    included = f"default: the included model, {default.parent.name}/{default.name}"
    parser.add_argument(
        "--model",
        default=str(default),
        metavar="MODEL",
        help="a .tflite or .keras file, the folder of a run or the name of an included model; "
        + (included if default.exists() else "required, because none is included"),
    )
    parser.add_argument(
        "--top", type=count, default=top, metavar="N", help=f"number of {what}; default: {top}"
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON per text")


def add_texts(parser, what):
    parser.add_argument("texts", nargs="*", metavar="TEXT", help=f"{what}; - reads standard input")
    parser.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="FILE",
        help="read texts from a file, one a line, in UTF-8",
    )


def add_columns(parser):
    """Adds the options that name parts of labelled texts: --column, --label and --test."""
    parser.add_argument(
        "--column",
        action="append",
        metavar="NAME",
        help="column of the texts; give two for pairs; default: guessed from usual names",
    )
    parser.add_argument("--label", metavar="NAME", help="column of the labels; default: guessed")
    parser.add_argument("--test", metavar="FILE", help="texts, or questions, to test on")


def name_columns(options):
    """Returns the options of `add_columns` as arguments of `load_text`, a dict."""
    columns = {"label": options.label, "test": options.test}
    if options.column:
        columns["text"] = options.column[0] if len(options.column) == 1 else options.column
    return {name: value for name, value in columns.items() if value is not None}


def parse(parser, arguments, program):
    """Returns the options; ends with exit code 2 if they cannot work."""
    options = parser.parse_args(arguments)
    options.code, options.program = 0, program
    if hasattr(options, "file") and not (options.texts or options.file):
        parser.error("give a text, - for standard input, or --file FILE")
    return options


def open_model(options, default, method):
    """Returns the `TextModel` of the options, which has the method."""
    from keras_gmlp.inference import text as text_inference

    if options.model == str(default) and not default.exists():
        raise ValueError(
            f"the included model, {default.parent.name}/{default.name}, is not in this folder; "
            "give --model PATH, such as the folder of a run of apps/train_text.py."
        )
    with quiet():
        model = text_inference.load(options.model, warn=functools.partial(report, options))
    model.require(method)
    return model


def answer_each(options, items, ask, show, misuse=()):
    """Shows what a function finds for each item, or reports why not; returns the exit code."""
    with contextlib.suppress(BrokenPipeError):  # stops quietly when the reader, such as head, ends
        for item in items:
            try:
                found = ask(item)
            except ValueError as error:
                report(options, error)
                options.code = max(options.code, 2 if isinstance(error, misuse) else 1)
            else:
                show(item, found)
    return options.code


def read_texts(options):
    """Yields the texts of the options; those of files and of standard input without empty lines.

    A file without text is reported, and sets `options.code` to 1.
    """
    from keras_gmlp.data.text.files import read_lines

    for text in options.texts:
        if text == "-":
            yield from _number_lines(options, "standard input", _lines_of_input())
        else:
            options.place = None
            yield text
    for path in options.file:
        yield from _number_lines(options, path, read_lines(path))
        if options.place is None:
            report(options, f"{path}: has no text; expected one text a line.")
            options.code = max(options.code, 1)


def _number_lines(options, name, lines):
    """Yields the lines with text; `options.place` is the current one, for `report`."""
    options.place = None
    for number, text in enumerate(lines, 1):
        if text.strip():
            options.place = f"{name}, line {number:,}"
            yield text


def _lines_of_input():
    from keras_gmlp.data.text.files import join_lines, split_pieces

    return join_lines(split_pieces(sys.stdin.buffer, "standard input"), "standard input")


def read_whole(path):
    """Returns the text of a file, or of standard input for `-`."""
    from keras_gmlp.data.text.files import LONGEST

    place = "standard input" if path == "-" else path
    with contextlib.nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as file:
        content = file.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise ValueError(f"{place}: has more than {LONGEST:,} bytes; give a part of the text.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{place}: not UTF-8 at byte {error.start:,}; convert it to UTF-8."
        ) from None


def report(options, message):
    """Prints a line on standard error, with the place of the text that `read_texts` yielded."""
    place = getattr(options, "place", None)
    prefix = f"{options.program}: {place}" if place else options.program
    print(f"{prefix}: {one_line(message)}", file=sys.stderr, flush=True)


def rounded(result):
    """Returns results with scores of six digits."""
    if isinstance(result, list):
        return [rounded(entry) for entry in result]
    return {**result, "score": round(result["score"], 6)}


def print_json(**entries):
    print(json.dumps(entries, ensure_ascii=False), flush=True)


def print_text(text):
    """Prints a text on one line; the texts and words of strangers may hold escape sequences."""
    from keras_gmlp.utils.errors import printable

    print(printable(text))


def print_bars(names, scores):
    """Prints a line for each name: its probability as a number and as a bar."""
    from keras_gmlp.utils.errors import printable

    names = list(map(printable, names))
    width = max(map(len, names))
    for name, score in zip(names, scores, strict=True):
        print(f"  {name:{width}} {100 * score:5.1f} % {'█' * round(30 * score)}".rstrip())
