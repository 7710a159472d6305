"""Metrics of classification that a mean over batches cannot give: Matthews correlation and F1.

Each adds up a confusion matrix, so that the result over a data set does not depend on its batches.
"""

import keras
from keras import ops

from keras_gmlp.losses import as_rows


class ConfusionMetric(keras.metrics.Metric):
    """Metric of the confusion matrix; the base class.

    A subclass implements `score`.

    Args:
        classes: Number of classes, at least 2.

    Call arguments of `update_state`:
        y_true: Class indices `(batch,)` or `(batch, 1)`, or rows of probabilities
            `(batch, classes)`, of which the largest counts.
        y_pred: Logits `(batch, classes)`.
        sample_weight: Weights `(batch,)` or `(batch, 1)`. Defaults to 1.
    """

    def __init__(self, classes=2, name=None, dtype=None):
        super().__init__(name=name, dtype=dtype)
        if classes < 2:
            raise ValueError(f"classes must be at least 2; received {classes}.")
        self.classes = classes
        self.confusion = self.add_variable(
            (classes, classes), initializer="zeros", name="confusion"
        )

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
        if sample_weight is not None:
            weight = ops.cast(ops.convert_to_tensor(sample_weight), self.dtype)
            true = true * ops.reshape(weight, (-1, 1))
        # A sum of products: a matrix product may round on accelerators.
        self.confusion.assign_add(ops.sum(true[:, :, None] * predicted[:, None, :], axis=0))

    def result(self):
        return self.score(ops.convert_to_tensor(self.confusion))

    def get_config(self):
        return {"classes": self.classes, "name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable("keras_gmlp")
class MatthewsCorrelation(ConfusionMetric):
    """Matthews correlation coefficient in [-1, 1], 0 if one class alone is predicted.

    For more than two classes it is Gorodkin's R_K, as in scikit-learn. Arguments are those of
    `ConfusionMetric`.

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
