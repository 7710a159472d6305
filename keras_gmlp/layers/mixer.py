"""MLP-Mixer: "MLP-Mixer: An all-MLP Architecture for Vision", https://arxiv.org/abs/2105.01601."""

from typing import ClassVar

import keras
from keras import ops

from keras_gmlp.layers.block import ResidualBlock, TokenLayer, make_dense, mask_tokens


@keras.saving.register_keras_serializable("keras_gmlp")
class TokenMLP(TokenLayer):
    """A feed-forward network along the tokens, the same for every channel.

    Args:
        hidden_dim: Units of the hidden layer.
        kernel_initializer: Initializer of the two dense layers.

    Input and output shape: `(batch, tokens, dim)`, `tokens` fixed, otherwise a `ValueError`. For
    `mask` see `Block`.

    Reference: "MLP-Mixer", https://arxiv.org/abs/2105.01601, equation 1.
    """

    def __init__(
        self,
        hidden_dim: int,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.hidden_dim, self.kernel_initializer = hidden_dim, kernel_initializer
        self.expand = make_dense(self, hidden_dim, "expand", activation="gelu")

    def build(self, input_shape):
        self.fix_tokens(input_shape)
        batch, tokens, dim = input_shape
        self.shrink = make_dense(self, tokens, "shrink")
        self.expand.build((batch, dim, tokens))
        self.shrink.build((batch, dim, self.hidden_dim))

    def call(self, inputs, mask=None):
        x = ops.transpose(mask_tokens(inputs, mask), (0, 2, 1))  # (b, n, d) -> (b, d, n)
        return ops.transpose(self.shrink(self.expand(x)), (0, 2, 1))  # (b, d, n) -> (b, n, d)


class TokenMLPBlock(ResidualBlock):
    """A block that mixes tokens by a `TokenMLP`; the base class."""

    token_axes: ClassVar[dict] = {
        "token_mlp/expand/kernel": ("reads", None),
        "token_mlp/shrink/kernel": (None, "writes"),
        "token_mlp/shrink/bias": ("writes",),
    }

    def __init__(self, token_hidden_dim, hidden_dim, **kwargs):
        super().__init__(hidden_dim, **kwargs)
        self.token_hidden_dim = token_hidden_dim
        sizes = token_hidden_dim, self.kernel_initializer
        self.token_mlp = self.make_part(TokenMLP, *sizes, name="token_mlp")

    def build_mixer(self, input_shape):
        self.token_mlp.build(input_shape)

    def mix_tokens(self, x, mask=None):
        return self.token_mlp(x, mask=mask)


@keras.saving.register_keras_serializable("keras_gmlp")
class MixerBlock(TokenMLPBlock):
    """An MLP over tokens, then an MLP over channels, both residual.

    Args:
        token_hidden_dim: Hidden units of the token MLP, the paper's D_S.
        hidden_dim: Hidden channels of the channel MLP, the paper's D_C.
        **kwargs: See `Block`.

    Input and output shape: `(batch, tokens, dim)`, `tokens` fixed, otherwise a `ValueError`.

    Example:
        >>> MixerBlock(token_hidden_dim=64, hidden_dim=512)(keras.ops.ones((2, 64, 128))).shape
        (2, 64, 128)

    Reference: "MLP-Mixer", https://arxiv.org/abs/2105.01601, equation 1.
    """
