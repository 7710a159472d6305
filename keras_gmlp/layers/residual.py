"""What the blocks of most families share: two residual branches, one of them over channels."""

from keras import layers


class ResidualBlock(layers.Layer):
    """Tokens mix in one branch, channels in the other; each is normalized before and residual.

    `x + mix_tokens(norm1(x))`, then `x + mix_channels(norm2(x))`: a family says how tokens mix, in
    `build_mixer` and `mix_tokens`. Channels mix in a feed-forward network.

    Args:
        hidden_dim: channels of the feed-forward network's hidden layer.
        drop_path: probability, in [0, 1), that a sample skips a branch in training (stochastic
            depth), drawn for each branch by itself.
        dropout: rate, in [0, 1), of dropout on each branch's output.

    Input and output shape: `(batch, tokens, dim)`.
    """

    def __init__(self, hidden_dim, drop_path=0.0, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.drop_path = drop_path
        self.dropout = dropout
        own = {"dtype": self.dtype_policy}
        self.norm1 = self.make_norm("norm1")
        self.norm2 = self.make_norm("norm2")
        self.expand = layers.Dense(hidden_dim, activation="gelu", name="expand", **own)
        # Each branch draws for itself: a shared layer would still, but a shared name hides it.
        self.dropout1 = layers.Dropout(dropout, name="dropout1", **own)
        self.dropout2 = layers.Dropout(dropout, name="dropout2", **own)
        self.drop_path1 = layers.Dropout(drop_path, (None, 1, 1), name="drop_path1", **own)
        self.drop_path2 = layers.Dropout(drop_path, (None, 1, 1), name="drop_path2", **own)

    def make_norm(self, name):
        return layers.LayerNormalization(epsilon=1e-6, dtype=self.dtype_policy, name=name)

    def build_norms(self, input_shape):
        self.norm1.build(input_shape)
        self.norm2.build(input_shape)

    def build_mixer(self, input_shape):
        raise NotImplementedError

    def mix_tokens(self, x):
        raise NotImplementedError

    def mix_channels(self, x):
        return self.shrink(self.expand(x))

    def build(self, input_shape):
        self.build_norms(input_shape)
        self.build_mixer(input_shape)
        self.expand.build(input_shape)
        self.shrink = layers.Dense(input_shape[-1], dtype=self.dtype_policy, name="shrink")
        self.shrink.build((*input_shape[:-1], self.hidden_dim))

    def call(self, inputs, training=None):
        x = self.dropout1(self.mix_tokens(self.norm1(inputs)), training=training)
        inputs = inputs + self.drop_path1(x, training=training)
        x = self.dropout2(self.mix_channels(self.norm2(inputs)), training=training)
        return inputs + self.drop_path2(x, training=training)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "drop_path": self.drop_path,
            "dropout": self.dropout,
        }


def check_tokens(layer, input_shape):
    """A `ValueError` where a layer with weights for each token is given no fixed number of them."""
    if len(input_shape) != 3 or None in input_shape[1:]:
        raise ValueError(
            f"{type(layer).__name__} has weights for each token, so their number must be fixed: "
            f"expected shape (batch, tokens, dim); received {tuple(input_shape)}."
        )
