"""Shared parts of the programs that use text models: the model and the texts."""

import functools
import json
import sys

from keras_gmlp.programs.shared.cli import Program, UsageError, fail, quiet
from keras_gmlp.programs.shared.messages import ROOT
from keras_gmlp.utils.errors import cut, printable

MODELS = ROOT / "saved_models"
SHOWN = 400  # characters of a text

COLUMNS = """\
--column NAME*  column of the texts; give two for pairs; default: guessed from usual names
--label NAME  column of the labels; default: guessed
--test FILE  texts to test on
"""


def make_program(name, description, usage, run, default, check=None):
    """Returns a program that prints what a text model answers, by default an included model."""
    included = f"default: the included model, {default.parent.name}/{default.name}"
    included = included if default.exists() else "required, because none is included"
    text = "a .tflite or .keras file, the folder of a run or the name of an included model; "
    model = {"help": text + included}
    return Program(name, description, usage, run, check, only_prints=True, model=model)


def check(options):
    """Raises a `UsageError` if no text is given."""
    if not (options.texts or options.file):
        raise UsageError("give a text, - for standard input, or --file FILE")


def open_model(options, default, method):
    """Returns the `TextModel` of the options, which has the method."""
    from keras_gmlp.inference import text as text_inference

    if options.model is None and not default.exists():
        raise ValueError(
            f"there is no included model {default.parent.name}/{default.name} in this folder; "
            "give --model PATH, such as the folder of a run of apps/train_text.py."
        )
    with quiet():
        warn = functools.partial(fail, options, code=0)
        chosen = default if options.model is None else options.model
        model = text_inference.load(chosen, warn=warn)
    model.require(method)
    return model


def read_texts(options):
    """Yields the texts of the options, without empty lines; reports a file without text."""
    from keras_gmlp.data.text.files import read_lines, split_lines

    for text in options.texts:
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
            yield text


def rounded(result):
    """Returns results with scores of six digits."""
    if isinstance(result, list):
        return [rounded(entry) for entry in result]
    return {**result, "score": round(result["score"], 6)}


def print_json(**entries):
    print(json.dumps(entries, ensure_ascii=False), flush=True)


def print_text(*texts):
    """Prints texts on one line, cut; those of strangers may be long or hold escape sequences."""
    print(" | ".join(printable(cut(text, SHOWN)) for text in texts if text is not None))
