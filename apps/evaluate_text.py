#!/usr/bin/env python3
"""Evaluates text models of any format on labelled texts, questions or plain text."""

import argparse
import json
import sys

from cli import add_backend, add_data_dir, choose_backend, guarded, quiet
from evaluate import cells, show_table
from text_options import report

EPILOG = """\
The first model decides what the data are:
  a text classifier       labelled texts: sst2, mrpc, cola, a CSV, TSV or JSON lines file, or a
                          folder with one folder of text files for each class
  a model for questions   squad, squad/v2.0, xquad/en, or a .json file in SQuAD's format
  a language model        a text file, or the folder of a prepared text, for its perplexity

Where some questions have no answer, as in SQuAD 2.0, a model answers with nothing if the score of
no answer exceeds that of its best answer by more than --threshold. The best threshold is chosen on
the same questions, as SQuAD's own program does: choose yours on others.

--out writes report.json, with all models, and for the first one predictions.csv, and for a
classifier confusion.png and reliability.png.

examples:
  apps/evaluate_text.py saved_models/gmlp_nano-sst2 --data sst2
  apps/evaluate_text.py runs/a/model.keras runs/a/model.tflite --data reviews.csv --out evaluation
  apps/evaluate_text.py runs/amlp_nano-squad --data squad/v2.0 --threshold 1
  apps/evaluate_text.py saved_models/gmlp_nano-wiki --data held_out.txt --limit 500

exit codes: 0 done, 1 failure, 2 wrong usage, 130 stopped with Ctrl-C
"""

SCORES = ("precision", "recall", "f1")
SHARES = (
    *("accuracy", "balanced_accuracy", "calibration_error"),
    *("exact_match", "f1", "answerable_f1", "unanswerable_f1", "best_f1"),
)
PERCENT = {"exact_match", "f1", "answerable_f1", "unanswerable_f1", "best_f1"}  # as SQuAD prints
LEFT = {"classes", "confusion", "model"}


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models", nargs="+", metavar="MODEL", help=".tflite or .keras files, or folders of runs"
    )
    parser.add_argument("--data", required=True, metavar="NAME|PATH", help="see below")
    parser.add_argument("--split", choices=("test", "train"), default="test", help="default: test")
    parser.add_argument("--column", action="append", help="of the texts; twice for pairs")
    parser.add_argument("--label", help="column of the labels")
    parser.add_argument(
        "--threshold", type=float, metavar="T", help="default: 0 if some questions have no answer"
    )
    parser.add_argument("--limit", type=int, metavar="N", help="evaluate on the first N samples")
    parser.add_argument("--out", metavar="DIR", help="folder for the report and the pictures")
    add_data_dir(parser)
    add_backend(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args(arguments)
    if options.limit is not None and options.limit < 1:
        parser.error(f"--limit must be at least 1; received {options.limit}")
    choose_backend(options)
    return options


def main(arguments=None):
    options = parse(arguments)
    return guarded("evaluate_text", lambda: run(options))


def run(options):
    with quiet():
        from keras_gmlp import text_evaluation, text_inference

        models = [
            text_inference.load(path, warn=lambda text: report("evaluate_text", text))
            for path in options.models
        ]
    task = models[0].task
    columns = {"label": options.label}
    if options.column:
        columns["text"] = options.column[0] if len(options.column) == 1 else options.column
    columns = {name: value for name, value in columns.items() if value is not None}
    if columns and task != "text_classification":
        raise ValueError("--column and --label are for labelled texts; leave them out.")
    results = text_evaluation.evaluate_texts(
        *(models, options.data, options.split, columns, options.data_dir, options.limit),
        threshold=options.threshold,
    )
    rows = [
        {"model": name, **scores} for name, (scores, _) in zip(options.models, results, strict=True)
    ]
    found = {"data": options.data, "split": options.split, "task": task, "models": rows}
    if options.out:
        with quiet():
            text_evaluation.write_text_report(options.out, found, results[0][1])
    if options.json:
        print(json.dumps(found))
    else:
        show(found, text_evaluation.COMPARED[task])
    return 0


def show(found, compared):
    from keras_gmlp.utils.errors import printable

    first, *others = found["models"]
    print(f"{printable(first['model'])} on {printable(found['data'])}")
    for key in first:
        if key not in LEFT:
            print(f"{key.replace('_', ' ').replace('f1', 'F1'):20}{shown(first, key):>10}")
    if "classes" in first:
        head = ("class", "precision", "recall", "F1", "texts")
        rows = [(*cells(r, "label", SCORES), f"{r['texts']:,}") for r in first["classes"]]
        show_table(head, rows)
    if others:
        head = ("model", *(key.replace("_", " ").replace("f1", "F1") for key in compared))
        rows = [
            (printable(r["model"]), *(shown(r, key) for key in compared)) for r in (first, *others)
        ]
        show_table(head, rows)


def shown(row, key):
    value = row[key]
    if isinstance(value, int):
        return f"{value:,}"
    if key in SHARES:
        return f"{value if key in PERCENT else 100 * value:.2f} %"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.3f}"


if __name__ == "__main__":
    sys.exit(main())
