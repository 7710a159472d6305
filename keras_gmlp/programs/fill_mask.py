"""Fills in [MASK]: prints the most probable words for each mask of a text."""

import functools

from keras_gmlp.programs.shared import cli
from keras_gmlp.programs.shared import text_options as shared
from keras_gmlp.utils.sources import DEFAULT_LANGUAGE_MODEL

USAGE = """\
texts TEXT*  a text with [MASK], in capitals; - reads standard input
--file FILE*  read texts from a file, one a line, in UTF-8
--model MODEL  a .tflite or .keras file, the folder of a run or the name of an included model;
    default: the included amlp_nano-wiki
--top N:count=5  number of words
--json  print one line of JSON per text
--pieces  offer parts of words and punctuation, too

examples:
  apps/fill_mask.py "Paris is the [MASK] of France."        with the included model
  apps/fill_mask.py "The [MASK] ate a [MASK]." --top 3      words for each mask
  apps/fill_mask.py --file sentences.txt --json             one line of JSON per line
  apps/fill_mask.py "Paris is the [MASK] of France." --model runs/gmlp_nano-text

A mask stands for one word. With --pieces it may also be punctuation or a part of a word: ## joins
the word before it. JSON has the keys score, token, token_str and sequence; a text with several
masks has a list of them for each.
"""


def fill(options):
    warn = functools.partial(cli.fail, options, code=0)
    model = cli.load_model(options.model or DEFAULT_LANGUAGE_MODEL, domain="texts", warn=warn)
    model.require("fill_mask")

    def ask(text):
        return model.fill_mask(text, options.top, options.pieces)

    def show(text, found):
        if options.json:
            shared.print_json(text=text, predictions=found)
            return
        shared.print_text(text)
        several = isinstance(found[0], list)
        for number, entries in enumerate(found if several else [found], 1):
            if several:
                print(f"  [MASK] {number}")
            cli.print_bars([e["token_str"] for e in entries], [e["score"] for e in entries])

    cli.show_each(options, shared.read_texts(options, options.texts), ask, show)


def check(options):
    if not (options.texts or options.file):
        raise ValueError("give a text, - for standard input, or --file FILE")


main = cli.Program("fill_mask", __doc__, USAGE, fill, check)
