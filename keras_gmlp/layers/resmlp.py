"""ResMLP: "ResMLP: Feedforward networks for image classification with data-efficient training",
https://arxiv.org/abs/2105.03404."""

import keras
from keras import layers, ops

from keras_gmlp.layers.residual import ResidualBlock, check_tokens


@keras.saving.register_keras_serializable("keras_gmlp")
class Affine(layers.Layer):
    """Scales and shifts each channel by learned numbers: `alpha * x + beta`.

    It stands where other networks have a norm; it needs no statistics, so that at inference it
    folds into a linear layer. It starts as the identity.

    Input and output shape: `(..., dim)`.

    Example:
        >>> Affine()(keras.ops.ones((2, 64, 128))).shape
        (2, 64, 128)

    Reference: "ResMLP", https://arxiv.org/abs/2105.03404, equation 1.
    """

    def build(self, input_shape):
        shape = (input_shape[-1],)
        self.alpha = self.add_weight(shape=shape, initializer="ones", name="alpha")
        self.beta = self.add_weight(shape=shape, initializer="zeros", name="beta")

    def call(self, inputs):
        return inputs * self.alpha + self.beta

    def compute_output_shape(self, input_shape):
        return input_shape


@keras.saving.register_keras_serializable("keras_gmlp")
class LayerScale(layers.Layer):
    """Scales each channel of a branch by a learned number that starts small.

    Args:
        initial_value: the paper takes 0.1 for up to 18 blocks, 1e-5 for 24, 1e-6 for more.

    Input and output shape: `(..., dim)`.

    Example:
        >>> LayerScale(0.1)(keras.ops.ones((2, 64, 128))).shape
        (2, 64, 128)

    Reference: "Going deeper with Image Transformers", https://arxiv.org/abs/2103.17239, section 2.
    """

    def __init__(self, initial_value=0.1, **kwargs):
        super().__init__(**kwargs)
        self.initial_value = initial_value

    def build(self, input_shape):
        initializer = keras.initializers.Constant(self.initial_value)
        self.gamma = self.add_weight(
            shape=(input_shape[-1],), initializer=initializer, name="gamma"
        )

    def call(self, inputs):
        return inputs * self.gamma

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "initial_value": self.initial_value}


@keras.saving.register_keras_serializable("keras_gmlp")
class ResMLPBlock(ResidualBlock):
    """One linear layer over tokens, then an MLP over channels, with Affine in place of norms.

    `x + scale1(W aff1(x) + b)`, then `x + scale2(mlp(aff2(x)))`, where W (n, n) mixes tokens.

    Args:
        hidden_dim: channels of the MLP's hidden layer.
        layer_scale: what the scale of each branch starts from; see `LayerScale`.
        **kwargs: `drop_path`, the probability, in [0, 1), that a sample skips a branch in training
            (stochastic depth, drawn for each branch by itself); `dropout`, the rate, in [0, 1), on
            each branch's output; and a layer's own, `dtype` and `name`.

    Input and output shape: `(batch, tokens, dim)`, `tokens` fixed.

    Raises:
        ValueError: the number of tokens is not fixed.

    Example:
        >>> ResMLPBlock(hidden_dim=512)(keras.ops.ones((2, 64, 128))).shape
        (2, 64, 128)

    Reference: "ResMLP", https://arxiv.org/abs/2105.03404, equations 2 and 3.
    """

    def __init__(self, hidden_dim, layer_scale=0.1, **kwargs):
        super().__init__(hidden_dim, **kwargs)
        self.layer_scale = layer_scale
        self.scale1 = LayerScale(layer_scale, dtype=self.dtype_policy, name="scale1")
        self.scale2 = LayerScale(layer_scale, dtype=self.dtype_policy, name="scale2")

    def make_norm(self, name):
        return Affine(dtype=self.dtype_policy, name=name)

    def build_mixer(self, input_shape):
        check_tokens(self, input_shape)
        batch, tokens, dim = input_shape
        # The kernel is W, transposed: column i is the filter that makes token i.
        self.spatial = layers.Dense(tokens, dtype=self.dtype_policy, name="spatial")
        self.spatial.build((batch, dim, tokens))
        self.scale1.build(input_shape)
        self.scale2.build(input_shape)

    def mix_tokens(self, x):
        x = self.spatial(ops.transpose(x, (0, 2, 1)))  # (b, n, d) -> (b, d, n)
        return self.scale1(ops.transpose(x, (0, 2, 1)))

    def mix_channels(self, x):
        return self.scale2(super().mix_channels(x))

    def get_config(self):
        return {**super().get_config(), "layer_scale": self.layer_scale}


@keras.saving.register_keras_serializable("keras_gmlp")
class FoldedResMLPBlock(layers.Layer):
    """A `ResMLPBlock` for inference, whose Affine and LayerScale are part of its linear layers.

    Those around the channel MLP vanish in its kernels. A matrix over tokens, which all channels
    share, cannot hold a factor for each channel: of the token branch's Affine, LayerScale and bias,
    one factor a channel and one summand for each token and channel remain,
    `x + scale * (W x) + shift`.

    Args:
        hidden_dim: channels of the MLP's hidden layer.

    Input and output shape: `(batch, tokens, dim)`, `tokens` fixed.

    Raises:
        ValueError: the number of tokens is not fixed.

    Example:
        >>> FoldedResMLPBlock(hidden_dim=512)(keras.ops.ones((2, 64, 128))).shape
        (2, 64, 128)

    Reference: "ResMLP", https://arxiv.org/abs/2105.03404, section 2.
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
        own = {"dtype": self.dtype_policy}
        self.spatial = layers.Dense(tokens, use_bias=False, name="spatial", **own)
        self.scale = self.add_weight(shape=(dim,), initializer="ones", name="scale")
        self.shift = self.add_weight(shape=(tokens, dim), initializer="zeros", name="shift")
        self.shrink = layers.Dense(dim, name="shrink", **own)
        self.spatial.build((batch, dim, tokens))
        self.expand.build(input_shape)
        self.shrink.build((batch, tokens, self.hidden_dim))

    def call(self, inputs):
        x = self.spatial(ops.transpose(inputs, (0, 2, 1)))  # (b, n, d) -> (b, d, n)
        x = inputs + self.scale * ops.transpose(x, (0, 2, 1)) + self.shift
        return x + self.shrink(self.expand(x))

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "hidden_dim": self.hidden_dim}
