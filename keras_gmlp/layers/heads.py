"""What reads the tokens: the head for masked tokens, means and attention pooling."""

import keras
from keras import layers, ops

from keras_gmlp.layers.block import ConfiguredLayer, TokenLayer, make_dense, mask_scores


@keras.saving.register_keras_serializable("keras_gmlp")
class TextMean(ConfiguredLayer):
    """Averages the tokens of each text, without its padding, `(batch, dim)`."""

    def call(self, inputs, token_ids):
        used = ops.cast(ops.not_equal(token_ids, 0), inputs.dtype)[:, :, None]
        return ops.sum(inputs * used, axis=1) / ops.maximum(ops.sum(used, axis=1), 1)

    def compute_mask(self, inputs, previous_mask=None):
        return None  # the outputs are not the tokens

    def compute_output_shape(self, inputs_shape, token_ids_shape=None):
        return inputs_shape[0], inputs_shape[-1]


@keras.saving.register_keras_serializable("keras_gmlp")
class MaskedLMHead(ConfiguredLayer):
    """Computes what the token embedding compares with each word, only at the masked positions."""

    def __init__(self, kernel_initializer="glorot_uniform", epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        self.kernel_initializer, self.epsilon = kernel_initializer, epsilon
        self.norm = self.make_part(layers.LayerNormalization, epsilon=epsilon, name="norm")

    def build(self, inputs_shape, mask_positions_shape=None):
        dim = inputs_shape[-1]
        self.dense = make_dense(self, dim, "dense", activation="gelu")
        self.dense.build((None, None, dim))
        self.norm.build((None, None, dim))

    def call(self, inputs, mask_positions):
        places = ops.cast(mask_positions, "int32")[:, :, None]
        if keras.backend.backend() == "torch":  # its exporter would fix the batch of the other form
            masked = inputs.gather(1, places.long().expand(-1, -1, inputs.shape[-1]))
        else:
            masked = ops.take_along_axis(inputs, places, axis=1)
        return self.norm(self.dense(masked))

    def compute_mask(self, inputs, previous_mask=None):
        return None  # the outputs are not the tokens

    def compute_output_shape(self, inputs_shape, mask_positions_shape):
        return (*mask_positions_shape, inputs_shape[-1])


@keras.saving.register_keras_serializable("keras_gmlp")
class LogitBias(ConfiguredLayer):
    """Adds a learned bias to each logit."""

    def build(self, input_shape):
        self.bias = self.add_weight((input_shape[-1],), "zeros", name="bias")

    def call(self, inputs):
        return inputs + self.bias


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
        zeros = {"kernel_initializer": "zeros", "use_bias": False}
        self.score = self.make_part(layers.Dense, 1, **zeros, name="score")

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
