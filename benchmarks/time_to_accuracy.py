"""Epochs and seconds until runs of image classification reached an accuracy.

Seconds are those of training, until the end of the first epoch that reaches the goal. The accuracy
is that in history.csv: of the validation images or, in a run without them, of the test images.
Compare seconds only between runs that had the same machine and as many threads to themselves.
"""

import statistics
import sys
from pathlib import Path

from benchmarks.harness import make_parser, show_table
from keras_gmlp.training.run_directory import read_history


def make_row(directory, goal):
    """Returns a row of the table: when a run reached an accuracy."""
    history = read_history(Path(directory) / "history.csv")
    if not history or int(history[0]["epoch"]) or "val_accuracy" not in history[0]:
        raise ValueError(f"{directory}: no whole history of a run of image classification.")
    seconds = [float(epoch["seconds"]) for epoch in history]
    accuracies = [float(epoch["val_accuracy"]) for epoch in history]
    reached = next((i for i, found in enumerate(accuracies, 1) if found >= goal), None)
    return {
        "": str(directory),
        f"epochs to {100 * goal:.4g} %": reached or "not reached",
        "seconds": sum(seconds[:reached]) if reached else "",
        "epochs trained": len(history),
        "median seconds of an epoch": statistics.median(seconds),
        "best accuracy": f"{100 * max(accuracies):.2f} %",
    }


def main(arguments=None):
    parser = make_parser("time_to_accuracy", __doc__)
    parser.add_argument("runs", metavar="RUN", nargs="+", help="folder of a run")
    parser.add_argument("--accuracy", type=float, default=0.885, help="default: 0.885")
    options = parser.parse_args(arguments)
    try:
        rows = [make_row(run, options.accuracy) for run in options.runs]
    except (ValueError, OSError) as error:
        sys.exit(f"time_to_accuracy: {error}")
    show_table(rows, parser, arguments or sys.argv[1:], options.csv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
