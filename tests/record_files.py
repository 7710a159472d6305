"""The records of trained runs in docs/: their folders and figures."""

import statistics
from pathlib import Path

from keras_gmlp.training.run_directory import read_history
from keras_gmlp.utils.files import read_json

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def find_seeds(place):
    """Returns the folders of a run, one for each seed."""
    return sorted(DOCS.glob(f"{place}-s[0-9]"))


def mean_of(folders, key):
    """Returns the mean of a figure of metrics.json over folders, in percent."""
    return statistics.mean(
        100 * read_json(Path(folder) / "metrics.json")[key] for folder in folders
    )


def error_of(scores):
    """Returns the standard error of the mean of scores."""
    return statistics.stdev(scores) / len(scores) ** 0.5


def read_accuracies(folder):
    """Returns the accuracy after each epoch, in percent."""
    return [100 * float(row["val_accuracy"]) for row in read_history(folder / "history.csv")]
