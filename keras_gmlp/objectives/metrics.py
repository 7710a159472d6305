"""Metrics: accuracy, perplexity, and those that a mean over batches cannot give."""

import keras
import numpy as np
from keras import ops

from keras_gmlp.objectives.losses import as_rows, token_cross_entropy


@keras.saving.register_keras_serializable("keras_gmlp")
def matches(y_true, y_pred):
    """Returns 1 for each sample whose largest logit is at its most probable class, else 0."""
    rows = as_rows(y_true, y_pred)
    found = ops.cast(ops.argmax(rows, axis=-1) == ops.argmax(y_pred, axis=-1), "float32")
    return ops.where(ops.isnan(rows[..., 0]), np.nan, found)


@keras.saving.register_keras_serializable("keras_gmlp")
class Accuracy(keras.metrics.MeanMetricWrapper):
    """Share of correctly classified samples, in [0, 1]; labels as for `CrossEntropy`."""

    _direction = "up"  # where callbacks of Keras look what is better

    def __init__(self, name: str = "accuracy", dtype: str | keras.DTypePolicy | None = None):
        super().__init__(matches, name=name, dtype=dtype)

    def get_config(self):  # without the function, which the class says
        return {"name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable("keras_gmlp")
class Perplexity(keras.metrics.Mean):
    """The exponential of the mean cross-entropy over all masked tokens seen.

    Batches with more masked tokens count more. Arguments of `update_state` are those of
    `MaskedCrossEntropy`.

    Example:
        >>> metric = Perplexity()
        >>> metric.update_state(keras.ops.array([[1]]), keras.ops.log([[[0.75, 0.25]]]))
        >>> round(float(metric.result()), 4)
        4.0
    """

    _direction = "down"  # see `Accuracy`

    def __init__(self, name: str = "perplexity", dtype: str | keras.DTypePolicy | None = None):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        return super().update_state(token_cross_entropy(y_true, y_pred), sample_weight)

    def result(self):
        return ops.exp(super().result())


@keras.saving.register_keras_serializable("keras_gmlp")
class MeanAveragePrecision(keras.metrics.Metric):
    """Mean over the classes of their average precision, in [0, 1], for several labels per sample.

    The average precision of a class is the sum over recall steps of the precision, as in
    scikit-learn, with logits rounded to 1/256 and limited to -16 and 16. Classes without a sample
    do not count. Samples with a share of a label, as in MixUp, count as that share of a sample.

    Args:
        classes: Number of classes.
        name, dtype: See `keras.metrics.Metric`.

    Call arguments of `update_state`:
        y_true: Rows of 0 and 1, or of shares, `(batch, classes)`.
        y_pred: Logits `(batch, classes)`.

    Example:
        >>> metric = MeanAveragePrecision(1)
        >>> round(float(metric([[1], [0], [1]], [[3.0], [2.0], [1.0]])), 4)  # (1 + 2/3) / 2
        0.8333
    """

    _direction = "up"  # see `Accuracy`
    steps, limit = 256, 16

    def __init__(
        self,
        classes: int,
        name: str = "mean_average_precision",
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.classes, self.bins = classes, 2 * self.limit * self.steps + 1
        self.found, self.total = (
            self.add_variable((classes * self.bins,), initializer="zeros", name=name)
            for name in ("found", "total")
        )

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = ops.cast(ops.convert_to_tensor(y_true), self.dtype)
        logits = ops.cast(ops.convert_to_tensor(y_pred), self.dtype)
        logits = ops.clip(logits, -self.limit, self.limit)
        # Higher logits first.
        places = ops.cast(ops.round((self.limit - logits) * self.steps), "int32")
        places = ops.reshape(places + self.bins * ops.arange(self.classes), (-1,))
        for counts, values in ((self.found, y_true), (self.total, ops.ones_like(y_true))):
            sums = ops.segment_sum(ops.reshape(values, (-1,)), places, self.classes * self.bins)
            counts.assign_add(sums)

    def result(self):
        found, total = (
            ops.reshape(ops.convert_to_tensor(counts), (self.classes, self.bins))
            for counts in (self.found, self.total)
        )
        precision = ops.cumsum(found, axis=1) / ops.maximum(ops.cumsum(total, axis=1), 1.0)
        positive = ops.sum(found, axis=1)
        scores = ops.sum(found * precision, axis=1) / ops.where(positive > 0, positive, 1.0)
        present = ops.cast(positive > 0, self.dtype)
        return ops.sum(scores) / ops.maximum(ops.sum(present), 1.0)

    def get_config(self):
        return {**super().get_config(), "classes": self.classes}


def choose_thresholds(rows, probabilities):
    """Returns the threshold of each class with the highest F1: a label applies from there on."""
    rows, probabilities = np.asarray(rows), np.asarray(probabilities, "float64")
    thresholds = []
    for truth, scores in zip(rows.T, probabilities.T, strict=True):
        order = np.argsort(-scores, kind="stable")
        scores = np.append(scores[order], 0.0)
        found, chosen = np.cumsum(truth[order]), np.arange(1, len(truth) + 1)
        f1 = 2 * found / np.maximum(chosen + truth.sum(), 1)
        f1[scores[1:] == scores[:-1]] = -1  # no threshold is between equal ones
        best = int(np.argmax(f1))
        between = (scores[best] + scores[best + 1]) / 2
        thresholds.append(round(float(between), 6) if truth.any() else 0.5)
    return thresholds
