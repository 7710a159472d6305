#!/usr/bin/env python3
"""Evaluates models of any format on a folder or table of images, or a data set."""

import argparse
import json
import sys
from pathlib import Path

from cli import add_backend, add_data_dir, choose_backend, guarded, load_classifier, quiet

SHOWN = 50  # classes
SCORES = ("precision", "recall", "f1")
COMPARED = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced",
    "calibration_error": "calibration error",
    "rejected": "rejected",
    "agreement": "agreement",
}
EPILOG = """\
The first model gets the full report, the others a row in a table. Classes are matched by name;
images of a class that a model does not know are left out.

--out writes report.json, with all models, and for the first one predictions.csv, confusion.png,
errors.png (the wrong predictions with the highest probability) and reliability.png (how often
predictions of a probability are right).

examples:
  apps/evaluate.py runs/gmlp_n4_32-photos --data photos/
  apps/evaluate.py model.keras model.tflite model.onnx --data photos/ --out evaluation
  apps/evaluate.py saved_models/gmlp_n4_32-cifar10 --data new_photos/ --split all

exit codes: 0 done, 1 failure, 2 wrong usage, 130 stopped with Ctrl-C
"""


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help="a .tflite, .keras or .onnx file, a folder (SavedModel or run), or published weights "
        "(a file or hf-hub:NAME)",
    )
    parser.add_argument(
        "--data",
        required=True,
        metavar="PATH|NAME",
        help="a folder with a folder of images for each class, a table (.csv, .tsv) with the "
        "columns path and label, or a data set by name",
    )
    parser.add_argument(
        "--split",
        choices=("test", "train", "validation", "all"),
        default="test",
        help="the images that apps/train.py holds out (the split test, else every fifth image of a "
        "class), those it trains on, those for validation (the split validation, or held out by "
        "the first model's run), or all; default: test",
    )
    parser.add_argument(
        "--groups",
        metavar="REGEX",
        help="the groups by which apps/train.py held images out; default: those of the run",
    )
    parser.add_argument("--out", metavar="DIR", help="folder for the report and the pictures")
    parser.add_argument("--csv", metavar="FILE", help="file for the first model's predictions")
    add_data_dir(parser)
    add_backend(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args(arguments)
    choose_backend(options)
    return options


def main(arguments=None):
    options = parse(arguments)
    return guarded("evaluate", lambda: run(options))


def run(options):
    # Imported here, so that --help is fast.
    from keras_gmlp import evaluation
    from keras_gmlp.data.recorded import recorded_division
    from keras_gmlp.utils.files import read_json

    if options.csv and Path(options.csv).is_dir():
        raise ValueError(f"--csv {options.csv}: a folder; expected a file to write.")
    recipe = read_json(Path(options.models[0], "recipe.json"), {})  # if it is a run
    recipe = recipe if isinstance(recipe, dict) else {}
    division = recorded_division(recipe, options.data, options.groups)
    images = evaluation.LabelledImages(options.data, options.split, options.data_dir, **division)
    classifiers = [load_classifier(model) for model in options.models]
    if options.out:  # here, so that a useless path fails before the work
        Path(options.out).mkdir(parents=True, exist_ok=True)
    results, errors = zip(*evaluation.evaluate(classifiers, images), strict=True)
    report = evaluation.report(options.models, results, images)
    if len(classifiers) > 1:
        with quiet():  # the notes of TensorFlow, if this is the first import of Keras
            from keras_gmlp.export.verify import measure_latencies
        seconds = measure_latencies(dict(enumerate(classifiers)), repeats=20)
        for i, row in enumerate(report["models"]):
            row["latency_ms"] = round(1000 * seconds[i], 3)
    if options.csv:
        evaluation.write_predictions(options.csv, results[0])
    if options.out:
        with quiet():
            evaluation.write_report(options.out, report, results[0], errors[0])
    if options.json:
        print(json.dumps(report))
    else:
        show(report, images.total)
    return 0


def show(report, total):
    from keras_gmlp.utils.errors import first_of, printable

    first, *others = report["models"]
    print(f"{printable(first['model'])} on {printable(report['data'])}")
    print(f"images            {first['images']:,} of {total:,} (--split {report['split']})")
    for key, note in (("unknown_classes", "images left out"), ("missing_classes", "no images")):
        if report[key]:
            print(f"{spaced(key)}{first_of([*map(printable, report[key])], 10)} ({note})")
    for key in ("accuracy", "top5_accuracy", "balanced_accuracy", "calibration_error", "rejected"):
        if key in first:
            print(f"{spaced(key)}{percent(first[key])}")
    print(f"{spaced('log_likelihood')}{first['log_likelihood']:8.4f}")
    classes, title = first["classes"], "class"
    if len(classes) > SHOWN:
        classes = sorted(classes, key=lambda row: row["f1"])[:SHOWN]
        title = f"{SHOWN} lowest F1"
    head = (title, "precision", "recall", "F1", "images")
    show_table(head, [(*cells(row, "label", SCORES), f"{row['images']:,}") for row in classes])
    if others:
        rows = first, *others
        compared = [key for key in COMPARED if any(key in row for row in rows)]
        head = ("model", *map(COMPARED.get, compared), "ms per image")
        show_table(head, [(*cells(r, "model", compared), f"{r['latency_ms']:.3f}") for r in rows])


def show_table(head, rows):
    """Prints rows of texts in columns."""
    first, *widths = (max(map(len, column)) for column in zip(head, *rows, strict=True))
    print()
    for name, *texts in (head, *rows):
        aligned = (f"{text:>{width}}" for text, width in zip(texts, widths, strict=True))
        print("  ".join((f"{name:{first}}", *aligned)))


def cells(row, name, shares):
    from keras_gmlp.utils.errors import printable

    return printable(row[name]), *(percent(row[key]) if key in row else "" for key in shares)


def spaced(key):
    return f"{key.replace('_', ' ').replace('top5', 'top-5'):18}"


def percent(share):
    return f"{100 * share:6.2f} %"


if __name__ == "__main__":
    sys.exit(main())
