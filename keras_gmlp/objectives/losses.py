"""Losses: classification by indices or rows of probabilities, and masked tokens."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops


def as_rows(y_true, y_pred, label_smoothing=0.0):
    """Converts labels to smoothed rows of probabilities: NaN for an index that is not a class."""
    # MixUp and CutMix turn labels into rows, while validation data keep indices: `fit` uses both.
    classes = y_pred.shape[-1]
    if len(y_true.shape) == len(y_pred.shape) and y_true.shape[-1] == classes:
        rows = ops.cast(y_true, y_pred.dtype)
    else:
        indices = ops.cast(ops.reshape(y_true, ops.shape(y_pred)[:-1]), "int32")
        known = _are_classes(indices, classes)
        # PyTorch has no rows for indices beyond the classes.
        rows = ops.one_hot(ops.where(known, indices, 0), classes, dtype=y_pred.dtype)
        rows = ops.where(known[..., None], rows, np.nan)
    if label_smoothing:
        rows = rows * (1.0 - label_smoothing) + label_smoothing / classes
    return rows


def _are_classes(indices, classes):
    return ops.logical_and(indices >= 0, indices < classes)


@keras.saving.register_keras_serializable("keras_gmlp")
class CrossEntropy(keras.losses.Loss):
    """Cross-entropy between logits and class indices or rows of probabilities.

    Args:
        label_smoothing: Probability, in [0, 1), that is spread evenly over all classes.
        class_weights: Factor of each class, `(classes,)`: the part of the loss that a row of
            probabilities gives to a class is multiplied by it. `None` for equal ones.

    Call arguments:
        y_true: Integers of shape `(batch,)` or `(batch, 1)`, or rows `(batch, classes)`.
        y_pred: Logits `(batch, classes)`.

    Example:
        >>> loss = CrossEntropy()
        >>> logits = keras.ops.log([[0.5, 0.25, 0.25]])
        >>> round(float(loss(keras.ops.array([1]), logits)), 4)  # log 4
        1.3863
    """

    def __init__(
        self,
        label_smoothing: float = 0.0,
        name: str = "cross_entropy",
        class_weights: Sequence[float] | None = None,
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        self.label_smoothing = label_smoothing
        self.class_weights = None if class_weights is None else [float(w) for w in class_weights]

    def call(self, y_true, y_pred):
        if y_pred.shape[-1] == 1:  # its probability is always 1
            raise ValueError("one logit cannot tell two classes apart; build with classes=2.")
        rows = as_rows(y_true, y_pred, self.label_smoothing)
        if self.class_weights is None:
            return ops.categorical_crossentropy(rows, y_pred, from_logits=True)
        rows = rows * ops.convert_to_tensor(self.class_weights, rows.dtype)
        # The operator of TensorFlow has the gradient of rows that sum to 1.
        return -ops.sum(rows * ops.log_softmax(y_pred), axis=-1)

    def get_config(self):
        own = {"label_smoothing": self.label_smoothing, "class_weights": self.class_weights}
        return {**super().get_config(), **own}


@keras.saving.register_keras_serializable("keras_gmlp")
class MaskedCrossEntropy(keras.losses.Loss):
    """Mean cross-entropy over masked tokens, whatever their number in each text.

    Keras' default divides by all places. This loss divides by the sum of the weights, so a place
    of weight 0 does not count.

    Call arguments:
        y_true: Ids of the masked tokens, `(batch, masked)`.
        y_pred: Logits, `(batch, masked, words)`.
        sample_weight: Weights, `(batch, masked)`.

    Example:
        >>> loss = MaskedCrossEntropy()
        >>> logits = keras.ops.log([[[0.5, 0.5], [0.1, 0.9]]])
        >>> weights = keras.ops.array([[1.0, 0.0]])  # log 2
        >>> round(float(loss(keras.ops.array([[1, 0]]), logits, sample_weight=weights)), 4)
        0.6931
    """

    def __init__(self, name: str = "masked_cross_entropy", **kwargs):
        super().__init__(name=name, **{"reduction": "mean_with_sample_weight", **kwargs})

    def call(self, y_true, y_pred):
        return token_cross_entropy(y_true, y_pred)


def token_cross_entropy(y_true, y_pred):
    """Returns the cross-entropy of each token, of the shape of the ids: NaN for unknown ids."""
    # As one list of tokens: of logits with three axes PyTorch makes a copy with the words first.
    ids, logits = ops.reshape(y_true, (-1,)), ops.reshape(y_pred, (-1, y_pred.shape[-1]))
    known = _are_classes(ids, logits.shape[-1])
    ids = ops.where(known, ids, 0)
    losses = ops.sparse_categorical_crossentropy(ids, logits, from_logits=True)
    return ops.reshape(ops.where(known, losses, np.nan), ops.shape(y_true))
