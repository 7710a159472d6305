"""Scores from predictions, worked out by hand."""

import numpy as np
import pytest

from keras_gmlp.tasks.scores import Predictions, bin_probabilities, calibration_error

pytestmark = pytest.mark.once


def predictions(labels, answers, probabilities=None, ranks=None, classes="abc"):
    labels, answers = np.array(labels), np.array(answers)
    probabilities = np.full(len(labels), 0.5) if probabilities is None else probabilities
    ranks = (labels != answers).astype(int) if ranks is None else ranks
    names = tuple(map(str, range(len(labels))))
    return Predictions(
        names, tuple(classes), labels, answers, probabilities, np.log(probabilities), ranks
    )


def test_scores_by_hand():
    result = predictions([0, 0, 0, 0, 1, 2], [0, 0, 0, 1, 1, 0]).score()
    assert result["images"] == 6
    assert result["accuracy"] == pytest.approx(4 / 6, abs=1e-6)
    assert result["balanced_accuracy"] == pytest.approx((3 / 4 + 1 + 0) / 3, abs=1e-6)
    assert result["calibration_error"] == pytest.approx(4 / 6 - 0.5, abs=1e-6)  # one bin
    assert result["log_likelihood"] == pytest.approx(np.log(0.5), abs=1e-6)
    assert "top5_accuracy" not in result
    assert result["classes"] == [
        {"label": "a", "precision": 0.75, "recall": 0.75, "f1": 0.75, "images": 4},
        {"label": "b", "precision": 0.5, "recall": 1.0, "f1": 0.666667, "images": 1},
        {"label": "c", "precision": 0.0, "recall": 0.0, "f1": 0.0, "images": 1},
    ]
    assert result["confusion"] == [
        {"label": "a", "prediction": "a", "images": 3},
        {"label": "a", "prediction": "b", "images": 1},
        {"label": "b", "prediction": "b", "images": 1},
        {"label": "c", "prediction": "a", "images": 1},
    ]


def test_top_5_counts_the_true_class_among_the_first_five():
    ranks = np.array([0, 4, 5, 6])
    found = predictions([0, 1, 2, 3], [0, 0, 0, 0], ranks=ranks, classes="abcdefg").score()
    assert (found["accuracy"], found["top5_accuracy"]) == (0.25, 0.5)


def test_calibration_error_by_hand():
    # Bins (0, 0.5] and (0.5, 1]: accuracy 1/2 at a mean of 0.4, accuracy 2/3 at a mean of 0.8.
    probabilities, correct = [0.3, 0.5, 0.6, 0.8, 1.0], [0, 1, 1, 0, 1]
    counts, means, accuracies = bin_probabilities(probabilities, correct, 2)
    assert counts.tolist() == [2, 3]
    assert means == pytest.approx([0.4, 0.8])
    assert accuracies == pytest.approx([1 / 2, 2 / 3])
    error = calibration_error(probabilities, correct, 2)
    assert error == pytest.approx(2 / 5 * 0.1 + 3 / 5 * (0.8 - 2 / 3))
    # Of the 15 bins each holds one of them.
    assert calibration_error(probabilities, correct) == pytest.approx((0.3 + 0.5 + 0.4 + 0.8) / 5)
