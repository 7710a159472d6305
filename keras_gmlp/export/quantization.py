"""Rewrites a model for 8-bit integers: the same numbers, computed by other operations."""

import keras
import numpy as np
from keras import layers, ops

from keras_gmlp.layers import Block, ExternalAttention, PositionEmbedding, ResidualBlock
from keras_gmlp.models.structure import class_tokens

SAMPLES = 100  # calibration images that measure the size of the class token
NEGLIGIBLE = 100  # times a norm's epsilon: above this variance, epsilon changes at most 0.5 %


class IntegerLayerNormalization(layers.LayerNormalization):
    """Layer normalization over the last axis in a form that integers can hold."""

    # Squares of a few inputs are 40 times their root mean square, so that in 8 bits most others
    # round to zero. A matrix product sums the squares in 32 bits. The mean is subtracted at the
    # end, from values of fine resolution: the grid of the inputs is coarse where outliers are.

    def call(self, inputs):
        mean = ops.mean(inputs, axis=-1, keepdims=True)
        centred = ops.expand_dims(inputs - mean, -2)  # (b, n, c) -> (b, n, 1, c)
        squares = ops.matmul(centred, ops.swapaxes(centred, -1, -2))[..., 0]  # (b, n, 1)
        scale = ops.rsqrt(squares / inputs.shape[-1] + self.epsilon) * self.gamma
        return inputs * scale + (self.beta - mean * scale)


class IntegerExternalAttention(ExternalAttention):
    """External attention without a division by a sum that may round to zero."""

    # A softmax over tokens divided by its sum over slots is the softmax over slots of its
    # logarithm. In float these operators are slower than those of `ExternalAttention`.

    def attend(self, scores):
        return ops.softmax(ops.log_softmax(scores, axis=1), axis=-1)


INTEGER_FORMS = {
    layers.LayerNormalization: IntegerLayerNormalization,
    ExternalAttention: IntegerExternalAttention,
}


class EnlargedTokensBlock(layers.Layer):
    """A pre-norm block whose input tokens are `gains` times as large; its output is the same."""

    def __init__(self, block, gains, **kwargs):
        super().__init__(**kwargs)
        self.block = block
        self.gains = np.reshape(gains, (1, -1, 1)).astype("float32")

    def build(self, input_shape):
        self.block.build(input_shape)

    def call(self, inputs, mask=None):
        mixed = self.block.mix_tokens(self.block.norm1(inputs), mask=mask)
        x = inputs + mixed * self.gains
        return x * (1 / self.gains) + self.block.mix_channels(self.block.norm2(x))

    def compute_output_shape(self, input_shape):
        return input_shape


def prepare_for_int8(model, calibration):
    """Copies a model into a form that loses less accuracy in 8-bit integers."""
    block, gains = measure_gains(model, calibration[:SAMPLES])

    def clone(layer):
        copied = type(layer).from_config(layer.get_config())
        return EnlargedTokensBlock(copied, gains, name=layer.name) if layer is block else copied

    copy = keras.models.clone_model(model, clone_function=clone)
    copy.set_weights(model.get_weights())
    if block is not None:
        for place, layer in enumerate(class_tokens(copy)):
            layer.token.assign(layer.token * gains[place])
        for layer in copy.layers:
            if isinstance(layer, PositionEmbedding):
                layer.embedding.assign(layer.embedding * gains[:, None])
    for layer in copy._flatten_layers(include_self=False):
        if type(layer) is layers.LayerNormalization and (
            layer.gamma is None or layer.beta is None or layer.axis not in (-1, [-1])
        ):
            raise ValueError(
                f"{layer.path}: int8 export requires layer norms over the last axis, with scale "
                "and shift."
            )
        # The form adds no state, so that a built layer can change its class and keep its weights.
        layer.__class__ = INTEGER_FORMS.get(type(layer), type(layer))
    return copy


def measure_gains(model, calibration):
    """Measures how much larger the class and distillation tokens may be."""
    tokens = class_tokens(model)
    block = next((layer for layer in model.layers if isinstance(layer, Block)), None)
    if not tokens or not _computes_two_branches(block):
        return None, None
    before = keras.Model(model.input, block.input).predict(calibration.astype("float32"), verbose=0)
    after = ops.convert_to_numpy(before + block.mix_tokens(block.norm1(before)))
    squares = [np.mean(x**2, axis=(0, 2)) for x in (before, after)]  # (tokens,)
    if np.min(squares) < NEGLIGIBLE * block.norm1.epsilon:
        return None, None
    size = np.sqrt(squares[1])
    gains = np.ones(len(size), "float32")
    gains[: len(tokens)] = np.maximum(1, size[len(tokens) :].mean() / size[: len(tokens)])
    return (None, None) if gains.max() < 2 else (block, gains)


def _computes_two_branches(block):
    """Returns whether `EnlargedTokensBlock` computes the same as a block."""
    return (
        isinstance(block, ResidualBlock)
        and type(block).call is ResidualBlock.call
        and type(block).branches is ResidualBlock.branches
        and block.norm_placement == "pre"
        and isinstance(block.norm1, layers.LayerNormalization)
        and isinstance(block.norm2, layers.LayerNormalization)
    )
