"""Classifies images: prints the most probable classes of each, or all labels that apply."""

import json

from keras_gmlp.programs.shared import cli
from keras_gmlp.utils.errors import printable

UNKNOWN = "not one of the classes I know"

USAGE = """\
images IMAGE|FOLDER+  image files, or folders with all their images
--model MODEL  a .tflite, .keras or .onnx file, a folder (SavedModel or run), the name of an
    included model, or published weights (a file or hf-hub:NAME); default: the included
    gmlp_photo_64, which knows 200 everyday classes
--head FILE  a classifier that the tab Teach of the web page learned, classifier.json; --model is
    the model that it learned with: its folder or its .tflite file with features
--top N:count=5  classes per image
--json  print one line of JSON per image

A model that apps/calibrate.py calibrated rejects pictures of other classes.

examples:
  apps/classify.py cat.jpg                        with the included gmlp_photo_64, 200 classes
  apps/classify.py photos/ --top 1                all images in a folder
  apps/classify.py cat.jpg --json                 one line of JSON per image
  apps/classify.py 7.png --model runs/gmlp_n4_32-digits
  apps/classify.py cat.jpg --model gmlp_conv_n4_32-cifar10   another included model, ten classes
  apps/classify.py cat.jpg --model hf-hub:timm/gmlp_s16_224.ra3_in1k
  apps/classify.py rose.jpg --head classifier.json           classes that the page learned

A model that was trained on several labels per image prints those that reach their thresholds;
--json prints the probability of each label and whether it applies. --top is for other models.

exit codes: 0 all images classified, 1 an image or the model could not be read, 2 wrong usage,
130 stopped with Ctrl-C
"""


def classify(options):
    classifier = cli.load_classifier(options.model, features=bool(options.head))
    if options.head:
        from keras_gmlp.inference.page_head import add_head

        classifier = add_head(classifier, options.head)
    cli.answer_each(
        options,
        list_images(options),
        lambda path: predict(classifier, path, options.top),
        lambda path, answer: show(path, answer, classifier, options.json),
    )


def list_images(options):
    """Yields the image files that are given, and those in folders."""
    from keras_gmlp.data.images.find_images import find_images  # here, so that --help is fast

    for given in options.images:
        try:
            yield from find_images(given)
        except ValueError as error:
            cli.fail(options, error)


def predict(classifier, path, top):
    """Returns the `Answer` for an image, of a model of several labels with all of them."""
    return classifier.answer(path, top if classifier.thresholds is None else len(classifier.labels))


def show(path, answer, classifier, as_json):
    rows, thresholds = [], classifier.thresholds
    for index, (name, probability) in zip(answer.classes, answer.predictions, strict=True):
        row = {"label": classifier.labels[index] if as_json else name}
        row["probability"] = round(probability, 6)
        if thresholds is not None:
            row["applies"] = probability >= thresholds[index]
        rows.append(row)
    if as_json:
        known = {} if answer.known is None else {"known": answer.known}
        print(json.dumps({"file": str(path), "predictions": rows, **known}), flush=True)
        return
    print(printable(path))
    if answer.known is False:
        print(f"  {UNKNOWN}")
        return
    shown = [(row["label"], row["probability"]) for row in rows if row.get("applies", True)]
    if shown:
        cli.print_bars(*zip(*shown, strict=True))
    else:
        print("  no label")


main = cli.Program("classify", __doc__, USAGE, classify, only_prints=True)
