"""Classifies texts, or pairs of texts: prints the most probable classes of each."""

import contextlib

from keras_gmlp.programs.shared.cli import Parser, guarded
from keras_gmlp.programs.shared.text_options import (
    MODELS,
    add_model,
    add_texts,
    open_model,
    parse,
    print_bars,
    print_json,
    print_text,
    read_texts,
    report,
    rounded,
)

DEFAULT = MODELS / "gmlp_nano-sst2"

EPILOG = """\
examples:
  apps/classify_text.py "a gem of a film"                   with the included model, of film reviews
  apps/classify_text.py "a gem" "a bore" --top 1            several texts
  apps/classify_text.py --file reviews.txt --json           one line of JSON per line
  grep film notes.txt | apps/classify_text.py -             lines of standard input
  apps/classify_text.py "He left." --pair "He went away." --model runs/gmlp_nano-mrpc

A model that was trained on pairs takes the second text from --pair, or after a tab in a line of a
file. JSON has the keys label and score.

exit codes: 0 all texts classified, 1 a text or the model could not be read, 2 wrong usage,
130 stopped with Ctrl-C
"""


def main(arguments=None):
    parser = Parser(description=__doc__, epilog=EPILOG)
    add_texts(parser, "a text")
    parser.add_argument("--pair", metavar="SECOND", help="the second text of a pair")
    add_model(parser, DEFAULT, what="classes")
    options = parse(parser, arguments)
    options.program = "classify_text"
    if options.pair is not None and (len(options.texts) != 1 or options.file):
        parser.error("--pair takes one text before it; a file holds pairs with a tab between")
    return guarded("classify_text", lambda: classify(options), only_prints=True)


def classify(options):
    model = open_model(options, DEFAULT, "classify")
    with contextlib.suppress(BrokenPipeError):  # stops quietly when the reader, such as head, ends
        for text in read_texts(options):
            first, second = text, options.pair
            if second is None and model.pairs and "\t" in text:
                first, second = text.split("\t", 1)
            try:
                found = model.classify(first, second, options.top)
            except ValueError as error:
                report(options, error)
                options.code = 1
            else:
                show(first, second, found, options.json)
    return options.code


def show(text, pair, found, as_json):
    if as_json:
        second = {} if pair is None else {"pair": pair}
        print_json(text=text, **second, predictions=rounded(found))
        return
    print_text(text if pair is None else f"{text} | {pair}")
    print_bars([entry["label"] for entry in found], [entry["score"] for entry in found])
