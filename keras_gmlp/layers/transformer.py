"""The attention baseline: the Transformer encoder block of ViT."""

import contextlib

import keras
from keras import layers

from keras_gmlp.layers.residual import ResidualBlock


@keras.saving.register_keras_serializable("keras_gmlp")
class TransformerBlock(ResidualBlock):
    """Self-attention, then a feed-forward network, each normalized before and residual.

    Args:
        num_heads: attention heads; they share the channels equally.
        hidden_dim: channels of the feed-forward network's hidden layer.
        **kwargs: `drop_path`, the probability, in [0, 1), that a sample skips a branch in training
            (stochastic depth, drawn for each branch by itself); `dropout`, the rate, in [0, 1), on
            each branch's output; and a layer's own, `dtype` and `name`.

    Input and output shape: `(batch, tokens, dim)`.

    Raises:
        ValueError: the channels are not a multiple of `num_heads`.

    Example:
        >>> TransformerBlock(num_heads=3, hidden_dim=384)(keras.ops.ones((2, 65, 96))).shape
        (2, 65, 96)

    Reference: "An Image is Worth 16x16 Words", https://arxiv.org/abs/2010.11929, figure 1.
    """

    def __init__(self, num_heads, hidden_dim, **kwargs):
        super().__init__(hidden_dim, **kwargs)
        self.num_heads = num_heads

    def build_mixer(self, input_shape):
        dim = input_shape[-1]
        if self.num_heads < 1 or dim % self.num_heads:
            raise ValueError(
                f"{dim} channels cannot be shared by num_heads={self.num_heads}. Choose a number "
                "of heads that divides the channels."
            )
        with _plain_attention_in_jax():
            self.attention = layers.MultiHeadAttention(
                self.num_heads, dim // self.num_heads, dtype=self.dtype_policy, name="attention"
            )
        self.attention.build(input_shape, input_shape)

    def mix_tokens(self, x):
        return self.attention(x, x)

    def get_config(self):
        return {**super().get_config(), "num_heads": self.num_heads}


@contextlib.contextmanager
def _plain_attention_in_jax():
    """On a GPU, JAX' fused attention does not train an odd number of tokens: a class token's.

    Keras takes it wherever it runs forwards, and the step then ends in a NotImplementedError. The
    number of tokens is not known here, so it is given up for all. Keras' argument
    `flash_attention=False` is of no use: the layer takes it for "not given".
    """
    allowed = keras.config.is_flash_attention_enabled()
    if keras.backend.backend() == "jax":
        keras.config.disable_flash_attention()
    try:
        yield
    finally:
        if allowed is None:
            keras.config.enable_flash_attention()
