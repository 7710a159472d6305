"""Evaluates text models of any format on labelled texts, questions or plain text."""

import functools
import math
from pathlib import Path

from keras_gmlp.programs import evaluate
from keras_gmlp.programs.evaluate import percent, spell
from keras_gmlp.programs.shared import cli
from keras_gmlp.programs.shared.text_options import COLUMNS, name_columns
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.files import write_json

USAGE = f"""\
models MODEL+  .tflite or .keras files, folders of runs, or names of included models
--data NAME|PATH!  labelled texts, questions or a text, as the model requires; see below
--split test|train|validation|all  the texts that apps/train_text.py tests on, those it trains on,
    those it held out with --validation, or all; default: test, or all of a file of your own
{COLUMNS}\
--threshold T:float  how much the score of no answer must exceed that of the best answer; default: 0
    if some questions have no answer
--retrieval  rank all texts of the questions in --data for each question, by the vectors of any text
    model and by word overlap (TF-IDF)
--limit N:count  evaluate on N texts or questions, drawn at random
--out DIR  folder for the report and, without --retrieval, the pictures
--data-dir
--backend
--json  print the report as JSON

The first model decides what the data are:
  a text classifier       labelled texts: sst2, mrpc, cola, a CSV, TSV or JSON lines file, or a
                          folder with one folder of text files for each class
  a model for questions   squad, squad/v2.0, xquad/en, a .json file in SQuAD's format or a folder
                          with such files
  a language model        a text file, or the folder of a prepared text, for its perplexity

Without --split, data that the first run trained on are tested on their held-out part, and any other
file as a whole.
Texts of a class that a model does not know are left out and named.

Where some questions have no answer, as in SQuAD 2.0, a model gives none if the score of no answer
exceeds that of its best answer by more than --threshold. The best threshold is chosen on the same
questions, as SQuAD's own program does: choose yours on others.

--out writes report.json, with all models, and for the first one predictions.csv, and for a
classifier confusion.png and reliability.png.

examples:
  apps/evaluate_text.py amlp_nano-sst2 --data sst2
  apps/evaluate_text.py runs/a/model.keras runs/a/model.tflite --data reviews.csv --out evaluation
  apps/evaluate_text.py runs/amlp_nano-squad --data squad/v2.0 --threshold 1
  apps/evaluate_text.py amlp_nano-wiki --data held_out.txt --limit 500
  apps/evaluate_text.py amlp_nano-wiki --data squad/v2.0 --retrieval --limit 1000

"""

SHARES = ("accuracy", "top5_accuracy", "balanced_accuracy", "calibration_error")

PERCENT = ("exact_match", "f1", "answerable_f1", "unanswerable_f1", "best_f1")  # as SQuAD prints

HIDDEN = ("classes", "confusion", "model", "cut")


def check(options):
    if options.threshold is not None and not math.isfinite(options.threshold):
        raise cli.UsageError(f"--threshold must be a number; received {options.threshold}")
    evaluate.check_outputs(options, options.test)
    if options.retrieval:
        from keras_gmlp.data.text.squad import require_questions

        if options.label or options.column or options.threshold is not None:
            names = "--column, --label and --threshold"
            raise cli.UsageError(f"{names}: not for --retrieval. Leave them out")
        with cli.usage_errors():
            require_questions(options.data)


def run(options):
    from keras_gmlp.utils.environment import require

    if options.out:  # here, so that a useless path fails before the work
        Path(options.out).mkdir(parents=True, exist_ok=True)
        if not options.retrieval:
            require("matplotlib", "a report with pictures", "demo")
    with cli.quiet():
        from keras_gmlp.evaluation import text as text_evaluation
        from keras_gmlp.inference import text as text_inference
        from keras_gmlp.inference.similarity import find_features
        from keras_gmlp.tasks.registry import find_task

        choose = find_features if options.retrieval else str  # a file that has vectors
        models = [text_inference.load(choose(path)) for path in options.models]
    task = find_task(models[0].task)
    if options.retrieval:
        from keras_gmlp.evaluation.retrieval import evaluate_retrieval

        part = {"columns": name_columns(options), "split": options.split, "limit": options.limit}
        report = evaluate_retrieval(models, options.data, **part)
    else:
        check_task(options, task)
        part = choose_part(options) if "split" in task.choices else {}
        part |= {"limit": options.limit, "threshold": options.threshold}
        report, predictions = text_evaluation.evaluate_texts(models, options.data, **part)
    for name, row in zip(options.models, report["models"], strict=not options.retrieval):
        row["model"] = name
    if options.out and options.retrieval:
        write_json(Path(options.out) / "report.json", report)
    elif options.out:
        with cli.quiet():
            text_evaluation.write_text_report(options.out, report, predictions)
    shown = show_retrieval if options.retrieval else functools.partial(show, task=task)
    cli.show_result(options, report, shown)


def show_retrieval(report):
    counts = f"{report['questions']:,} questions, {report['candidates']:,} texts"
    evaluate.show_title(report, f" (--split {report['split']}), {counts}")
    tops = [key for key in report["models"][0] if key != "model"]
    rows = [[percent(row[top]).strip() for top in tops] for row in report["models"]]
    for row, cells in zip(report["models"], rows, strict=True):
        cells.insert(0, printable(row["model"]))
    evaluate.show_table(("model", *tops), rows)


def check_task(options, task):
    """Raises a `UsageError` if an option is for models of another task."""
    from keras_gmlp.tasks.registry import TEXT_TASKS, find_task

    given = {
        "columns": ("--column and --label", options.column or options.label),
        "threshold": ("--threshold", options.threshold is not None),
        "split": ("--split and --test", options.split or options.test),
    }
    for choice, (names, value) in given.items():
        if value and choice not in task.choices:
            kinds = [t.kind for t in map(find_task, TEXT_TASKS) if choice in t.choices]
            raise cli.UsageError(
                f"{names}: for {' or '.join(kinds)}; received {task.kind}. Leave it out"
            )


def choose_part(options):
    """Returns the split, the columns and the held-out share; for a run's own data those of it."""
    from keras_gmlp.data.datasets import same_data
    from keras_gmlp.utils.files import read_json
    from keras_gmlp.utils.shipped import find_shipped

    named = name_columns(options)
    place = Path(find_shipped(options.models[0]))
    recorded = read_json((place if place.is_dir() else place.parent) / "recipe.json") or {}
    same = "data" in recorded and same_data(options.data, recorded["data"])
    if not same or "test" in named:
        return {"split": options.split, "columns": named}
    return {
        "split": options.split or "test",
        "columns": {**recorded.get("columns", {}), **named},
        "held_out": recorded.get("held_out", 0.0),
        "validation": recorded.get("validation", 0.0),
    }


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
    if key in PERCENT:
        return f"{value:.2f} %"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


main = cli.Program("evaluate_text", __doc__, USAGE, run, check)
