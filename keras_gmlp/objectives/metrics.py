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

    def __init__(self, name="accuracy", dtype=None):
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

    def __init__(self, name="perplexity", dtype=None):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        return super().update_state(token_cross_entropy(y_true, y_pred), sample_weight)

    def result(self):
        return ops.exp(super().result())


class ConfusionMetric(keras.metrics.Metric):
    """Metric of the confusion matrix; labels as for `CrossEntropy`, of rows the largest counts."""

    _direction = "up"  # see `Accuracy`

    def __init__(self, classes=2, name=None, dtype=None):
        super().__init__(name=name, dtype=dtype)
        if classes < 2:
            raise ValueError(f"classes must be at least 2; received {classes}.")
        self.classes = classes
        self.confusion = self.add_variable((classes, classes), "zeros", name="confusion")

    def score(self, confusion):
        """Returns the metric of a confusion matrix: rows are true classes, columns predictions."""
        raise NotImplementedError

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_pred = ops.convert_to_tensor(y_pred)
        y_true = as_rows(ops.convert_to_tensor(y_true), y_pred)
        true, predicted = (
            ops.one_hot(ops.argmax(rows, axis=-1), self.classes, dtype=self.dtype)
            for rows in (y_true, y_pred)
        )
        true = ops.where(ops.isnan(y_true[:, :1]), np.nan, true)  # a label that is no class
        if sample_weight is not None:
            weight = ops.cast(ops.convert_to_tensor(sample_weight), self.dtype)
            true = true * ops.reshape(weight, (-1, 1))
        # A sum of products: a matrix product may round on accelerators.
        self.confusion.assign_add(ops.sum(true[:, :, None] * predicted[:, None, :], axis=0))

    def result(self):
        confusion = ops.convert_to_tensor(self.confusion)
        return ops.where(ops.isnan(ops.sum(confusion)), np.nan, self.score(confusion))

    def get_config(self):
        return {**super().get_config(), "classes": self.classes}


@keras.saving.register_keras_serializable("keras_gmlp")
class MatthewsCorrelation(ConfusionMetric):
    """Matthews correlation coefficient in [-1, 1], 0 if only one class is predicted.

    For more than two classes it is Gorodkin's R_K, as in scikit-learn.

    Args:
        classes: Number of classes.

    Example:
        >>> metric = MatthewsCorrelation()
        >>> logits = [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]
        >>> round(float(metric([1, 1, 1, 0], logits)), 4)  # 1 / sqrt(3)
        0.5774
    """

    def __init__(self, classes=2, name="matthews_correlation", dtype=None):
        super().__init__(classes, name, dtype)

    def score(self, confusion):
        # Shares, not counts: products of counts leave the integers of float32 early.
        shares = confusion / ops.maximum(ops.sum(confusion), keras.config.epsilon())
        true, predicted = ops.sum(shares, axis=1), ops.sum(shares, axis=0)
        covariance = ops.trace(shares) - ops.sum(true * predicted)
        spread = (1 - ops.sum(true**2)) * (1 - ops.sum(predicted**2))
        used = [ops.sum(ops.cast(side > 0, "int32")) for side in (true, predicted)]
        empty = ops.logical_or(used[0] < 2, used[1] < 2)
        return ops.where(empty, 0.0, covariance / ops.sqrt(ops.where(empty, 1.0, spread)))


@keras.saving.register_keras_serializable("keras_gmlp")
class PredictedClasses(ConfusionMetric):
    """Number of classes that are predicted at least once.

    It is 1 if training has failed to separate the classes, although accuracy and F1 may look good.

    Args:
        classes: Number of classes.

    Example:
        >>> metric = PredictedClasses()
        >>> float(metric([1, 0, 1], [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]))
        1.0
    """

    def __init__(self, classes=2, name="predicted_classes", dtype=None):
        super().__init__(classes, name, dtype)

    def score(self, confusion):
        return ops.sum(ops.cast(ops.sum(confusion, axis=0) > 0, self.dtype))


@keras.saving.register_keras_serializable("keras_gmlp")
class F1(ConfusionMetric):
    """F1 score in [0, 1]: the harmonic mean of precision and recall.

    Args:
        classes: Number of classes.
        positive: Index of the class that is searched for, or `None` for the mean over all
            classes (macro). Defaults to 1, as in GLUE.
        name, dtype: See `keras.metrics.Metric`.

    Example:
        >>> metric = F1()
        >>> logits = [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]
        >>> round(float(metric([1, 1, 1, 0], logits)), 4)  # precision 1, recall 2/3
        0.8
    """

    def __init__(self, classes=2, positive=1, name="f1", dtype=None):
        super().__init__(classes, name, dtype)
        if positive is not None and not 0 <= positive < classes:
            raise ValueError(
                f"positive must be the index of one of {classes} classes, or None; "
                f"received {positive}."
            )
        self.positive = positive

    def score(self, confusion):
        total = ops.sum(confusion, axis=0) + ops.sum(confusion, axis=1)
        scores = 2 * ops.diagonal(confusion) / ops.where(total > 0, total, 1.0)
        return ops.mean(scores) if self.positive is None else scores[self.positive]

    def get_config(self):
        return {**super().get_config(), "positive": self.positive}


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

    def __init__(self, classes, name="mean_average_precision", dtype=None):
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
