"""Epochs and seconds to an accuracy: `python -m keras_gmlp.comparison.time_to_accuracy RUN...`.

For each folder of a run, prints the first epoch whose test accuracy reaches the goal, and how long
the run took until then. The seconds are those in history.csv. They compare where the runs had the
same machine to themselves, with one thread for each.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from keras_gmlp.training.run_directory import read_history
from keras_gmlp.utils.errors import OneLineParser, first_line
from keras_gmlp.utils.markdown import make_table

GOAL = 0.885
HEAD = ("run", "epochs", "of", "s for each epoch", "s to the goal", "best accuracy")


def measure(directory, goal=GOAL):
    """Measures when a run reached an accuracy.

    Args:
        directory: Folder of a run of image classification.
        goal: Test accuracy in (0, 1].

    Returns:
        A dict: `epochs` to the goal, `seconds` to the goal, both `None` if no epoch reached it;
        `trained`, the epochs in history.csv; `epoch_seconds`, their median duration; `best`, the
        largest test accuracy.

    Raises:
        ValueError: If the folder has no history.csv, or a damaged one.
    """
    rows = read_history(Path(directory, "history.csv"), ("epoch", "seconds", "val_accuracy"))
    if not rows:
        raise ValueError(f"{directory}: no history.csv with an epoch; expected a folder of a run.")
    seconds = [float(row["seconds"]) for row in rows]
    accuracies = [float(row["val_accuracy"]) for row in rows]
    reached = next((i for i, found in enumerate(accuracies, 1) if found >= goal), None)
    return {
        "run": Path(directory).name,
        "epochs": reached,
        "seconds": None if reached is None else round(sum(seconds[:reached]), 1),
        "trained": len(rows),
        "epoch_seconds": round(statistics.median(seconds), 1),
        "best": max(accuracies),
    }


def make_row(found):
    """Returns the cells of the table for what `measure` returned."""
    reached = found["epochs"] is not None
    return [
        found["run"],
        str(found["epochs"]) if reached else "not reached",
        str(found["trained"]),
        f"{found['epoch_seconds']:.0f}",
        f"{found['seconds']:,.0f}" if reached else "",
        f"{100 * found['best']:.2f} %",
    ]


def _accuracy(text):
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"must be in (0, 1], such as 0.885; received {text}")
    return value


def main(arguments=None):
    parser = OneLineParser(
        prog="python -m keras_gmlp.comparison.time_to_accuracy",
        description=__doc__.partition("\n\n")[2],
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help="folder of a run, with history.csv")
    parser.add_argument(
        "--accuracy", type=_accuracy, default=GOAL, help="the goal, a share; default: %(default)s"
    )
    parser.add_argument("--json", action="store_true", help="print a list for scripts")
    options = parser.parse_args(arguments)
    try:
        found = [measure(run, options.accuracy) for run in options.runs]
    except (OSError, ValueError) as error:
        print(f"time_to_accuracy: {first_line(error)}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print(*make_table(HEAD, map(make_row, found), numbers=range(1, len(HEAD))), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
