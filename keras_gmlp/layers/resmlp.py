"""ResMLP: "ResMLP: Feedforward networks for image classification with data-efficient training",
https://arxiv.org/abs/2105.03404."""

from typing import ClassVar

import keras
from keras import layers

from keras_gmlp.layers.block import (
    ConfiguredLayer,
    ResidualBlock,
    TokenLayer,
    make_dense,
    mask_tokens,
)
from keras_gmlp.layers.spatial_projection import apply_over_tokens


@keras.saving.register_keras_serializable("keras_gmlp")
class Affine(ConfiguredLayer):
    """Scales and shifts each channel by learned numbers: `alpha * x + beta`.

    ResMLP uses it in place of a norm. It needs no statistics, so it folds into a linear layer for
    inference. It starts as the identity.

    Input and output shape: `(..., dim)`.

    Reference: "ResMLP", https://arxiv.org/abs/2105.03404, equation 1.
    """

    supports_masking = True

    def build(self, input_shape):
        shape = (input_shape[-1],)
        self.alpha = self.add_weight(shape=shape, initializer="ones", name="alpha")
        self.beta = self.add_weight(shape=shape, initializer="zeros", name="beta")

    def call(self, inputs):
        return inputs * self.alpha + self.beta


@keras.saving.register_keras_serializable("keras_gmlp")
class LayerScale(ConfiguredLayer):
    """Scales each channel of a branch by a learned number that starts small.

    Args:
        initial_value: Initial scale; the paper uses 0.1 for up to 18 blocks, 1e-5 for 24 and 1e-6
            for more.

    Input and output shape: `(..., dim)`.

    Reference: "Going deeper with Image Transformers", https://arxiv.org/abs/2103.17239, section 2.
    """

    supports_masking = True

    def __init__(self, initial_value: float = 0.1, **kwargs):
        super().__init__(**kwargs)
        self.initial_value = initial_value

    def build(self, input_shape):
        initializer = keras.initializers.Constant(self.initial_value)
        self.gamma = self.add_weight((input_shape[-1],), initializer, name="gamma")

    def call(self, inputs):
        return inputs * self.gamma


@keras.saving.register_keras_serializable("keras_gmlp")
class ResMLPBlock(ResidualBlock):
    """One linear layer over tokens, then an MLP over channels, with Affine in place of norms.

    `x + scale1(W aff1(x) + b)`, then `x + scale2(mlp(aff2(x)))`, where W (n, n) mixes tokens.

    Args:
        hidden_dim: Channels of the hidden layer of the MLP.
        layer_scale: Initial scale of each branch; see `LayerScale`.
        **kwargs: See `Block`. `epsilon` has no effect, since Affine takes no statistics.

    Input and output shape: `(batch, tokens, dim)`, `tokens` fixed, otherwise a `ValueError`.

    Example:
        >>> ResMLPBlock(hidden_dim=512)(keras.ops.ones((2, 64, 128))).shape
        (2, 64, 128)

    Reference: "ResMLP", https://arxiv.org/abs/2105.03404, equations 2 and 3.
    """

    token_axes: ClassVar[dict] = {
        "spatial/kernel": ("reads", "writes"),
        "spatial/bias": ("writes",),
    }

    def __init__(self, hidden_dim: int, layer_scale: float = 0.1, **kwargs):
        super().__init__(hidden_dim, **kwargs)
        self.layer_scale = layer_scale
        self.scale1 = self.make_part(LayerScale, layer_scale, name="scale1")
        self.scale2 = self.make_part(LayerScale, layer_scale, name="scale2")

    def make_norm(self, name):
        return self.make_part(Affine, name=name)

    def build_mixer(self, input_shape):
        self.fix_tokens(input_shape)
        batch, tokens, dim = input_shape
        # The kernel is the transpose of W: column i is the filter that computes token i.
        self.spatial = make_dense(self, tokens, "spatial")
        self.spatial.build((batch, dim, tokens))
        self.scale1.build(input_shape)
        self.scale2.build(input_shape)

    def mix_tokens(self, x, mask=None):
        return self.scale1(apply_over_tokens(self.spatial, mask_tokens(x, mask)))

    def mix_channels(self, x):
        return self.scale2(super().mix_channels(x))


@keras.saving.register_keras_serializable("keras_gmlp")
class FoldedResMLPBlock(TokenLayer):
    """A `ResMLPBlock` for inference: Affine and LayerScale are part of its linear layers."""

    token_axes: ClassVar[dict] = {"spatial/kernel": ("reads", "writes"), "shift": ("writes", None)}

    def __init__(self, hidden_dim, **kwargs):
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.expand = self.make_part(layers.Dense, hidden_dim, "gelu", name="expand")

    def build(self, input_shape):
        self.fix_tokens(input_shape)
        batch, tokens, dim = input_shape
        self.spatial = self.make_part(layers.Dense, tokens, use_bias=False, name="spatial")
        self.scale = self.add_weight((dim,), "ones", name="scale")
        self.shift = self.add_weight((tokens, dim), "zeros", name="shift")
        self.shrink = self.make_part(layers.Dense, dim, name="shrink")
        self.spatial.build((batch, dim, tokens))
        self.expand.build(input_shape)
        self.shrink.build((batch, tokens, self.hidden_dim))

    def call(self, inputs, mask=None):
        if mask is not None:
            raise ValueError(
                f"{self.name}: a folded ResMLP block takes no padding mask; use the ResMLPBlock "
                "that it was folded from."
            )
        # The matrix is the same for all channels, so it cannot hold their factors.
        x = inputs + self.scale * apply_over_tokens(self.spatial, inputs) + self.shift
        return x + self.shrink(self.expand(x))
