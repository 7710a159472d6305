"""Fills in [MASK]: prints the most probable words for each mask of a text."""

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

DEFAULT = MODELS / "amlp_nano-wiki"

EPILOG = """\
examples:
  apps/fill_mask.py "Paris is the [MASK] of France."        with the included model
  apps/fill_mask.py "The [MASK] ate a [MASK]." --top 3      words for each mask
  apps/fill_mask.py --file sentences.txt --json             one line of JSON per line
  apps/fill_mask.py "Paris is the [MASK] of France." --model runs/gmlp_nano-text

A mask stands for one word, or a part of one: ## joins the word before it. JSON has the keys score,
token, token_str and sequence; a text with several masks has a list of them for each.

exit codes: 0 done, 1 a text or the model could not be read, 2 wrong usage or a text without [MASK],
130 stopped with Ctrl-C
"""


def main(arguments=None):
    parser = Parser(description=__doc__, epilog=EPILOG)
    add_texts(parser, "a text with [MASK], in capitals")
    add_model(parser, DEFAULT)
    options = parse(parser, arguments)
    options.program = "fill_mask"
    return guarded("fill_mask", lambda: fill(options), only_prints=True)


def fill(options):
    # Imported here, so that --help is fast.
    from keras_gmlp.tasks.masked_lm import NoMaskError

    model = open_model(options, DEFAULT, "fill_mask")
    with contextlib.suppress(BrokenPipeError):  # stops quietly when the reader, such as head, ends
        for text in read_texts(options):
            try:
                found = model.fill_mask(text, options.top)
            except ValueError as error:
                report(options, error)
                options.code = max(options.code, 2 if isinstance(error, NoMaskError) else 1)
            else:
                show(text, found, options.json)
    return options.code


def show(text, found, as_json):
    if as_json:
        print_json(text=text, predictions=rounded(found))
        return
    print_text(text)
    several = isinstance(found[0], list)
    for number, entries in enumerate(found if several else [found], 1):
        if several:
            print(f"  [MASK] {number}")
        print_bars([e["token_str"] for e in entries], [e["score"] for e in entries])
