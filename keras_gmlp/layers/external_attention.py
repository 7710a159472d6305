"""EAMLP: "Beyond Self-attention: External Attention", https://arxiv.org/abs/2105.02358."""

import keras
from keras import ops

from keras_gmlp.layers.block import (
    ResidualBlock,
    TokenLayer,
    check_heads,
    make_dense,
    mask_scores,
)


@keras.saving.register_keras_serializable("keras_gmlp")
class ExternalAttention(TokenLayer):
    """Attends to two small memories in place of the tokens' own keys and values.

    For the features F of one head, `A = norm(F M_k^T)` and the output is `A M_v`. The double
    normalization takes the softmax over the tokens, then divides by the sum over the slots. The
    cost is linear in the number of tokens. All heads and samples share the memories.

    Args:
        num_heads: Number of heads; they share the expanded channels equally. 1 for the single-head
            form.
        slots: Number of slots in each memory.
        expansion: Ratio of the channels in all heads to the channels of a token; the paper uses 4
            with many heads and 1 with one.
        kernel_initializer: Initializer of the dense layers and the memories.

    Input and output shape: `(batch, tokens, dim)`. For `mask` see `Block`.

    Raises:
        ValueError: If the expanded channels are not a multiple of `num_heads`.

    Reference: https://arxiv.org/abs/2105.02358, equations 5 to 10 and algorithm 2.
    """

    def __init__(
        self,
        num_heads: int = 32,
        slots: int = 64,
        expansion: int = 4,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads, self.slots, self.expansion = num_heads, slots, expansion
        self.kernel_initializer = kernel_initializer
        self.keys = make_dense(self, slots, "keys", use_bias=False)

    def build(self, input_shape):
        batch, tokens, dim = input_shape
        expanded = dim * self.expansion
        check_heads(self.num_heads, expanded)
        size = expanded // self.num_heads
        self.query = make_dense(self, expanded, "query")
        self.values = make_dense(self, size, "values", use_bias=False)
        self.projection = make_dense(self, dim, "projection")
        self.query.build(input_shape)
        self.keys.build((batch, tokens, self.num_heads, size))
        self.values.build((batch, tokens, self.num_heads, self.slots))
        self.projection.build((batch, tokens, expanded))

    def call(self, inputs, mask=None):
        tokens, expanded = ops.shape(inputs)[1], inputs.shape[-1] * self.expansion
        x = self.query(inputs)
        x = ops.reshape(x, (-1, tokens, self.num_heads, expanded // self.num_heads))
        scores = self.keys(x)
        if mask is not None:
            scores = mask_scores(scores, mask[:, :, None, None])
        x = self.values(self.attend(scores))  # (b, n, h, slots) -> (b, n, h, d/h)
        return self.projection(ops.reshape(x, (-1, tokens, expanded)))

    def attend(self, scores):
        """Normalizes scores `(batch, tokens, heads, slots)` over tokens, then over slots."""
        # In float32: half precision has few digits for shares of about 1 / (65 tokens x 64 slots).
        attention = ops.softmax(ops.cast(scores, "float32"), axis=1)
        attention = attention / (ops.sum(attention, axis=-1, keepdims=True) + 1e-9)
        return ops.cast(attention, self.compute_dtype)


@keras.saving.register_keras_serializable("keras_gmlp")
class ExternalAttentionBlock(ResidualBlock):
    """External attention, then a feed-forward network, both residual.

    Args:
        hidden_dim: Channels of the hidden layer of the feed-forward network.
        num_heads, slots, expansion: See `ExternalAttention`, also for errors.
        **kwargs: See `Block`.

    Input and output shape: `(batch, tokens, dim)`.

    Example:
        >>> ExternalAttentionBlock(384, num_heads=16)(keras.ops.ones((2, 65, 128))).shape
        (2, 65, 128)

    Reference: https://arxiv.org/abs/2105.02358.
    """

    def __init__(
        self, hidden_dim: int, num_heads: int = 32, slots: int = 64, expansion: int = 4, **kwargs
    ):
        super().__init__(hidden_dim, **kwargs)
        self.num_heads, self.slots, self.expansion = num_heads, slots, expansion
        sizes = num_heads, slots, expansion, self.kernel_initializer
        self.attention = self.make_part(ExternalAttention, *sizes, name="attention")

    def build_mixer(self, input_shape):
        self.attention.build(input_shape)

    def mix_tokens(self, x, mask=None):
        return self.attention(x, mask=mask)
