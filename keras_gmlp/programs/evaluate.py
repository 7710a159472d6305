"""Evaluates models of any format on a folder or table of images, or a data set."""

import json
import os
from pathlib import Path

from keras_gmlp.programs.shared import cli

FILES = ("report.json", "predictions.csv", "confusion.png", "errors.png", "reliability.png")

SHOWN = 50  # classes

SCORES = ("precision", "recall", "f1")

LABEL_SCORES = ("average_precision", "threshold", *SCORES)

SHARES = (
    *("accuracy", "top5_accuracy", "balanced_accuracy"),
    *("mean_average_precision", "mean_f1", "exact_match"),
    *("calibration_error", "rejected"),
)

COMPARED = {
    "mean_average_precision": "mean AP",
    "exact_match": "exact match",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced",
    "calibration_error": "calibration error",
    "rejected": "rejected",
    "agreement": "agreement",
}

EPILOG = """\
The first model gets the full report, the others a row in a table. Classes are matched by name;
images of a class that a model does not know are left out.

Models that give any number of labels for an image are scored label by label: average precision
(AP), and precision, recall and F1 at the thresholds of the model. Labels that only the images or
only the model know are left out and named. An exact match has all compared labels right. --out
then writes no confusion.png, and errors.png shows the largest errors of any label.

--out writes report.json, with all models, and for the first one predictions.csv, confusion.png,
errors.png (the wrong predictions with the highest probability) and reliability.png (how often
predictions of a probability are right).

examples:
  apps/evaluate.py runs/gmlp_n4_32-photos --data photos/
  apps/evaluate.py model.keras model.tflite model.onnx --data photos/ --out evaluation
  apps/evaluate.py gmlp_n4_32-cifar10 --data new_photos/ --split all

exit codes: 0 done, 1 failure, 2 wrong usage, 130 stopped with Ctrl-C
"""


def parse(arguments):
    parser = cli.Parser(description=__doc__, epilog=EPILOG)
    parser.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help="a .tflite, .keras or .onnx file, a folder (SavedModel or run), the name of an "
        "included model, or published weights (a file or hf-hub:NAME)",
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
    cli.add_data_dir(parser)
    cli.add_backend(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args(arguments)
    outputs = [Path(options.out), *(Path(options.out, f) for f in FILES)] if options.out else []
    for output in (*outputs, *([options.csv] if options.csv else [])):
        parser.check_output(output, options.data, *filter(os.path.isfile, options.models))
    return options


def main(arguments=None):
    options = parse(arguments)
    return cli.guarded("evaluate", lambda: run(options))


def run(options):
    # Imported here, so that --help is fast.
    from keras_gmlp.data.datasets import recorded_division
    from keras_gmlp.evaluation import images as evaluation
    from keras_gmlp.evaluation.labelled import LabelledImages
    from keras_gmlp.utils.files import read_json
    from keras_gmlp.utils.shipped import find_shipped

    if options.csv and Path(options.csv).is_dir():
        raise ValueError(f"--csv {options.csv}: a folder; expected a file to write.")
    recipe = read_json(Path(find_shipped(options.models[0]), "recipe.json"), {})  # if it is a run
    recipe = recipe if isinstance(recipe, dict) else {}
    if not (Path(options.data).exists() or options.data == "digits"):
        cli.import_tensorflow()  # which the search for a data set by name imports
    division = recorded_division(recipe, options.data, options.groups)
    images = LabelledImages(options.data, options.split, **division)
    classifiers = [cli.load_classifier(model) for model in options.models]
    if options.out:  # here, so that a useless path fails before the work
        Path(options.out).mkdir(parents=True, exist_ok=True)
    results, errors = zip(*evaluation.evaluate(classifiers, images), strict=True)
    report = evaluation.report(options.models, results, images)
    if len(classifiers) > 1:
        with cli.quiet():  # the notes of TensorFlow, if this is the first import of Keras
            from keras_gmlp.inference.latency import measure_latencies
        seconds = measure_latencies(dict(enumerate(classifiers)), repeats=20)
        for i, row in enumerate(report["models"]):
            row["latency_ms"] = round(1000 * seconds[i], 3)
    if options.csv:
        evaluation.write_predictions(options.csv, results[0])
    if options.out:
        with cli.quiet():
            evaluation.write_report(options.out, report, results[0], errors[0])
    if options.json:
        print(json.dumps(report))
    else:
        show(report, images.total)
    return 0


def show(report, total):
    from keras_gmlp.utils.errors import first_of, printable

    first, *others = report["models"]
    several = "exact_match" in first
    print(f"{printable(first['model'])} on {printable(report['data'])}")
    print(f"images            {first['images']:,} of {total:,} (--split {report['split']})")
    unknown = "labels left out" if several else "images left out"
    for key, note in (("unknown_classes", unknown), ("missing_classes", "no images")):
        if report[key]:
            print(f"{spaced(key)}{first_of([*map(printable, report[key])], 10)} ({note})")
    for key in SHARES:
        if key in first:
            print(f"{spaced(key)}{percent(first[key])}")
    if "log_likelihood" in first:
        print(f"{spaced('log_likelihood')}{first['log_likelihood']:8.4f}")
    title, classes = sort_classes(first["classes"], "label" if several else "class")
    head, scores = (title, "precision", "recall", "F1", "images"), SCORES
    if several:
        head, scores = (title, "AP", "threshold", *head[1:]), LABEL_SCORES
    show_table(head, [(*cells(row, "label", scores), f"{row['images']:,}") for row in classes])
    if others:
        rows = first, *others
        compared = [key for key in COMPARED if any(key in row for row in rows)]
        head = ("model", *map(COMPARED.get, compared), "ms per image")
        show_table(head, [(*cells(r, "model", compared), f"{r['latency_ms']:.3f}") for r in rows])


def sort_classes(classes, title="class"):
    """Returns the title and the rows of a table of classes: of many, those with the lowest F1."""
    if len(classes) <= SHOWN:
        return title, classes
    return f"{SHOWN} lowest F1", sorted(classes, key=lambda row: row["f1"])[:SHOWN]


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
    text = (
        key.replace("_", " ").replace("top5", "top-5").replace("mean average precision", "mean AP")
    )
    return f"{text.replace('mean f1', 'mean F1'):18}"


def percent(share):
    return f"{100 * share:6.2f} %"
