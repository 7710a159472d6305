"""Attention with learned biases for the distance of two tokens, as in T5."""

import keras
import numpy as np
from keras import ops

from keras_gmlp.layers.block import TokenLayer, check_heads, make_dense, mask_scores
from keras_gmlp.layers.spatial_projection import toeplitz_matrices


def relative_buckets(offsets, buckets=32, max_distance=128):
    """Returns the bucket of each offset, the place of a key minus that of a query, as T5 does."""
    # Half of the buckets are for keys before the query, half for keys after it. In each half, the
    # first half is for one distance each; the others grow logarithmically up to `max_distance`, and
    # all larger distances share the last one.
    half = buckets // 2
    exact = half // 2
    distance = np.abs(offsets)
    # In float32, as T5 computes it: a logarithm next to a whole number may round either way.
    ratio = np.log(np.maximum(distance, 1).astype("float32") / np.float32(exact))
    ratio = ratio / np.float32(np.log(max_distance / exact))
    far = np.minimum(exact + (ratio * (half - exact)).astype("int64"), half - 1)
    return np.where(np.asarray(offsets) > 0, half, 0) + np.where(distance < exact, distance, far)


@keras.saving.register_keras_serializable("keras_gmlp")
class RelativePositionBias(TokenLayer):
    """Learned biases for the scores of attention, by head and distance of two tokens.

    Args:
        num_heads: Attention heads.
        buckets: Number of buckets, a multiple of 4; see `relative_buckets`.
        max_distance: Distance from which on there is one bucket.
        max_tokens: Largest number of tokens; required if their number is not fixed.

    Input shape: `(batch, tokens, dim)`; only the number of tokens matters.
    Output shape: `(num_heads, tokens, tokens)`, queries first.

    Raises:
        ValueError: If the number of tokens is neither fixed nor limited.

    Example:
        >>> RelativePositionBias(4)(keras.ops.ones((2, 16, 256))).shape
        (4, 16, 16)

    Reference: "Exploring the Limits of Transfer Learning", https://arxiv.org/abs/1910.10683,
    section 2.1. BERT in "Pay Attention to MLPs" uses the biases in place of positions.
    """

    def __init__(
        self,
        num_heads: int,
        buckets: int = 32,
        max_distance: int = 128,
        max_tokens: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads, self.max_tokens = num_heads, max_tokens
        self.buckets, self.max_distance = buckets, max_distance

    def build(self, input_shape):
        self.check_tokens(input_shape)
        small = keras.initializers.RandomNormal(stddev=0.02)
        self.table = self.add_weight((self.buckets, self.num_heads), small, name="position_bias")

    def call(self, inputs):
        known = inputs.shape[1]
        tokens = known or self.max_tokens
        # One product instead of a lookup, whose gradient adds in no fixed order on a GPU.
        offsets = np.arange(tokens - 1, -tokens, -1)  # key - query
        places = relative_buckets(offsets, self.buckets, self.max_distance)
        chosen = np.eye(self.buckets, dtype="float32")[places]
        table = ops.convert_to_tensor(self.table)
        weights = ops.matmul(ops.cast(chosen, table.dtype), table)  # (2n - 1, h)
        # toeplitz_matrices puts the key first: [h, key, query] from place query - key + n - 1
        biases = ops.transpose(toeplitz_matrices(ops.transpose(weights)), (0, 2, 1))
        if known is None:
            tokens = ops.shape(inputs)[1]
            biases = biases[:, :tokens, :tokens]
        return biases

    def compute_mask(self, inputs, previous_mask=None):
        return None  # the outputs are not the tokens

    def compute_output_shape(self, input_shape):
        return self.num_heads, input_shape[1], input_shape[1]


@keras.saving.register_keras_serializable("keras_gmlp")
class RelativeAttention(TokenLayer):
    """Multi-head self-attention with biases for the distance of two tokens.

    Args:
        num_heads: Attention heads; they share the channels equally.
        content: Whether scores depend on the tokens. If `False`, there are no queries and keys, and
            each head mixes the tokens by the softmax of only its biases.
        kernel_initializer: Initializer of the dense layers.
        buckets, max_distance, max_tokens: See `RelativePositionBias`.

    Input and output shape: `(batch, tokens, dim)`. For `mask` see `Block`: padding gets no weight.

    Raises:
        ValueError: If the channels are not a multiple of `num_heads`, or as for
            `RelativePositionBias`.

    Reference: "Exploring the Limits of Transfer Learning", https://arxiv.org/abs/1910.10683.
    `content=False` is the row "- attn" of table 3 in "Pay Attention to MLPs".
    """

    def __init__(
        self,
        num_heads: int,
        content: bool = True,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        buckets: int = 32,
        max_distance: int = 128,
        max_tokens: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads, self.content, self.max_tokens = num_heads, content, max_tokens
        self.buckets, self.max_distance = buckets, max_distance
        self.kernel_initializer = kernel_initializer
        sizes = num_heads, buckets, max_distance, max_tokens
        self.position_bias = self.make_part(RelativePositionBias, *sizes, name="relative")

    def build(self, input_shape):
        dim = input_shape[-1]
        check_heads(self.num_heads, dim)
        self.position_bias.build(input_shape)
        names = ("query", "key", "value") if self.content else ("value",)
        self.projections = [make_dense(self, dim, name) for name in names]
        self.output_projection = make_dense(self, dim, "output")
        for dense in (*self.projections, self.output_projection):
            dense.build(input_shape)

    def call(self, inputs, mask=None):
        scores = self._attend(inputs, mask)
        value = self._split(self.projections[-1](inputs))
        if not self.content and mask is None:
            shape = ops.shape(scores)
            scores = ops.broadcast_to(scores, (ops.shape(value)[0], *shape[1:]))
        x = ops.transpose(ops.matmul(scores, value), (0, 2, 1, 3))  # (b, h, n, c) -> (b, n, h, c)
        return self.output_projection(ops.reshape(x, (-1, ops.shape(x)[1], inputs.shape[-1])))

    def attention_scores(self, inputs, mask=None):
        """Returns what each token attends to, the mean over heads: `(batch, queries, keys)`."""
        scores = ops.cast(self._attend(inputs, mask), "float32")
        empty = ops.zeros((ops.shape(inputs)[0], 1, 1, 1))
        return ops.mean(scores + empty, axis=1)

    def _attend(self, inputs, mask):
        """Returns the weights, `(batch, heads, queries, keys)`, batch 1 if they are all equal."""
        scores = self.position_bias(inputs)[None]
        if self.content:
            query, key = (self._split(dense(inputs)) for dense in self.projections[:2])
            query = query * (query.shape[-1] ** -0.5)
            scores = scores + ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
        if mask is not None:
            scores = mask_scores(scores, mask[:, None, None, :])
        return ops.softmax(scores)

    def _split(self, x):
        """Maps `(batch, tokens, dim)` to `(batch, heads, tokens, size)`."""
        tokens, dim = ops.shape(x)[1], x.shape[-1]
        x = ops.reshape(x, (-1, tokens, self.num_heads, dim // self.num_heads))
        return ops.transpose(x, (0, 2, 1, 3))
