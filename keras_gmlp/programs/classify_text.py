"""Classifies texts, or pairs of texts: prints the most probable classes of each."""

from keras_gmlp.programs.shared import text_options as shared
from keras_gmlp.programs.shared.cli import UsageError, answer_each, print_bars

DEFAULT = shared.MODELS / "amlp_nano-sst2"

USAGE = """\
texts TEXT*  a text; - reads standard input
--file FILE*  read texts from a file, one a line, in UTF-8
--pair SECOND  the second text of a pair
--model MODEL
--top N:count=5  number of classes
--json  print one line of JSON per text

examples:
  apps/classify_text.py "a gem of a film"                   with the included model, of film reviews
  apps/classify_text.py "a gem" "a bore" --top 1            several texts
  apps/classify_text.py --file reviews.txt --json           one line of JSON per line
  grep film notes.txt | apps/classify_text.py -             lines of standard input
  apps/classify_text.py "He left." --pair "He went away." --model runs/gmlp_nano-mrpc

A model that was trained on pairs takes the second text from --pair, or after a tab in a line of a
file. JSON has the keys label and score, and known if apps/calibrate.py calibrated the model to
reject texts.

exit codes: 0 all texts classified, 1 a text or the model could not be read, 2 wrong usage,
130 stopped with Ctrl-C
"""


def classify(options):
    model = shared.open_model(options, DEFAULT, "classify")

    def pair_up(text):
        if options.pair is None and model.pairs and "\t" in text:
            return text.split("\t", 1)
        return text, options.pair

    items = map(pair_up, shared.read_texts(options))
    answer_each(
        options,
        items,
        lambda texts: model.classify(*texts, options.top),
        lambda texts, found: show(*texts, found, options.json and model.labels),
    )


def show(text, pair, found, labels):
    if labels:  # as JSON, with the names of labels.txt
        for row in found:
            row["label"] = labels[row.pop("index")]
        second = {} if pair is None else {"pair": pair}
        shared.print_json(text=text, **second, predictions=shared.rounded(found))
        return
    shared.print_text(text, pair)
    if not found[0].get("known", True):
        print("  unknown: unlike the texts that the model was calibrated on")
        return
    print_bars([entry["label"] for entry in found], [entry["score"] for entry in found])


def check(options):
    shared.check(options)
    if options.pair is not None and (len(options.texts) != 1 or options.file):
        raise UsageError("--pair takes one text before it; a file holds pairs with a tab between")


main = shared.make_program("classify_text", __doc__, USAGE, classify, DEFAULT, check)
