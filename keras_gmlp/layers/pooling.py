"""Attention pooling: a learned, weighted mean over tokens."""

import keras
from keras import layers, ops

from keras_gmlp.layers.block import TokenLayer, mask_scores


@keras.saving.register_keras_serializable("keras_gmlp")
class AttentionPooling(TokenLayer):
    """Averages tokens by weights that a linear layer and a softmax over tokens compute.

    It starts as the mean over tokens.

    Input shape: `(batch, tokens, dim)`. `mask` is `(batch, tokens)`: `False` at padding.
    Output shape: `(batch, dim)`.

    Example:
        >>> AttentionPooling()(keras.ops.ones((2, 64, 128))).shape
        (2, 128)

    Reference: SeqPool of "Escaping the Big Data Paradigm with Compact Transformers",
    https://arxiv.org/abs/2104.05704.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.score = layers.Dense(
            1, kernel_initializer="zeros", use_bias=False, dtype=self.dtype_policy, name="score"
        )

    def build(self, input_shape):
        self.score.build(input_shape)

    def call(self, inputs, mask=None):
        scores = ops.transpose(self.score(inputs), (0, 2, 1))  # (b, n, 1) -> (b, 1, n)
        if mask is not None:
            scores = mask_scores(scores, mask[:, None, :])
        return ops.matmul(ops.softmax(scores), inputs)[:, 0]

    def compute_mask(self, inputs, previous_mask):
        return None

    def compute_output_shape(self, input_shape):
        return input_shape[0], input_shape[2]
