"""Predictions of any number of labels for each image, and their scores; see `tasks.scores`."""

import dataclasses
import functools

import numpy as np

from keras_gmlp.tasks.scores import calibration_error, round_scores


@dataclasses.dataclass(frozen=True)
class LabelPredictions:
    """Predictions of any number of labels for labelled images, in order."""

    names: tuple[str, ...]  # file of each image, or its place in a data set
    labels: tuple[str, ...]
    truth: np.ndarray  # whether each label applies, `(images, labels)`
    probabilities: np.ndarray  # `(images, labels)`
    thresholds: np.ndarray  # least probability of a label that the model gives
    left_out: tuple[str, ...] = ()  # labels of the model with which the images are not compared
    errors: list = ()  # pairs of an index and the uint8 image, those with the largest errors

    @property
    def classes(self):
        """All labels of the model."""
        return *self.labels, *self.left_out

    @property
    def given(self):
        """Whether the model gives each label, `(images, labels)`."""
        return self.probabilities >= self.thresholds

    @property
    def correct(self):
        """Whether all labels of each image are right, `(images,)`."""
        return (self.given == self.truth).all(axis=1)

    @property
    def severities(self):
        """The largest error of a label that is wrong, or 0, `(images,)`."""
        return self._errors().max(axis=1)

    def _errors(self):
        return np.abs(self.probabilities - self.truth) * (self.given != self.truth)

    def list_labels(self, chosen):
        """Returns the names of the labels of one image, given its row of `truth` or `given`."""
        return [label for label, applies in zip(self.labels, chosen, strict=True) if applies]

    def describe(self, index):
        """Returns an image's labels, what the model says of the worst one, and how sure it is."""
        label = self._errors()[index].argmax()
        true = ", ".join(self.list_labels(self.truth[index])) or "no label"
        name, probability = self.labels[label], self.probabilities[index, label]
        if self.given[index, label]:
            return true, name, probability
        return true, f"not {name}", 1 - probability

    def table(self, name="path"):
        """Yields the rows of a table, the head first."""
        shares = (f"probability {label}" for label in self.labels)
        yield name, "labels", "predictions", "correct", *shares
        columns = self.names, self.truth, self.given, self.correct, self.probabilities
        for sample, true, given, correct, probabilities in zip(*columns, strict=True):
            texts = ("|".join(self.list_labels(row)) for row in (true, given))
            yield sample, *texts, int(correct), *(f"{share:.6f}" for share in probabilities)

    def score(self, samples="images"):
        """Scores the predictions: each label, and all images."""
        from sklearn.metrics import average_precision_score

        truth, given = self.truth, self.given
        # Counted here: scikit-learn takes a single column for the two classes of one label.
        right, images, chosen = (a.sum(axis=0) for a in (truth & given, truth, given))
        rows = []
        for i in np.flatnonzero(images):
            average = average_precision_score(truth[:, i], self.probabilities[:, i])
            row = {
                "threshold": self.thresholds[i],
                "average_precision": average,
                "precision": right[i] / max(chosen[i], 1),
                "recall": right[i] / images[i],
                "f1": 2 * right[i] / (chosen[i] + images[i]),
            }
            rows.append({"label": self.labels[i], **round_scores(row), samples: int(images[i])})
        names = ("average_precision", "f1") if rows else ()
        scores = {f"mean_{name}": np.mean([row[name] for row in rows]) for name in names}
        scores["exact_match"] = self.correct.mean()
        scores["calibration_error"] = calibration_error(self.probabilities.ravel(), truth.ravel())
        return {samples: len(truth), **round_scores(scores), "classes": rows}


class LabelScorer:
    """Compares logits with rows of labels; see `ClassScorer`."""

    def __init__(self, classifier, labels, rows, known):
        names = tuple(label for label in labels if label in known)
        self._columns = [classifier.labels.index(label) for label in names]
        own = [labels.index(label) for label in names]
        self._rows = (np.eye(len(labels)) if rows is None else rows)[:, own].astype(bool)
        self._probabilities = classifier.confidence.probabilities
        self.used = np.ones(len(self._rows), bool)
        self.collect = functools.partial(
            LabelPredictions,
            labels=names,
            thresholds=np.array(classifier.confidence.thresholds)[self._columns],
            left_out=tuple(label for label in classifier.labels if label not in known),
        )

    def read(self, logits, indices):
        """Computes the fields of `LabelPredictions` from logits and rows of the data, a dict."""
        probabilities = self._probabilities(logits)[:, self._columns]
        return {"truth": self._rows[indices], "probabilities": probabilities}
