"""Predictions of a classifier and their scores, and how its classes match those of the data."""

import dataclasses
import functools

import numpy as np

from keras_gmlp.utils.errors import first_of, printable

BINS = 15
NAMED = 10  # classes that a message lists


@dataclasses.dataclass(frozen=True)
class Predictions:
    """Predictions of a classifier for labelled images or texts, in order."""

    names: tuple[str, ...]  # file of each image, or its place in a data set; or the text
    classes: tuple[str, ...]
    labels: np.ndarray  # indices of the true classes
    predictions: np.ndarray  # indices of the most probable classes
    probabilities: np.ndarray  # of these
    log_likelihoods: np.ndarray  # logarithms of the probabilities of the true classes
    ranks: np.ndarray  # how many classes are more probable than the true one
    known: np.ndarray | None = None  # what a calibrated model takes for one of its classes
    errors: list | None = None  # of images, the worst ones: pairs of an index and the uint8 image

    @property
    def correct(self):
        """Whether each prediction is the true class, `(samples,)`."""
        return self.labels == self.predictions

    @property
    def given(self):
        """The name of each predicted class, `(samples,)`."""
        return np.array(self.classes)[self.predictions]

    @property
    def severities(self):
        """How wrong each prediction is: its probability, or 0 if it is right, `(samples,)`."""
        return np.where(self.correct, 0, self.probabilities)

    def describe(self, index):
        """Returns the true class of a sample, the predicted one and its probability."""
        true, predicted = (self.classes[a[index]] for a in (self.labels, self.predictions))
        return true, predicted, self.probabilities[index]

    def table(self, name="path"):
        """Yields the rows of a table, the head first."""
        flags = [self.correct] if self.known is None else [self.correct, self.known]
        head = (name, "label", "prediction", "probability", "correct", "known")
        yield head[: 4 + len(flags)]
        for index, (sample, *row) in enumerate(zip(self.names, *flags, strict=True)):
            true, predicted, probability = self.describe(index)
            yield sample, true, predicted, f"{probability:.6f}", *map(int, row)

    def score(self, samples="images"):
        """Returns the scores as `evaluate` describes them; `samples` is the key of their number."""
        from sklearn.metrics import precision_recall_fscore_support

        present = np.unique(self.labels)
        columns = precision_recall_fscore_support(
            self.labels, self.predictions, labels=present, zero_division=0
        )
        scores = {"accuracy": self.correct.mean()}
        if len(self.classes) > 5:
            scores["top5_accuracy"] = np.mean(self.ranks < 5)
        scores["balanced_accuracy"] = columns[1].mean()
        scores["calibration_error"] = calibration_error(self.probabilities, self.correct)
        scores["log_likelihood"] = self.log_likelihoods.mean()
        if self.known is not None:
            scores["rejected"] = np.mean(~self.known)
        scores = {samples: len(self.labels), **round_scores(scores)}
        scores["classes"] = [
            {
                "label": self.classes[index],
                **round_scores(dict(zip(("precision", "recall", "f1"), shares, strict=True))),
                samples: int(count),
            }
            for index, *shares, count in zip(present, *columns, strict=True)
        ]
        both = np.stack([self.labels, self.predictions], axis=-1)
        pairs, counts = np.unique(both, axis=0, return_counts=True)
        scores["confusion"] = [
            {"label": self.classes[true], "prediction": self.classes[found], samples: int(count)}
            for (true, found), count in zip(pairs, counts, strict=True)
        ]
        return scores


def rank_classes(logits, labels, columns, temperature=1.0):
    """Computes the fields of `Predictions` from logits, a dict."""
    shifted = (logits - logits.max(axis=-1, keepdims=True)) / temperature
    logs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    of_labels = np.take_along_axis(logs, labels[:, None], axis=-1)
    return {
        "predictions": np.asarray(columns)[logits.argmax(axis=-1)],
        "probabilities": np.exp(logs.max(axis=-1)),
        "log_likelihoods": of_labels[:, 0],
        "ranks": np.count_nonzero(logs > of_labels, axis=-1),
    }


class ClassScorer:
    """Compares logits with one class each; classes are matched by name, of equal ones the first."""

    def __init__(self, model, labels, known):
        columns = {label: place for place, label in reversed([*enumerate(model.labels)])}
        # The model's class for each class of the data, -1 for those that are left out.
        self.places = np.array([columns[label] if label in known else -1 for label in labels])
        self.used = self.places >= 0
        self._merged = np.array([columns[label] for label in model.labels])
        self._confidence = model.confidence
        self.collect = functools.partial(Predictions, classes=model.labels)

    def find_truth(self, labels):
        """Returns the model's classes for those of the data."""
        return self.places[labels]

    def read(self, logits, labels):
        """Computes the fields of `Predictions` from logits and classes of the data, a dict."""
        logits, labels = logits.astype("float64"), self.find_truth(labels)
        found = rank_classes(logits, labels, self._merged, self._confidence.temperature)
        known = self._confidence.is_known(logits)
        return {"labels": labels, **found, **({} if known is None else {"known": known})}


def match_classes(models, labels, name):
    """Returns the class names that the data and all models have, a set."""
    known = set(labels).intersection(*(model.labels for model in models))
    if not known:
        received, expected = (
            first_of([*map(printable, names)], NAMED) for names in (labels, models[0].labels)
        )
        raise ValueError(
            f"{printable(name)}: none of its classes is known to "
            f"{' and '.join(printable(model.path) for model in models)}; received {received}; "
            f"expected {expected}. Name the classes as the model names them."
        )
    return known


def calibration_error(probabilities, correct, bins=BINS):
    """Returns the expected calibration error in [0, 1] (https://arxiv.org/abs/1706.04599)."""
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


def round_score(value):
    return round(float(value), 6)


def round_scores(scores):
    """Returns scores with six digits, a dict."""
    return {name: round_score(value) for name, value in scores.items()}
