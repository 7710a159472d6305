"""Evaluates models of any format on labelled images or texts, or language models on text."""

import os
from pathlib import Path

from keras_gmlp.programs.shared import cli
from keras_gmlp.programs.shared.text_options import COLUMNS
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.utils.errors import first_of, printable
from keras_gmlp.utils.files import require_output

FILES = ("report.json", "predictions.csv", "confusion.png", "errors.png", "reliability.png")

SHOWN = 50  # classes

# What is printed of several models, side by side.
COMPARED = (
    *("mean_average_precision", "exact_match", "perplexity", "accuracy", "balanced_accuracy"),
    *("matthews_correlation", "calibration_error", "rejected", "agreement"),
)
HIDDEN = ("agreement", "classes", "confusion", "cut", "images", "model")

USAGE = f"""\
models MODEL+  a .tflite, .keras or .onnx file, a folder (SavedModel or run), the name of an
    included model, or published weights (a file or hf://NAME); all of images, or all of texts
--data PATH|NAME!  images: a folder with a folder of images for each class, a table (.csv, .tsv)
    with the columns path and label, or a data set by name; for classifiers of texts: sst2, mrpc,
    cola, a CSV, TSV or JSON lines file, or a folder with a folder of text files for each class; for
    language models: a text file
--split test|train|validation|all  the samples that apps/train.py holds out (the split test, else
    every fifth of a class), those it trains on, those for validation (the split validation, or held
    out by the first model's run), or all; default: test, or all of texts that no run trained on.
    A run, or a file in its folder, is tested on what it held out; a copied file cannot know that,
    and a line says so
{COLUMNS}\
--limit N:count  evaluate on N texts, drawn at random
--out DIR  folder for the report and the pictures
--data-dir
--backend
--json  print the report as JSON

The first model gets the full report, the others a row in a table. Classes are matched by name;
samples of a class that a model does not know are left out and named.

Models that give any number of labels for an image or a text are scored label by label: average
precision, and precision, recall and F1 at the thresholds of the model. Labels that only the data or
only the model know are left out and named. An exact match has all compared labels right. --out then
writes no confusion.png, and errors.png shows the largest errors of any label.

--out writes report.json, with all models, and for the first one, if it is a classifier,
predictions.csv, confusion.png, errors.png (the wrong predictions of images with the highest
probability) and reliability.png (how often predictions of a probability are right).

examples:
  apps/evaluate.py runs/gmlp_n4_32-photos --data photos/
  apps/evaluate.py model.keras model.tflite model.onnx --data photos/ --out evaluation
  apps/evaluate.py gmlp_n4_32-cifar10 --data new_photos/ --split all
  apps/evaluate.py amlp_nano-sst2 --data sst2
  apps/evaluate.py runs/a/model.keras runs/a/model.tflite --data reviews.csv --out evaluation
  apps/evaluate.py amlp_nano-wiki --data held_out.txt --limit 500
"""


def check(options):
    inputs = (options.data, options.test, *filter(os.path.isfile, options.models))
    for name in ("", *FILES) if options.out else ():
        require_output(Path(options.out, name), *inputs)


def run(options):
    from keras_gmlp.evaluation.scoring import evaluate, write_report

    if not (Path(options.data).exists() or options.data == "digits"):
        cli.import_tensorflow()  # which the search for a data set by name imports
    models = [cli.load_model(model) for model in options.models]
    texts = find_task(models[0].task).domain == "texts"
    data, split = choose_texts(options, models[0]) if texts else (choose_images(options), None)
    if options.out:  # here, so that a useless path fails before the work
        Path(options.out).mkdir(parents=True, exist_ok=True)
    report, result = evaluate(models, data, split, options.limit)
    for name, row in zip(options.models, report["models"], strict=True):
        row["model"] = name
    if options.out:
        write_report(options.out, report, result)
    cli.show_result(options, report, show)


def choose_images(options):
    """Returns the `LabelledImages`; a run's own data are divided as it divided them."""
    from keras_gmlp.data.datasets import holds_files
    from keras_gmlp.data.run_folder import Run
    from keras_gmlp.evaluation.labelled import LabelledImages

    refuse(options, ("column", "label", "test", "limit"), "models of images")
    first, split = options.models[0], options.split or "test"
    run = Run(first)
    images = LabelledImages(options.data, split, **run.data(options.data, split)[2])
    if split == "test" and holds_files(options.data) and not run.recipe:
        tested = "those of a split test, else on every fifth of a class"
        text = f"{first}: no run says which images it was trained on; it is tested on {tested}"
        cli.fail(options, text, code=0)
    if holds_files(options.data) and split in ("test", "validation"):
        for model in options.models[1:]:
            Run(model).warn_of(options.data, [*map(os.fsencode, images.names)])
    return images


def choose_texts(options, model):
    """Returns a `TextSource` or a path, and the split, for models of texts."""
    from keras_gmlp.data.run_folder import Run
    from keras_gmlp.data.text.labelled_texts import name_columns

    task = find_task(model.task)
    if not task.labelled:
        refuse(options, ("column", "label", "split", "test"), task.kind)
        return options.data, None
    named = name_columns(options.column, options.label, options.test)
    source, own = Run(options.models[0]).texts(options.data, options.split, named)
    return source, options.split or ("test" if own else None)


def refuse(options, names, kind):
    """Raises a `ValueError` if an option is for models of another kind."""
    for name in names:
        if getattr(options, name):
            raise ValueError(f"--{name} is not for {kind}. Leave it out")


def show(report):
    first, *others = report["models"]
    split = f" (--split {report['split']})" if report["split"] else ""
    print(f"{printable(first['model'])} on {printable(report['data'])}{split}")
    unit = "images" if "images" in report else "texts"
    if "images" in report:
        print(f"{'images':23}{first['images']:,} of {report['images']:,}")
    for key, note in (("unknown_classes", "left out"), ("missing_classes", f"no {unit}")):
        if names := report.get(key):
            print(f"{spell(key):23}{first_of([*map(printable, names)], 10)} ({note})")
    for key in first:
        if key not in HIDDEN:
            print(f"{spell(key):23}{cli.format_score(key, first[key]):>8}")
    if first.get("cut"):
        print(f"{'cut':23}{first['cut']:>8,} (longer than the model takes)")
    if classes := first.get("classes"):
        if len(classes) > SHOWN:
            print(f"\nThe {SHOWN} classes with the lowest F1:")
            classes = sorted(classes, key=lambda row: row["f1"])[:SHOWN]
        show_table([*classes[0]], classes)
    if others:
        compared = [key for key in COMPARED if any(key in row for row in report["models"])]
        compared = compared or [key for key in first if key not in HIDDEN]  # a user's own task
        show_table(["model", *compared], report["models"])


def show_table(keys, rows):
    """Prints entries of rows in columns; the first one is a name."""
    shown = [[*map(spell, keys)]]
    for row in rows:
        shown.append(
            [printable(row[keys[0]]), *(cli.format_score(k, row.get(k)) for k in keys[1:])]
        )
    first, *widths = (max(map(len, column)) for column in zip(*shown, strict=True))
    print()
    for name, *texts in shown:
        aligned = (f"{text:>{width}}" for text, width in zip(texts, widths, strict=True))
        print("  ".join((f"{name:{first}}", *aligned)))


def spell(key):
    return key.replace("_", " ")


main = cli.Program("evaluate", __doc__, USAGE, run, check)
