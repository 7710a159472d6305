"""EAMLP: "Beyond Self-attention: External Attention", https://arxiv.org/abs/2105.02358."""

import keras
from keras import layers, ops

from keras_gmlp.layers.residual import ResidualBlock


@keras.saving.register_keras_serializable("keras_gmlp")
class ExternalAttention(layers.Layer):
    """Attention to two small memories, in place of the tokens' own keys and values.

    For the features F of one head, `A = norm(F M_k^T)` and the output is `A M_v`. The double
    normalization takes the softmax over the tokens, then divides by the sum over the slots. The
    cost is linear in the tokens, and the memories, which all heads share, see all samples.

    Args:
        num_heads: heads; they share the expanded channels equally. 1 for the single-head form.
        slots: of each memory.
        expansion: channels in all heads over channels of a token; the paper takes 4 for many
            heads, 1 for one.

    Input and output shape: `(batch, tokens, dim)`.

    Raises:
        ValueError: the expanded channels are not a multiple of `num_heads`.

    Example:
        >>> ExternalAttention(num_heads=16)(keras.ops.ones((2, 65, 128))).shape
        (2, 65, 128)

    Reference: https://arxiv.org/abs/2105.02358, equations 5 to 10 and algorithm 2.
    """

    def __init__(self, num_heads=32, slots=64, expansion=4, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.slots = slots
        self.expansion = expansion
        own = {"dtype": self.dtype_policy}
        self.keys = layers.Dense(slots, use_bias=False, name="keys", **own)

    def build(self, input_shape):
        batch, tokens, dim = input_shape
        expanded = dim * self.expansion
        if self.num_heads < 1 or expanded % self.num_heads:
            raise ValueError(
                f"{expanded} channels ({dim} times expansion={self.expansion}) cannot be shared by "
                f"num_heads={self.num_heads}. Choose a number of heads that divides them."
            )
        size = expanded // self.num_heads
        own = {"dtype": self.dtype_policy}
        self.query = layers.Dense(expanded, name="query", **own)
        self.values = layers.Dense(size, use_bias=False, name="values", **own)
        self.projection = layers.Dense(dim, name="projection", **own)
        self.query.build(input_shape)
        self.keys.build((batch, tokens, self.num_heads, size))
        self.values.build((batch, tokens, self.num_heads, self.slots))
        self.projection.build((batch, tokens, expanded))

    def call(self, inputs):
        tokens, expanded = ops.shape(inputs)[1], inputs.shape[-1] * self.expansion
        x = self.query(inputs)
        x = ops.reshape(x, (-1, tokens, self.num_heads, expanded // self.num_heads))
        x = self.values(self.attend(self.keys(x)))  # (b, n, h, slots) -> (b, n, h, d/h)
        return self.projection(ops.reshape(x, (-1, tokens, expanded)))

    def attend(self, scores):
        """The double normalization of scores (batch, tokens, heads, slots)."""
        # In float32: a share of 1 in 65 tokens and 64 slots has few digits in half precision.
        attention = ops.softmax(ops.cast(scores, "float32"), axis=1)
        attention = attention / (ops.sum(attention, axis=-1, keepdims=True) + 1e-9)
        return ops.cast(attention, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "slots": self.slots,
            "expansion": self.expansion,
        }


@keras.saving.register_keras_serializable("keras_gmlp")
class ExternalAttentionBlock(ResidualBlock):
    """External attention, then a feed-forward network, each normalized before and residual.

    Args:
        num_heads, slots, expansion: see `ExternalAttention`.
        hidden_dim: channels of the feed-forward network's hidden layer.
        **kwargs: `drop_path`, the probability, in [0, 1), that a sample skips a branch in training
            (stochastic depth, drawn for each branch by itself); `dropout`, the rate, in [0, 1), on
            each branch's output; and a layer's own, `dtype` and `name`.

    Input and output shape: `(batch, tokens, dim)`.

    Raises:
        ValueError: the expanded channels are not a multiple of `num_heads`.

    Example:
        >>> ExternalAttentionBlock(384, num_heads=16)(keras.ops.ones((2, 65, 128))).shape
        (2, 65, 128)

    Reference: https://arxiv.org/abs/2105.02358.
    """

    def __init__(self, hidden_dim, num_heads=32, slots=64, expansion=4, **kwargs):
        super().__init__(hidden_dim, **kwargs)
        self.num_heads = num_heads
        self.slots = slots
        self.expansion = expansion
        self.attention = ExternalAttention(
            num_heads, slots, expansion, dtype=self.dtype_policy, name="attention"
        )

    def build_mixer(self, input_shape):
        self.attention.build(input_shape)

    def mix_tokens(self, x):
        return self.attention(x)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "slots": self.slots,
            "expansion": self.expansion,
        }
