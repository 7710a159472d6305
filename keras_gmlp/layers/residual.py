"""The block of two residual branches, which most families share."""

from functools import partial

from keras_gmlp.layers.block import Block, drop, make_dense


class ResidualBlock(Block):
    """Mixes tokens in one residual branch and channels in another.

    Computes `x + mix_tokens(norm1(x))`, then `x + mix_channels(norm2(x))`. With
    `norm_placement="post"` it computes `norm1(x + mix_tokens(x))`, then `norm2(x +
    mix_channels(x))`. A family defines `mix_tokens(x, mask=None)` and creates the weights for it in
    `build_mixer(input_shape)`. Channels mix in a feed-forward network.

    Args:
        hidden_dim: Channels of the hidden layer of the feed-forward network.
        **kwargs: See `Block`. Each branch draws its own stochastic depth and dropout.

    Input and output shape: `(batch, tokens, dim)`.
    """

    def __init__(self, hidden_dim, **kwargs):
        super().__init__(hidden_dim, **kwargs)
        self.norm1 = self.make_norm("norm1")
        self.norm2 = self.make_norm("norm2")
        self.expand = make_dense(self, hidden_dim, "expand", activation="gelu")
        # The names drop_path1 and drop_path2 are part of saved files since version 0.1.0.
        # Separate layers: with a shared one, both branches would have the same name.
        self.dropout1 = self.make_dropout("dropout1")
        self.dropout2 = self.make_dropout("dropout2")
        self.drop_path1 = self.make_stochastic_depth("drop_path1")
        self.drop_path2 = self.make_stochastic_depth("drop_path2")

    def build_norms(self, input_shape):
        self.norm1.build(input_shape)
        self.norm2.build(input_shape)

    def build_mixer(self, input_shape):
        """Builds the layers of `mix_tokens`; a mixer without weights has none."""

    def mix_tokens(self, x, mask=None):
        raise NotImplementedError(
            f"{type(self).__name__} does not define mix_tokens(x, mask=None)."
        )

    def mix_channels(self, x):
        return self.shrink(self.expand(x))

    def build(self, input_shape):
        self.build_norms(input_shape)
        self.build_mixer(input_shape)
        self.expand.build(input_shape)
        self.shrink = make_dense(self, input_shape[-1], "shrink")
        self.shrink.build((*input_shape[:-1], self.hidden_dim))

    def branches(self, mask):
        """Returns the norm and the mixing function of each branch, in their order."""
        return (self.norm1, partial(self.mix_tokens, mask=mask)), (self.norm2, self.mix_channels)

    def call(self, inputs, mask=None, training=None):
        x = inputs
        drops = (self.dropout1, self.drop_path1), (self.dropout2, self.drop_path2)
        for (norm, mix), (dropout, drop_path) in zip(self.branches(mask), drops, strict=True):
            branch = mix(norm(x)) if self.norm_placement == "pre" else mix(x)
            x = x + drop(drop_path, drop(dropout, branch, training), training)
            if self.norm_placement == "post":
                x = norm(x)
        return x
