"""Parts of language models: positions, segments, and the head for masked tokens."""

from typing import ClassVar

import keras
from keras import layers, ops

from keras_gmlp.layers.block import make_dense, mask_scores, serialize_initializer
from keras_gmlp.layers.spatial_projection import check_length, check_max_tokens


@keras.saving.register_keras_serializable("keras_gmlp")
class TokenPositions(layers.Layer):
    """Adds a learned vector to each position, for texts of any length up to a maximum.

    Args:
        max_tokens: Number of positions.
        initializer: Initializer of the embedding. Defaults to a truncated normal distribution of
            standard deviation 0.02.

    Input and output shape: `(batch, tokens, dim)`.

    Raises:
        ValueError: If there are more tokens than positions.

    Example:
        >>> TokenPositions(128)(keras.ops.ones((2, 16, 64))).shape
        (2, 16, 64)

    Reference: "BERT", https://arxiv.org/abs/1810.04805.
    """

    supports_masking = True
    token_axes: ClassVar[dict] = {"embedding": (None, "holds", None)}

    def __init__(self, max_tokens, initializer=None, **kwargs):
        super().__init__(**kwargs)
        check_max_tokens(max_tokens)
        self.max_tokens = max_tokens
        self.initializer = keras.initializers.get(initializer or _truncated_normal())

    def build(self, input_shape):
        check_length(self, input_shape)
        shape = (1, self.max_tokens, input_shape[-1])
        self.embedding = self.add_weight(shape, self.initializer, name="embedding")

    def call(self, inputs):
        embedding = ops.convert_to_tensor(self.embedding)
        if inputs.shape[1] != self.max_tokens:
            embedding = embedding[:, : ops.shape(inputs)[1]]
        return inputs + embedding

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        initializer = keras.initializers.serialize(self.initializer)
        return {
            **super().get_config(),
            "max_tokens": self.max_tokens,
            "initializer": initializer,
        }


@keras.saving.register_keras_serializable("keras_gmlp")
class SegmentEmbedding(layers.Layer):
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

    Example:
        >>> embedding = SegmentEmbedding(separator=3)
        >>> embedding(keras.ops.ones((1, 5, 8)), keras.ops.array([[2, 9, 3, 8, 3]])).shape
        (1, 5, 8)

    Reference: "BERT", https://arxiv.org/abs/1810.04805, figure 2.
    """

    supports_masking = True

    def __init__(self, separator, segments=2, **kwargs):
        super().__init__(**kwargs)
        self.separator = separator
        self.segments = segments

    def build(self, inputs_shape, token_ids_shape=None):
        shape = (self.segments, inputs_shape[-1])
        self.embedding = self.add_weight(shape, _truncated_normal(), name="embedding")

    def call(self, inputs, token_ids):
        before = ops.minimum(count_ends(token_ids, self.separator), self.segments - 1)
        chosen = ops.one_hot(before, self.segments, dtype=self.compute_dtype)
        return inputs + ops.matmul(chosen, ops.convert_to_tensor(self.embedding))

    def compute_output_shape(self, inputs_shape, token_ids_shape=None):
        return inputs_shape

    def get_config(self):
        return {
            **super().get_config(),
            "separator": self.separator,
            "segments": self.segments,
        }


def count_ends(token_ids, separator):
    """Returns, for each token, the number of separators before it: `(batch, tokens)`."""
    ends = ops.cast(ops.equal(token_ids, separator), "int32")
    return ops.cumsum(ends, axis=1) - ends


@keras.saving.register_keras_serializable("keras_gmlp")
class SpanHead(layers.Layer):
    """Computes the logits of the first and the last token of an answer.

    Places outside the text get low logits, except place 0, `[CLS]`, which stands for no answer.

    Args:
        separator: Id of the separator `[SEP]`. The text is between the first and the second.

    Call arguments:
        inputs: Tokens, `(batch, tokens, dim)`.
        token_ids: Integers, `(batch, tokens)`.

    Output shape: `(batch, 2, tokens)`.

    Example:
        >>> head = SpanHead(separator=3)
        >>> head(keras.ops.ones((1, 6, 8)), keras.ops.array([[2, 9, 3, 8, 3, 0]])).shape
        (1, 2, 6)

    Reference: "BERT", https://arxiv.org/abs/1810.04805, section 4.2.
    """

    supports_masking = True

    def __init__(self, separator, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.separator = separator
        self.kernel_initializer = kernel_initializer
        self.dense = make_dense(self, 2, "dense")

    def build(self, inputs_shape, token_ids_shape=None):
        self.dense.build(inputs_shape)

    def call(self, inputs, token_ids):
        scores = ops.transpose(self.dense(inputs), (0, 2, 1))  # (b, n, 2) -> (b, 2, n)
        text = ops.equal(count_ends(token_ids, self.separator), 1)
        text = ops.logical_and(text, ops.not_equal(token_ids, self.separator))
        first = ops.equal(ops.cumsum(ops.ones_like(token_ids), axis=1), 1)
        return mask_scores(scores, ops.logical_or(text, first)[:, None, :])

    def compute_mask(self, inputs, previous_mask=None):
        return None  # the outputs are not the tokens

    def compute_output_shape(self, inputs_shape, token_ids_shape=None):
        return inputs_shape[0], 2, inputs_shape[1]

    def get_config(self):
        return {
            **super().get_config(),
            "separator": self.separator,
            "kernel_initializer": serialize_initializer(self.kernel_initializer),
        }


@keras.saving.register_keras_serializable("keras_gmlp")
class MaskedLMHead(layers.Layer):
    """Computes what the token embedding compares with each word, at the masked positions alone.

    Takes the tokens at the positions, then a dense layer, GELU and layer normalization. The logits
    follow from the transpose of the token embedding (`ReversibleEmbedding`) and `LogitBias`.

    Args:
        kernel_initializer: Initializer of the dense layer.
        epsilon: Added to the variance in the normalization.

    Call arguments:
        inputs: Tokens, `(batch, tokens, dim)`.
        mask_positions: Integers in [0, tokens), `(batch, masked)`.

    Output shape: `(batch, masked, dim)`.

    Example:
        >>> head = MaskedLMHead()
        >>> head(keras.ops.ones((2, 16, 64)), keras.ops.array([[1, 5], [2, 0]])).shape
        (2, 2, 64)

    Reference: "BERT", https://arxiv.org/abs/1810.04805, section 3.1.
    """

    supports_masking = True

    def __init__(self, kernel_initializer="glorot_uniform", epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        self.kernel_initializer = kernel_initializer
        self.epsilon = epsilon
        self.norm = layers.LayerNormalization(epsilon=epsilon, dtype=self.dtype_policy, name="norm")

    def build(self, inputs_shape, mask_positions_shape=None):
        dim = inputs_shape[-1]
        self.dense = make_dense(self, dim, "dense", activation="gelu")
        self.dense.build((None, None, dim))
        self.norm.build((None, None, dim))

    def call(self, inputs, mask_positions):
        places = ops.cast(mask_positions, "int32")[:, :, None]
        x = ops.take_along_axis(inputs, places, axis=1)
        return self.norm(self.dense(x))

    def compute_mask(self, inputs, previous_mask=None):
        return None  # the outputs are not the tokens

    def compute_output_shape(self, inputs_shape, mask_positions_shape):
        return (*mask_positions_shape, inputs_shape[-1])

    def get_config(self):
        return {
            **super().get_config(),
            "kernel_initializer": serialize_initializer(self.kernel_initializer),
            "epsilon": self.epsilon,
        }


@keras.saving.register_keras_serializable("keras_gmlp")
class LogitBias(layers.Layer):
    """Adds a learned bias to each logit.

    Input and output shape: `(..., words)`.

    Example:
        >>> LogitBias()(keras.ops.ones((2, 3, 10))).shape
        (2, 3, 10)
    """

    def build(self, input_shape):
        self.bias = self.add_weight((input_shape[-1],), "zeros", name="bias")

    def call(self, inputs):
        return inputs + self.bias

    def compute_output_shape(self, input_shape):
        return input_shape


def _truncated_normal():
    return keras.initializers.TruncatedNormal(stddev=0.02)
