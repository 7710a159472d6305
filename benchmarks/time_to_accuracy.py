"""Epochs and seconds until runs of image classification reached an accuracy.

Seconds are those of training, until the end of the first epoch that reaches the goal. The accuracy
is that in history.csv: of the validation images or, in a run without them, of the test images.
Compare seconds only between runs that had the same machine and as many threads to themselves.
"""

import statistics
import sys
from pathlib import Path

from benchmarks.harness import make_parser, show_table
from keras_gmlp.training.run_directory import read_history, read_recipe

GOAL = 0.885


def measure(directory, goal=GOAL):
    """Returns when a run reached an accuracy, a dict; `epochs` is `None` if none did."""
    rows = read_history(Path(directory) / "history.csv")
    if not rows or int(rows[0]["epoch"]) or "val_accuracy" not in rows[0]:
        raise ValueError(f"{directory}: no whole history of a run of image classification.")
    seconds = [float(row["seconds"]) for row in rows]
    accuracies = [float(row["val_accuracy"]) for row in rows]
    reached = next((i for i, found in enumerate(accuracies, 1) if found >= goal), None)
    held_out = read_recipe(directory).get("validation")
    return {
        "measured_on": "test" if held_out is None else "validation",
        "epochs": reached,
        "seconds": None if reached is None else round(sum(seconds[:reached]), 2),
        "trained": len(rows),
        "epoch_seconds": round(statistics.median(seconds), 1),
        "best": max(accuracies),
    }


def make_row(run, goal):
    found = measure(run, goal)
    reached = found["epochs"] is not None
    return {
        "": str(run),
        "measured on": found["measured_on"],
        f"epochs to {100 * goal:.4g} %": found["epochs"] if reached else "not reached",
        "seconds": found["seconds"] if reached else "",
        "epochs trained": found["trained"],
        "median seconds of an epoch": found["epoch_seconds"],
        "best accuracy": f"{100 * found['best']:.2f} %",
    }


def main(arguments=None):
    parser = make_parser("time_to_accuracy", __doc__)
    parser.add_argument("runs", metavar="RUN", nargs="+", help="folder of a run")
    parser.add_argument("--accuracy", type=float, default=GOAL, help="default: %(default)s")
    options = parser.parse_args(arguments)
    try:
        rows = [make_row(run, options.accuracy) for run in options.runs]
    except (ValueError, OSError) as error:
        sys.exit(f"time_to_accuracy: {error}")
    show_table(rows, parser, arguments or sys.argv[1:], options.csv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
