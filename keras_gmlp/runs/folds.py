"""Cross-validation: a run for each fold of the training images, and one summary."""

import dataclasses
import statistics
from pathlib import Path

from keras_gmlp.runs.settings import RunSettings
from keras_gmlp.utils.files import write_json


def fold_settings(settings: RunSettings, count: int) -> list[RunSettings]:
    """Returns the settings of the run on each fold.

    Args:
        settings: `RunSettings`.
        count: Number of folds.

    Returns:
        A list of `RunSettings`, whose folders are `fold-1` and so on in that of the settings. Each
        run tests the fold that it does not train on; nothing reads the test images.

    Raises:
        ValueError: If there are fewer than two folds.
    """
    if count < 2:
        raise ValueError(f"folds must be at least 2; received {count}.")
    return [
        dataclasses.replace(
            settings, folds=count, fold=fold, out=str(Path(settings.out, f"fold-{fold}"))
        )
        for fold in range(1, count + 1)
    ]


def write_folds(directory, results):
    """Writes and returns the mean, standard deviation and each accuracy of the folds."""
    from keras_gmlp.training.devices import is_main

    accuracies = [metrics["test_accuracy"] for metrics in results]
    summary = {
        "folds": len(accuracies),
        "accuracy_mean": round(statistics.mean(accuracies), 6),
        "accuracy_deviation": round(statistics.stdev(accuracies), 6),
        "accuracies": accuracies,
    }
    if is_main():
        write_json(Path(directory) / "folds.json", summary)
    return summary
