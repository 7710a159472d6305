"""Scores of a classifier that gives any number of labels: of each label, and over all images.

Requires NumPy and scikit-learn only.
"""

import dataclasses

import numpy as np

from keras_gmlp.evaluation.scores import calibration_error


@dataclasses.dataclass(frozen=True)
class LabelPredictions:
    """Predictions of any number of labels for labelled images, in order.

    Attributes:
        names: File of each image, or its place in a data set.
        labels: Names of the labels.
        truth: Whether each label applies, `(images, labels)`.
        probabilities: Probability of each label, `(images, labels)`.
        thresholds: Least probability of a label that the model gives, `(labels,)`.
        left_out: Further labels of the model, with which the images are not compared.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    truth: np.ndarray
    probabilities: np.ndarray
    thresholds: np.ndarray
    left_out: tuple[str, ...] = ()

    @property
    def given(self):
        """Whether the model gives each label, `(images, labels)`."""
        return self.probabilities >= self.thresholds

    def list_labels(self, chosen):
        """Returns the names of the labels of one image, given its row of `truth` or `given`."""
        return [label for label, applies in zip(self.labels, chosen, strict=True) if applies]


def score_labels(result):
    """Scores predictions of any number of labels."""
    from sklearn.metrics import average_precision_score

    truth, given = result.truth, result.given
    # Counted here: scikit-learn takes a single column for the two classes of one label.
    right, images, answers = (a.sum(axis=0) for a in (truth & given, truth, given))
    rows = [
        {
            "label": result.labels[i],
            "threshold": _rounded(result.thresholds[i]),
            "average_precision": _rounded(
                average_precision_score(truth[:, i], result.probabilities[:, i])
            ),
            "precision": _rounded(right[i] / max(answers[i], 1)),
            "recall": _rounded(right[i] / images[i]),
            "f1": _rounded(2 * right[i] / (answers[i] + images[i])),
            "images": int(images[i]),
        }
        for i in np.flatnonzero(images)
    ]
    means = {"mean_average_precision": "average_precision", "mean_f1": "f1"} if rows else {}
    return {
        "images": len(truth),
        **{name: _rounded(np.mean([row[key] for row in rows])) for name, key in means.items()},
        "exact_match": _rounded(np.mean((given == truth).all(axis=1))),
        "calibration_error": _rounded(
            calibration_error(result.probabilities.ravel(), truth.ravel())
        ),
        "classes": rows,
    }


def _rounded(value):
    return round(float(value), 6)
