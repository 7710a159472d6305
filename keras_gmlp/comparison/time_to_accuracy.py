"""Epochs and seconds to an accuracy: `python -m keras_gmlp.comparison.time_to_accuracy RUN...`.

For each folder of a run of image classification, prints the first epoch that reaches the goal, and
the seconds of training until its end, without those of the measurement after each epoch. The
accuracy is that in history.csv: of the validation images or, in a run without them, of the test
images. Validation images may be easier. Seconds compare only between runs that had the same machine
and as many threads to themselves.
"""

import argparse
import json
import math
import statistics
import sys
from pathlib import Path

from keras_gmlp.tasks.registry import find_task
from keras_gmlp.training.run_directory import read_history, read_recipe
from keras_gmlp.utils.errors import OneLineParser, describe_failure
from keras_gmlp.utils.markdown import make_table

GOAL = 0.885
HEAD = (
    *("run", "measured on", "epochs to {:.4g} %", "epochs trained", "median seconds of an epoch"),
    *("seconds to {:.4g} %", "best accuracy"),
)


def measure(directory, goal=GOAL):
    """Measures when a run reached an accuracy.

    Args:
        directory: Folder of a run of image classification, with one label for each image.
        goal: Accuracy in (0, 1].

    Returns:
        A dict: `run`, the folder; `goal`; `measured_on`, `"test"` or `"validation"` images;
        `epochs` and `seconds` to the goal, both `None` if no epoch reached it; `trained`, the
        number of epochs; `epoch_seconds`, their median duration in seconds; `best`, the largest
        accuracy.

    Raises:
        ValueError: If the folder holds no run of image classification, or its history.csv does not
            begin with the first epoch. One line.
        OSError: If a file cannot be read.
    """
    directory = Path(directory)
    if not (directory / "history.csv").exists():
        raise ValueError(f"{directory}: no history.csv; expected a folder of a run.")
    recipe = read_recipe(directory)
    task = find_task(recipe.get("task"))
    if task is not find_task():
        raise ValueError(
            f"{directory}: its model is {task.kind}; expected an image classifier with one label "
            "for each image."
        )
    rows = read_history(directory / "history.csv")
    if not rows or int(rows[0]["epoch"]) != 0:
        raise ValueError(f"{directory}: history.csv does not begin with the first epoch.")
    if "val_accuracy" not in rows[0]:
        raise ValueError(f"{directory}: history.csv has no accuracy in a column val_accuracy.")
    seconds = [float(row["seconds"]) for row in rows]
    accuracies = [float(row["val_accuracy"]) for row in rows]
    reached = next((i for i, found in enumerate(accuracies, 1) if found >= goal), None)
    return {
        "run": str(directory),
        "goal": goal,
        "measured_on": "test" if recipe.get("validation") is None else "validation",
        "epochs": reached,
        "seconds": None if reached is None else round(sum(seconds[:reached]), 2),
        "trained": len(rows),
        "epoch_seconds": round(statistics.median(seconds), 1),
        "best": max(accuracies),
    }


def make_row(found):
    """Returns the cells of the table for what `measure` returned."""
    reached = found["epochs"] is not None
    return [
        found["run"],
        found["measured_on"],
        str(found["epochs"]) if reached else "not reached",
        str(found["trained"]),
        f"{found['epoch_seconds']:,.1f}",
        f"{found['seconds']:,.0f}" if reached else "",
        f"{100 * found['best']:.2f} %",
    ]


def parse_goal(text):
    """Returns the goal, a share in (0, 1]."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"must be in (0, 1], such as 0.885; received {text!r}")
    return value


def main(arguments=None):
    parser = OneLineParser(
        prog="python -m keras_gmlp.comparison.time_to_accuracy",
        description=__doc__.partition("\n\n")[2],
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help="folder of a run, with history.csv")
    parser.add_argument(
        "--accuracy", type=parse_goal, default=GOAL, help="the goal, a share; default: %(default)s"
    )
    parser.add_argument("--json", action="store_true", help="print a list for scripts")
    options = parser.parse_args(arguments)
    found = []
    for run in options.runs:
        try:
            found.append(measure(run, options.accuracy))
        except (ValueError, OSError) as error:
            print(f"time_to_accuracy: {describe_failure(error)}", file=sys.stderr)
    if options.json:
        print(json.dumps(found, indent=2))
    elif found:
        head = [name.format(100 * options.accuracy) for name in HEAD]
        print(*make_table(head, map(make_row, found), numbers=range(2, len(head))), sep="\n")
    return 0 if len(found) == len(options.runs) else 1


if __name__ == "__main__":
    sys.exit(main())
