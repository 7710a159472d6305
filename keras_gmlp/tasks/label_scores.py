"""What tasks of any number of labels share: loss, thresholds, predictions and their scores."""

import dataclasses
import functools

import numpy as np

from keras_gmlp.tasks.scores import calibration_error, round_scores
from keras_gmlp.tasks.task import EVALUATED_SAMPLES
from keras_gmlp.utils.errors import one_line_errors


class SeveralLabels:
    """Mixin for tasks whose samples have any number of labels; use it with a subclass of `Task`.

    A task adds `find_rows(data, split, samples)`, which returns rows of 0 and 1.
    """

    headline = "mean_average_precision"
    several = True

    def objective(self, model, data=None) -> tuple:
        import keras

        from keras_gmlp.objectives.metrics import MeanAveragePrecision

        smoothing = 0.0 if data is None else self.label_smoothing
        loss = keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=smoothing)
        return loss, [MeanAveragePrecision(model.output_shape[-1])]

    @classmethod
    def score_logits(cls, logits, truth) -> dict[str, float]:
        from keras_gmlp.objectives.metrics import MeanAveragePrecision

        return round_scores({cls.headline: MeanAveragePrecision(truth.shape[1])(truth, logits)})

    def write_card(self, path, model, data, metadata) -> None:
        metadata = {**metadata, "thresholds": self.find_thresholds(model, data)}
        super().write_card(path, model, data, metadata)

    def find_thresholds(self, model, data):
        """Returns the threshold of each class, chosen on samples for validation or training."""
        import keras

        from keras_gmlp.objectives.metrics import choose_thresholds

        split = "train" if data.validation is None else "validation"
        batches = self.evaluation_batches(data, split, EVALUATED_SAMPLES)
        with one_line_errors():
            logits = model.predict(batches, verbose=0)
        probabilities = keras.ops.convert_to_numpy(keras.ops.sigmoid(logits))
        return choose_thresholds(self.find_rows(data, split, len(logits)), probabilities)


@dataclasses.dataclass(frozen=True)
class LabelPredictions:
    """Predictions of any number of labels for labelled images or texts, in order."""

    names: tuple[str, ...]  # file of each image, or its place in a data set; or the text
    labels: tuple[str, ...]
    truth: np.ndarray  # whether each label applies, `(samples, labels)`
    probabilities: np.ndarray  # `(samples, labels)`
    thresholds: np.ndarray  # least probability of a label that the model gives
    left_out: tuple[str, ...] = ()  # labels of the model with which they are not compared
    errors: list | None = None  # of images, the worst ones: pairs of an index and the uint8 image

    @property
    def classes(self):
        """All labels of the model."""
        return *self.labels, *self.left_out

    @property
    def given(self):
        """Whether the model gives each label, `(samples, labels)`."""
        return self.probabilities >= self.thresholds

    @property
    def correct(self):
        """Whether all labels of each sample are right, `(samples,)`."""
        return (self.given == self.truth).all(axis=1)

    @property
    def severities(self):
        """The largest error of a label that is wrong, or 0, `(samples,)`."""
        return self._errors().max(axis=1)

    def _errors(self):
        return np.abs(self.probabilities - self.truth) * (self.given != self.truth)

    def list_labels(self, chosen):
        """Returns the names of the labels of a sample, given its row of `truth` or `given`."""
        return [label for label, applies in zip(self.labels, chosen, strict=True) if applies]

    def describe(self, index):
        """Returns a sample's labels, what the model says of the worst one, and how sure it is."""
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
        """Scores the predictions: each label, and all samples."""
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
        self._own, self._classes = [labels.index(label) for label in names], len(classifier.labels)
        self._rows = np.eye(len(labels)) if rows is None else rows
        self._probabilities = classifier.confidence.probabilities
        self.used = np.ones(len(self._rows), bool)
        self.collect = functools.partial(
            LabelPredictions,
            labels=names,
            thresholds=np.array(classifier.confidence.thresholds)[self._columns],
            left_out=tuple(label for label in classifier.labels if label not in known),
        )

    def find_truth(self, labels):
        """Returns whether each label of the model applies, given rows of labels or their places."""
        rows = labels if labels.ndim == 2 else self._rows[labels]
        truth = np.zeros((len(rows), self._classes), bool)
        truth[:, self._columns] = rows[:, self._own]
        return truth

    def read(self, logits, labels):
        """Computes the fields of `LabelPredictions` from logits and labels of the data, a dict."""
        fields = {"truth": self.find_truth(labels), "probabilities": self._probabilities(logits)}
        return {name: array[:, self._columns] for name, array in fields.items()}
