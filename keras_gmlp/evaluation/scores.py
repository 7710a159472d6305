"""Scores of a classifier from its predictions: of each class, over all images, of its confidence.

Requires NumPy and scikit-learn only.
"""

import dataclasses

import numpy as np

BINS = 15


@dataclasses.dataclass(frozen=True)
class Predictions:
    """Predictions of a classifier for labelled images, in order.

    Attributes:
        names: File of each image, or its place in a data set.
        classes: Class names.
        labels: Indices of the true classes, `(samples,)`.
        predictions: Indices of the most probable classes, `(samples,)`.
        probabilities: Probabilities of the most probable classes, `(samples,)`.
        log_likelihoods: Logarithms of the probabilities of the true classes, `(samples,)`.
        ranks: Number of classes that are more probable than the true one, `(samples,)`.
        known: Whether the model takes each image for one of its classes, `(samples,)`; `None` if
            it is not calibrated.
    """

    names: tuple[str, ...]
    classes: tuple[str, ...]
    labels: np.ndarray
    predictions: np.ndarray
    probabilities: np.ndarray
    log_likelihoods: np.ndarray
    ranks: np.ndarray
    known: np.ndarray | None = None

    @property
    def correct(self):
        """Whether each prediction is the true class, `(samples,)`."""
        return self.labels == self.predictions


def rank_classes(logits, labels, columns, temperature=1.0):
    """Returns what `Predictions` holds of logits, a dict."""
    shifted = (logits - logits.max(axis=-1, keepdims=True)) / temperature
    logs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    of_labels = np.take_along_axis(logs, labels[:, None], axis=-1)
    return {
        "predictions": np.asarray(columns)[logits.argmax(axis=-1)],
        "probabilities": np.exp(logs.max(axis=-1)),
        "log_likelihoods": of_labels[:, 0],
        "ranks": np.count_nonzero(logs > of_labels, axis=-1),
    }


def first_columns(labels):
    """Returns a dict from each class name to its first place.

    Example:
        >>> first_columns(["cat", "dog", "cat"])
        {'cat': 0, 'dog': 1}
    """
    columns = {}
    for place, label in enumerate(labels):
        columns.setdefault(label, place)
    return columns


def score(result, samples="images"):
    """Scores predictions.

    Args:
        result: `Predictions` of at least one image, or text.
        samples: The key of their number.

    Returns:
        A dict that JSON can hold: `images` (their number), `accuracy`, `top5_accuracy` (with more
        than five classes), `balanced_accuracy` (mean recall of the classes with images),
        `calibration_error` (see `calibration_error`), `log_likelihood` (mean over the images, in
        nats), `rejected` (share of the images that a calibrated model takes for none of its
        classes; the other scores count them like any image), `classes` (`label`, `precision`,
        `recall`, `f1` and `images` of each class with images) and `confusion` (`label`,
        `prediction` and number of `images` of each pair that occurs). Shares are in [0, 1]; the
        precision of a class that is never predicted is 0.
    """
    from sklearn.metrics import precision_recall_fscore_support

    present = np.unique(result.labels)
    precision, recall, f1, support = precision_recall_fscore_support(
        result.labels, result.predictions, labels=present, zero_division=0
    )
    scores = {samples: len(result.labels), "accuracy": _rounded(result.correct.mean())}
    if len(result.classes) > 5:
        scores["top5_accuracy"] = _rounded(np.mean(result.ranks < 5))
    scores |= {
        "balanced_accuracy": _rounded(recall.mean()),
        "calibration_error": _rounded(calibration_error(result.probabilities, result.correct)),
        "log_likelihood": _rounded(result.log_likelihoods.mean()),
    }
    if result.known is not None:
        scores["rejected"] = _rounded(np.mean(~result.known))
    scores["classes"] = [
        {
            "label": result.classes[index],
            "precision": _rounded(precision[i]),
            "recall": _rounded(recall[i]),
            "f1": _rounded(f1[i]),
            samples: int(support[i]),
        }
        for i, index in enumerate(present)
    ]
    both = np.stack([result.labels, result.predictions], axis=-1)
    pairs, counts = np.unique(both, axis=0, return_counts=True)
    scores["confusion"] = [
        {
            "label": result.classes[label],
            "prediction": result.classes[prediction],
            samples: int(count),
        }
        for (label, prediction), count in zip(pairs, counts, strict=True)
    ]
    return scores


def calibration_error(probabilities, correct, bins=BINS):
    """Returns the expected calibration error in [0, 1] (Guo et al., 2017).

    It is the mean over all images of the difference between the accuracy and the mean probability
    of an image's bin. Paper: https://arxiv.org/abs/1706.04599

    Args:
        probabilities: Probabilities of the predicted classes, `(samples,)`.
        correct: Whether the predictions are the true classes, `(samples,)`.
        bins: Number of bins of equal width.

    Example:
        >>> round(float(calibration_error([0.9, 0.9, 0.6, 0.6], [1, 1, 1, 0])), 4)
        0.1
    """
    counts, means, accuracies = bin_probabilities(probabilities, correct, bins)
    return np.sum(counts * np.abs(accuracies - means)) / counts.sum()


def bin_probabilities(probabilities, correct, bins=BINS):
    """Groups predictions by their probability in bins `(0, 1/bins]`, ..., `(1 - 1/bins, 1]`."""
    probabilities = np.asarray(probabilities, "float64")
    places = np.clip(np.ceil(probabilities * bins).astype(int) - 1, 0, bins - 1)
    counts = np.bincount(places, minlength=bins)
    total, right = (
        np.bincount(places, weights=values, minlength=bins) for values in (probabilities, correct)
    )
    return counts, total / np.maximum(counts, 1), right / np.maximum(counts, 1)


def _rounded(value):
    return round(float(value), 6)


def confusion(labels, predictions, classes):
    """Returns counts `(classes, classes)`: true classes in rows, predicted classes in columns."""
    counts = np.zeros((classes, classes), int)
    np.add.at(counts, (labels, predictions), 1)
    return counts
