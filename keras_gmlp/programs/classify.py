"""Classifies images or texts: prints the most probable classes, or all labels that apply."""

import functools
import os

from keras_gmlp.programs.shared import cli
from keras_gmlp.programs.shared import text_options as texts
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.utils.errors import printable

UNKNOWN = "not one of the classes I know"

USAGE = """\
inputs IMAGE|FOLDER|TEXT*  image files, or folders with all their images; for a text model texts, of
    which - reads standard input
--file FILE*  texts of a file, one a line, in UTF-8
--pair SECOND  the second text of a pair
--model MODEL  a .tflite, .keras or .onnx file, a folder (SavedModel or run), the name of an
    included model, or published weights (a file or hf://NAME); it decides whether the inputs are
    images or texts; default: the included gmlp_photo_64, which knows 200 everyday classes
--head FILE  a classifier that the tab Teach of the web page learned, classifier.json; --model is
    the model that it learned with: its folder or its .tflite file with features
--top N:count=5  classes per image or text
--json  print one line of JSON per image or text

A model that apps/calibrate.py calibrated rejects pictures, or texts, of other classes.

examples:
  apps/classify.py cat.jpg                        with the included gmlp_photo_64, 200 classes
  apps/classify.py photos/ --top 1                all images in a folder
  apps/classify.py cat.jpg --json                 one line of JSON per image
  apps/classify.py 7.png --model runs/gmlp_n4_32-digits
  apps/classify.py cat.jpg --model gmlp_conv_n4_32-cifar10   another included model, ten classes
  apps/classify.py cat.jpg --model hf://timm/gmlp_s16_224.ra3_in1k
  apps/classify.py rose.jpg --head classifier.json           classes that the page learned
  apps/classify.py "a gem of a film" --model amlp_nano-sst2  an included model of film reviews
  apps/classify.py --file reviews.txt --model amlp_nano-sst2 --json
  grep film notes.txt | apps/classify.py - --model amlp_nano-sst2
  apps/classify.py "He left." --pair "He went away." --model runs/gmlp_nano-mrpc

A model that was trained on several labels per image or text prints those that reach their
thresholds; --json says of each label whether it applies. --top is for other models.
A model that was trained on pairs of texts takes the second text from --pair, or after a tab in a
line of a file. JSON has a label and its score, a probability, for each class, and of a calibrated
model whether the input is known.
"""


def classify(options):
    warn = functools.partial(cli.fail, options, code=0)
    model = cli.load_model(options.model, features=bool(options.head), warn=warn)
    if find_task(model.task).domain == "texts":
        classify_texts(options, model.require("classify"))
    else:
        classify_images(options, model)


def classify_images(options, model):
    if options.file or options.pair is not None:
        raise ValueError("--file and --pair are for texts; give a --model of texts")
    if options.head:
        from keras_gmlp.inference.page_head import add_head

        model = add_head(model, options.head)
    top = len(model.labels) if find_task(model.task).several else options.top
    cli.show_each(
        options,
        list_images(options),
        lambda path: model.answer(path, top),
        lambda path, rows: show({"file": str(path)}, rows, options.json and model.labels),
    )


def list_images(options):
    """Yields the image files that are given, and those in folders."""
    from keras_gmlp.data.images.find_images import find_images  # here, so that --help is fast

    for given in options.inputs:
        try:
            yield from find_images(given)
        except ValueError as error:
            cli.fail(options, error)


def classify_texts(options, model):
    if files := [each for each in options.inputs if os.path.isfile(each)]:
        raise ValueError(f"{printable(files[0])} is a file; {model.path} takes texts, or --file")

    def pair_up(text):
        if options.pair is None and model.pairs and "\t" in text:
            return dict(zip(("text", "pair"), text.split("\t", 1), strict=True))
        return {"text": text} | ({} if options.pair is None else {"pair": options.pair})

    top = None if find_task(model.task).several else options.top
    cli.show_each(
        options,
        map(pair_up, texts.read_texts(options, options.inputs)),
        lambda sample: model.classify(**sample, top=top),
        lambda sample, rows: show(sample, rows, options.json and model.labels),
    )


def show(sample, rows, labels):
    """Prints the classes of an image or a text; as JSON, with the names in `labels`."""
    if labels:
        for row in rows:
            row["label"] = labels[row.pop("index")]
        texts.print_json(**sample, predictions=rows)
        return
    if "file" in sample:
        print(printable(sample["file"]))
    else:
        texts.print_text(*sample.values())
    applying = [row for row in rows if row.get("applies", True)]
    if not applying:
        print("  no label")
    elif rows[0].get("known", True):
        cli.print_bars([row["label"] for row in applying], [row["score"] for row in applying])
    else:
        print(f"  {UNKNOWN}")


def check(options):
    if not (options.inputs or options.file):
        raise ValueError("give an image, a folder or a text")
    if options.pair is not None and (len(options.inputs) != 1 or options.file):
        raise ValueError("--pair takes one text before it; a file holds pairs with a tab between")


main = cli.Program("classify", __doc__, USAGE, classify, check)
