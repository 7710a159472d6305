"""Evaluates models of any format on a folder or table of images, or a data set."""

import functools
import os
from pathlib import Path

from keras_gmlp.programs.shared import cli
from keras_gmlp.utils.errors import first_of, printable

FILES = ("report.json", "predictions.csv", "confusion.png", "errors.png", "reliability.png")

SHOWN = 50  # classes

SCORES = ("precision", "recall", "f1")

LABEL_SCORES = ("average_precision", "threshold", *SCORES)

SHARES = (
    *("accuracy", "top5_accuracy", "balanced_accuracy"),
    *("mean_average_precision", "mean_f1", "exact_match"),
    *("calibration_error", "rejected"),
)

COMPARED = (
    *("mean_average_precision", "exact_match", "accuracy", "balanced_accuracy"),
    *("calibration_error", "rejected", "agreement"),
)

USAGE = """\
models MODEL+  a .tflite, .keras or .onnx file, a folder (SavedModel or run), the name of an
    included model, or published weights (a file or hf-hub:NAME)
--data PATH|NAME!  a folder with a folder of images for each class, a table (.csv, .tsv) with the
    columns path and label, or a data set by name
--split test|train|validation|all=test  the images that apps/train.py holds out (the split test,
    else every fifth image of a class), those it trains on, those for validation (the split
    validation, or held out by the first model's run), or all
--groups REGEX  the groups by which apps/train.py held images out; default: those of the run
--out DIR  folder for the report and the pictures
--csv FILE  .csv file for the first model's predictions
--data-dir
--backend
--json  print the report as JSON

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
"""


def check(options):
    files = [*filter(os.path.isfile, options.models)]
    check_outputs(options, *files)
    if options.csv:
        csv = Path(options.csv)
        if csv.is_dir() or csv.suffix.lower() != ".csv" or csv.name.lower() == "history.csv":
            raise cli.UsageError(f"--csv must be a .csv file, no history.csv: {str(csv)!r}")
        cli.check_output(csv, options.data, *files, option="--csv")


def check_outputs(options, *inputs):
    """Raises a `UsageError` if --out, or a file in it, is one of the inputs or in the data."""
    for name in ("", *FILES) if options.out else ():
        cli.check_output(Path(options.out, name), options.data, *inputs)


def run(options):
    from keras_gmlp.data.datasets import holds_files
    from keras_gmlp.data.run_folder import Run
    from keras_gmlp.evaluation.labelled import LabelledImages
    from keras_gmlp.evaluation.scoring import evaluate, write_report
    from keras_gmlp.utils.csv_tables import write_table

    if not (Path(options.data).exists() or options.data == "digits"):
        cli.import_tensorflow()  # which the search for a data set by name imports
    division = Run(options.models[0]).data(options.data, options.split)[2]  # if it is in a run
    if options.groups is not None:
        if "roles" in division:
            raise ValueError(
                f"--groups: {options.models[0]} recorded which images it held out; leave it out."
            )
        division = {"groups": options.groups}
    images = LabelledImages(options.data, options.split, **division)
    if holds_files(options.data) and options.split in ("test", "validation"):
        for model in options.models[1:]:
            Run(model).warn_of(options.data, [*map(os.fsencode, images.names)])
    classifiers = [cli.load_classifier(model) for model in options.models]
    if options.out:  # here, so that a useless path fails before the work
        Path(options.out).mkdir(parents=True, exist_ok=True)
    report, result = evaluate(classifiers, images)
    for name, row in zip(options.models, report["models"], strict=True):
        row["model"] = name
    if len(classifiers) > 1:
        with cli.quiet():  # the notes of TensorFlow, if this is the first import of Keras
            from keras_gmlp.inference.latency import measure_latencies
        seconds = measure_latencies(dict(enumerate(classifiers)), repeats=20)
        for i, row in enumerate(report["models"]):
            row["latency_ms"] = round(1000 * seconds[i], 3)
    if options.csv:
        write_table(options.csv, result.table())
    if options.out:
        with cli.quiet():
            write_report(options.out, report, result)
    cli.show_result(options, report, functools.partial(show, total=images.total))


def show(report, total):
    first, *others = report["models"]
    several = "exact_match" in first
    show_title(report)
    print(f"images            {first['images']:,} of {total:,} (--split {report['split']})")
    show_names(report, "unknown_classes", f"{'labels' if several else 'images'} left out", 18)
    show_names(report, "missing_classes", "no images", 18)
    for key in SHARES:
        if key in first:
            print(f"{spell(key):18}{percent(first[key])}")
    if "log_likelihood" in first:
        print(f"{'log likelihood':18}{first['log_likelihood']:8.4f}")
    if several:
        show_classes(first, "images", "label", LABEL_SCORES)
    else:
        show_classes(first, "images")
    if others:
        compared = [key for key in COMPARED if any(key in row for row in report["models"])]
        head = ("model", *(spell(key).removesuffix(" accuracy") for key in compared))
        rows = [(*cells(r, "model", compared), f"{r['latency_ms']:.3f}") for r in report["models"]]
        show_table((*head, "ms per image"), rows)


def show_title(report, more=""):
    """Prints the name of the first model and the data."""
    print(f"{printable(report['models'][0]['model'])} on {printable(report['data'])}{more}")


def show_names(report, key, note, width):
    """Prints the names of classes that are left out, if there are any."""
    if names := report.get(key):
        print(f"{spell(key):{width}}{first_of([*map(printable, names)], 10)} ({note})")


def show_classes(row, counted, title="class", scores=SCORES):
    """Prints the scores of each class; of many, those with the lowest F1."""
    classes = row["classes"]
    if len(classes) > SHOWN:
        title = f"{SHOWN} lowest F1"
        classes = sorted(classes, key=lambda row: row["f1"])[:SHOWN]
    head = (title, *(spell(key).replace("average precision", "AP") for key in scores), counted)
    show_table(head, [(*cells(row, "label", scores), f"{row[counted]:,}") for row in classes])


def show_table(head, rows):
    """Prints rows of texts in columns."""
    first, *widths = (max(map(len, column)) for column in zip(head, *rows, strict=True))
    print()
    for name, *texts in (head, *rows):
        aligned = (f"{text:>{width}}" for text, width in zip(texts, widths, strict=True))
        print("  ".join((f"{name:{first}}", *aligned)))


def cells(row, name, shares):
    return printable(row[name]), *(percent(row[key]) if key in row else "" for key in shares)


def spell(key):
    """Returns the name of a score as it is printed."""
    text = key.replace("_", " ").replace("f1", "F1").replace("top5", "top-5")
    return text.replace("mean average precision", "mean AP")


def percent(share):
    return f"{100 * share:6.2f} %"


main = cli.Program("evaluate", __doc__, USAGE, run, check)
