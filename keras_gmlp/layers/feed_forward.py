"""Feed-forward only: "Do You Even Need Attention?", https://arxiv.org/abs/2105.02723."""

import keras
from keras import ops

from keras_gmlp.layers.mixer import TokenMLP
from keras_gmlp.layers.residual import ResidualBlock, check_tokens


@keras.saving.register_keras_serializable("keras_gmlp")
class FeedForwardOnlyBlock(ResidualBlock):
    """An MLP over channels, then an MLP over tokens, which is normalized along the tokens.

    A ViT block with attention replaced, and the order turned: `x + mlp(norm1(x))`, then
    `x + (mlp(norm2(x^T)))^T`, where norm2 has one gain for each token.

    Args:
        token_hidden_dim: units of the token MLP's hidden layer; the paper takes 4 x tokens.
        hidden_dim: of the channel MLP's.
        **kwargs: `drop_path`, the probability, in [0, 1), that a sample skips a branch in training
            (stochastic depth, drawn for each branch by itself); `dropout`, the rate, in [0, 1), on
            each branch's output; and a layer's own, `dtype` and `name`.

    Input and output shape: `(batch, tokens, dim)`, `tokens` fixed.

    Raises:
        ValueError: the number of tokens is not fixed.

    Example:
        >>> FeedForwardOnlyBlock(260, hidden_dim=512)(keras.ops.ones((2, 65, 128))).shape
        (2, 65, 128)

    Reference: https://arxiv.org/abs/2105.02723, figure 1 and appendix.
    """

    def __init__(self, token_hidden_dim, hidden_dim, **kwargs):
        super().__init__(hidden_dim, **kwargs)
        self.token_hidden_dim = token_hidden_dim
        self.token_mlp = TokenMLP(token_hidden_dim, dtype=self.dtype_policy, name="token_mlp")

    def build_norms(self, input_shape):
        check_tokens(self, input_shape)
        batch, tokens, dim = input_shape
        self.norm1.build(input_shape)
        self.norm2.build((batch, dim, tokens))

    def build_mixer(self, input_shape):
        self.token_mlp.build(input_shape)

    def mix_tokens(self, x):
        # Turned by hand: Keras' own norm takes no other axis than the last under PyTorch.
        x = self.norm2(ops.transpose(x, (0, 2, 1)))  # (b, n, d) -> (b, d, n)
        return self.token_mlp(ops.transpose(x, (0, 2, 1)))

    def call(self, inputs, training=None):
        x = self.dropout1(self.mix_channels(self.norm1(inputs)), training=training)
        inputs = inputs + self.drop_path1(x, training=training)
        x = self.dropout2(self.mix_tokens(inputs), training=training)
        return inputs + self.drop_path2(x, training=training)

    def get_config(self):
        return {**super().get_config(), "token_hidden_dim": self.token_hidden_dim}
