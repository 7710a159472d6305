"""Embeddings: what is added to tokens or precedes them."""

from typing import ClassVar

import keras
from keras import layers, ops

from keras_gmlp.layers.block import ConfiguredLayer, TokenLayer


@keras.saving.register_keras_serializable("keras_gmlp")
class WordEmbedding(layers.ReversibleEmbedding):
    """`keras.layers.ReversibleEmbedding`; quantized like it."""

    def quantize(self, mode=None, type_check=False, config=None):
        super().quantize(mode, type_check=False, config=config)


@keras.saving.register_keras_serializable("keras_gmlp")
class ClassToken(TokenLayer):
    """Prepends a learned token, from which a classifier computes the logits.

    "An Image is Worth 16x16 Words", https://arxiv.org/abs/2010.11929. It starts at zero.

    Input shape: `(batch, tokens, dim)`.
    Output shape: `(batch, tokens + 1, dim)`.
    """

    def build(self, input_shape):
        self.token = self.add_weight((1, 1, input_shape[-1]), "zeros", name="token")

    def call(self, inputs):
        # Computed from the inputs, so that exporters keep the batch size dynamic.
        token = ops.zeros_like(inputs[:, :1]) + ops.cast(self.token, inputs.dtype)
        return ops.concatenate([token, inputs], axis=1)

    def compute_mask(self, inputs, previous_mask):
        if previous_mask is None:
            return None
        mask = ops.cast(previous_mask, "bool")
        return ops.concatenate([ops.ones_like(mask[:, :1]), mask], axis=1)

    def compute_output_shape(self, input_shape):
        batch, tokens, dim = input_shape
        return batch, None if tokens is None else tokens + 1, dim


@keras.saving.register_keras_serializable("keras_gmlp")
class PositionEmbedding(TokenLayer):
    """Adds a learned vector to each position.

    "An Image is Worth 16x16 Words", https://arxiv.org/abs/2010.11929.

    Args:
        initializer: Initializer of the embedding. Defaults to a truncated normal distribution of
            standard deviation 0.02.

    Input and output shape: `(batch, tokens, dim)`, `tokens` fixed, otherwise a `ValueError`.
    """

    token_axes: ClassVar[dict] = {"embedding": (None, "holds", None)}

    def __init__(self, initializer: str | keras.Initializer | None = None, **kwargs):
        super().__init__(**kwargs)
        initializer = initializer or keras.initializers.TruncatedNormal(stddev=0.02)
        self.initializer = keras.initializers.get(initializer)

    def build(self, input_shape):
        self.fix_tokens(input_shape)
        shape = 1, getattr(self, "max_tokens", input_shape[1]), input_shape[2]
        self.embedding = self.add_weight(shape, self.initializer, name="embedding")

    def call(self, inputs):
        embedding = ops.convert_to_tensor(self.embedding)
        if inputs.shape[1] != embedding.shape[1]:
            self.check_tokens(inputs.shape)
            embedding = embedding[:, : ops.shape(inputs)[1]]
        return inputs + embedding


@keras.saving.register_keras_serializable("keras_gmlp")
class TokenPositions(PositionEmbedding):
    """Adds a learned vector to each position, for texts of any length up to a maximum.

    Args:
        max_tokens: Number of positions.
        initializer: See `PositionEmbedding`.

    Input and output shape: `(batch, tokens, dim)`.

    Raises:
        ValueError: If there are more tokens than positions.

    Reference: "BERT", https://arxiv.org/abs/1810.04805.
    """

    def __init__(
        self, max_tokens: int, initializer: str | keras.Initializer | None = None, **kwargs
    ):
        super().__init__(initializer, **kwargs)
        self.max_tokens = max_tokens


@keras.saving.register_keras_serializable("keras_gmlp")
class SegmentEmbedding(ConfiguredLayer):
    """Adds a learned vector for the segment of each token: the first sentence or the second.

    A segment ends with a separator, which belongs to it. Tokens after the last segment, such as
    padding, belong to the last one.

    Args:
        separator: Id of the separator `[SEP]`.
        segments: Number of segments.

    Call arguments:
        inputs: Tokens, `(batch, tokens, dim)`.
        token_ids: Integers, `(batch, tokens)`.

    Output shape: the shape of `inputs`.

    Reference: "BERT", https://arxiv.org/abs/1810.04805, figure 2.
    """

    supports_masking = True

    def __init__(self, separator: int, segments: int = 2, **kwargs):
        super().__init__(**kwargs)
        self.separator, self.segments = separator, segments

    def build(self, inputs_shape, token_ids_shape=None):
        shape = (self.segments, inputs_shape[-1])
        initializer = keras.initializers.TruncatedNormal(stddev=0.02)
        self.embedding = self.add_weight(shape, initializer, name="embedding")

    def call(self, inputs, token_ids):
        before = ops.minimum(count_ends(token_ids, self.separator), self.segments - 1)
        chosen = ops.one_hot(before, self.segments, dtype=self.compute_dtype)
        return inputs + ops.matmul(chosen, ops.convert_to_tensor(self.embedding))

    def compute_output_shape(self, inputs_shape, token_ids_shape=None):
        return inputs_shape


def count_ends(token_ids, separator):
    """Returns, for each token, the number of separators before it: `(batch, tokens)`."""
    ends = ops.cast(ops.equal(token_ids, separator), "int32")
    return ops.cumsum(ends, axis=1) - ends
