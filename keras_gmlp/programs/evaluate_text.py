"""Evaluates text models of any format on labelled texts or plain text."""

import functools
from pathlib import Path

from keras_gmlp.programs import evaluate
from keras_gmlp.programs.evaluate import percent, spell
from keras_gmlp.programs.shared import cli
from keras_gmlp.programs.shared.text_options import COLUMNS
from keras_gmlp.utils.errors import printable

USAGE = f"""\
models MODEL+  .tflite or .keras files, folders of runs, or names of included models
--data NAME|PATH!  labelled texts or a text, as the model requires; see below
--split test|train|validation|all  the texts that apps/train.py tests on, those it trains on,
    those it held out with --validation, or all; default: test, or all of a file of your own
{COLUMNS}\
--limit N:count  evaluate on N texts, drawn at random
--out DIR  folder for the report and the pictures
--data-dir
--backend
--json  print the report as JSON

The first model decides what the data are:
  a text classifier       labelled texts: sst2, mrpc, cola, a CSV, TSV or JSON lines file, or a
                          folder with one folder of text files for each class
  a language model        a text file, or the folder of a prepared text, for its perplexity

Without --split, data that the first run trained on are tested on their held-out part, and any other
file as a whole.
Texts of a class that a model does not know are left out and named.

--out writes report.json, with all models, and for the first one, if it is a classifier,
predictions.csv, confusion.png and reliability.png.

examples:
  apps/evaluate_text.py amlp_nano-sst2 --data sst2
  apps/evaluate_text.py runs/a/model.keras runs/a/model.tflite --data reviews.csv --out evaluation
  apps/evaluate_text.py amlp_nano-wiki --data held_out.txt --limit 500

"""

SHARES = ("accuracy", "top5_accuracy", "balanced_accuracy", "calibration_error")

HIDDEN = ("agreement", "classes", "confusion", "model", "cut")


def check(options):
    evaluate.check_outputs(options, options.test)


def run(options):
    from keras_gmlp.utils.environment import require

    if options.out:  # here, so that a useless path fails before the work
        Path(options.out).mkdir(parents=True, exist_ok=True)
        require("matplotlib", "a report with pictures", "demo")
    with cli.quiet():
        from keras_gmlp.evaluation.scoring import evaluate as score_models
        from keras_gmlp.evaluation.scoring import write_report
        from keras_gmlp.inference import text as text_inference
        from keras_gmlp.tasks.registry import find_task

        models = [text_inference.load(path) for path in options.models]
    task = find_task(models[0].task)
    check_task(options, task)
    source, split = options.data, None
    if "split" in task.choices:
        source, split = choose_part(options)
    report, predictions = score_models(models, source, split, options.limit)
    for name, row in zip(options.models, report["models"], strict=True):
        row["model"] = name
    if options.out:
        with cli.quiet():
            write_report(options.out, report, predictions)
    cli.show_result(options, report, functools.partial(show, task=task))


def check_task(options, task):
    """Raises a `UsageError` if an option is for models of another task."""
    from keras_gmlp.tasks.registry import TEXT_TASKS, find_task

    given = {
        "columns": ("--column and --label", options.column or options.label),
        "split": ("--split and --test", options.split or options.test),
    }
    for choice, (names, value) in given.items():
        if value and choice not in task.choices:
            kinds = [t.kind for t in map(find_task, TEXT_TASKS) if choice in t.choices]
            raise cli.UsageError(
                f"{names}: for {' or '.join(kinds)}; received {task.kind}. Leave it out"
            )


def choose_part(options):
    """Returns the `TextSource` and the split; a run's own data are divided as it divided them."""
    from keras_gmlp.data.run_folder import Run
    from keras_gmlp.data.text.chosen_splits import name_columns

    named = name_columns(options.column, options.label, options.test)
    run = Run(options.models[0])
    source, own = run.texts(options.data, options.split, named)
    return source, options.split or ("test" if own else None)


def show(report, task):
    first, *others = report["models"]
    evaluate.show_title(report, f" (--split {report['split']})" if "split" in task.choices else "")
    evaluate.show_names(report, "unknown_classes", "texts left out", 20)
    for key in first:
        if key not in HIDDEN:
            print(f"{spell(key):20}{format_score(first, key):>10}")
    if first.get("cut"):
        print(f"{'cut':20}{first['cut']:>10,} (longer than the model takes)")
    if "classes" in first:
        evaluate.show_classes(first, "texts")
    if others:
        rows = [
            (printable(row["model"]), *(format_score(row, key) for key in task.compared))
            for row in report["models"]
        ]
        evaluate.show_table(("model", *map(spell, task.compared)), rows)


def format_score(row, key):
    value = row[key]
    if key in SHARES:
        return percent(value).strip()
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


main = cli.Program("evaluate_text", __doc__, USAGE, run, check)
