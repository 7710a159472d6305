"""MLP-Mixer: "MLP-Mixer: An all-MLP Architecture for Vision", https://arxiv.org/abs/2105.01601."""

import keras
from keras import layers, ops

from keras_gmlp.layers.residual import ResidualBlock, check_tokens


@keras.saving.register_keras_serializable("keras_gmlp")
class TokenMLP(layers.Layer):
    """A feed-forward network along the tokens, the same for every channel.

    Args:
        hidden_dim: units of its hidden layer.

    Input and output shape: `(batch, tokens, dim)`, `tokens` fixed.

    Raises:
        ValueError: the number of tokens is not fixed.

    Example:
        >>> TokenMLP(256)(keras.ops.ones((2, 64, 128))).shape
        (2, 64, 128)

    Reference: "MLP-Mixer", https://arxiv.org/abs/2105.01601, equation 1.
    """

    def __init__(self, hidden_dim, **kwargs):
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.expand = layers.Dense(
            hidden_dim, activation="gelu", dtype=self.dtype_policy, name="expand"
        )

    def build(self, input_shape):
        check_tokens(self, input_shape)
        batch, tokens, dim = input_shape
        self.shrink = layers.Dense(tokens, dtype=self.dtype_policy, name="shrink")
        self.expand.build((batch, dim, tokens))
        self.shrink.build((batch, dim, self.hidden_dim))

    def call(self, inputs):
        x = ops.transpose(inputs, (0, 2, 1))  # (b, n, d) -> (b, d, n)
        return ops.transpose(self.shrink(self.expand(x)), (0, 2, 1))  # (b, d, n) -> (b, n, d)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "hidden_dim": self.hidden_dim}


@keras.saving.register_keras_serializable("keras_gmlp")
class MixerBlock(ResidualBlock):
    """An MLP over tokens, then an MLP over channels, each normalized before and residual.

    Args:
        token_hidden_dim: units of the token MLP's hidden layer, the paper's D_S.
        hidden_dim: of the channel MLP's, the paper's D_C.
        **kwargs: `drop_path`, the probability, in [0, 1), that a sample skips a branch in training
            (stochastic depth, drawn for each branch by itself); `dropout`, the rate, in [0, 1), on
            each branch's output; and a layer's own, `dtype` and `name`.

    Input and output shape: `(batch, tokens, dim)`, `tokens` fixed.

    Raises:
        ValueError: the number of tokens is not fixed.

    Example:
        >>> MixerBlock(token_hidden_dim=64, hidden_dim=512)(keras.ops.ones((2, 64, 128))).shape
        (2, 64, 128)

    Reference: "MLP-Mixer", https://arxiv.org/abs/2105.01601, equation 1.
    """

    def __init__(self, token_hidden_dim, hidden_dim, **kwargs):
        super().__init__(hidden_dim, **kwargs)
        self.token_hidden_dim = token_hidden_dim
        self.token_mlp = TokenMLP(token_hidden_dim, dtype=self.dtype_policy, name="token_mlp")

    def build_mixer(self, input_shape):
        self.token_mlp.build(input_shape)

    def mix_tokens(self, x):
        return self.token_mlp(x)

    def get_config(self):
        return {**super().get_config(), "token_hidden_dim": self.token_hidden_dim}
