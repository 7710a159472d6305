"""Models in the forms that 8-bit integers hold: the same numbers, other operations."""

import functools

import keras
import numpy as np
from keras import ops

from keras_gmlp.layers import (
    ExternalAttention,
    ExternalAttentionBlock,
    PositionEmbedding,
    TransformerBlock,
)
from keras_gmlp.models.structure import class_tokens

SAMPLES = 100  # of the calibration images, which tell how large the class token is

NEGLIGIBLE = 100  # times a norm's epsilon: the variance from which on it is half a percent or less


def prepare_for_int8(model, calibration):
    """A copy that computes the same in a way that loses less in 8-bit integers.

    Layer norms: Keras' own loses its precision in the squares, of which a few are 40 times as large
    as their root mean square, so that most round to nothing and the variance is off by a fifth.
    External attention: it divides by a sum that may round to nothing. The class token: see
    `enlarge_class_tokens`.

    Args:
        model: a float32 `keras.Model` from images to logits.
        calibration: images `(samples, height, width, channels)` like those to come.

    Raises:
        ValueError: a layer norm without scale or shift or of another axis than the last.
    """
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    enlarge_class_tokens(copy, calibration[:SAMPLES])
    for layer in copy._flatten_layers():  # Keras has no public way into the blocks
        if isinstance(layer, keras.layers.LayerNormalization):
            if layer.gamma is None or layer.beta is None or layer.axis not in (-1, [-1]):
                raise ValueError(
                    f"{layer.path}: int8 takes layer norms of the last axis, with scale and shift."
                )
            layer.call = functools.partial(normalize, layer)
        elif isinstance(layer, ExternalAttention):
            layer.attend = attend
    return copy


def enlarge_class_tokens(model, calibration):
    """Makes class and distillation tokens as large as the patches, up to the first block's MLP.

    All tokens of a tensor share one grid. A trained class token may start at a tenth of the
    patches' size, on few steps of it, until the first MLP's output outweighs it. The norms that
    read a token do not mind its size while their epsilon is negligible, so it may be larger.

    Args:
        model: changed in place; nothing is done where its class tokens are more than half as large
            as the patches or too small for epsilon, or where its first block is of another kind.
        calibration: images.
    """
    tokens = class_tokens(model)
    kinds = (TransformerBlock, ExternalAttentionBlock)
    block = next((layer for layer in model.layers if isinstance(layer, kinds)), None)
    if not tokens or block is None or block.norm_placement != "pre":
        return
    before = keras.Model(model.input, block.input).predict(calibration.astype("float32"), verbose=0)
    after = ops.convert_to_numpy(before + block.mix_tokens(block.norm1(before)))
    squares = [np.mean(x**2, axis=(0, 2)) for x in (before, after)]  # (tokens,)
    if np.min(squares) < NEGLIGIBLE * block.norm1.epsilon:
        return
    size = np.sqrt(squares[1])
    gains = np.ones((1, len(size), 1), "float32")
    gains[0, : len(tokens), 0] = np.maximum(1, size[len(tokens) :].mean() / size[: len(tokens)])
    if gains.max() < 2:
        return
    for place, layer in enumerate(tokens):
        layer.token.assign(layer.token * gains[0, place, 0])
    for layer in model.layers:
        if isinstance(layer, PositionEmbedding):
            layer.embedding.assign(layer.embedding * gains)
    block.call = functools.partial(_call_enlarged, block, gains)


def _call_enlarged(block, gains, inputs, mask=None, training=None):
    """What the block computes, of inputs whose tokens are `gains` times as large."""
    x = inputs + block.mix_tokens(block.norm1(inputs)) * gains
    return x * (1 / gains) + block.mix_channels(block.norm2(x))


def attend(scores):
    """The double normalization of `ExternalAttention`, in a form that divides by nothing.

    A softmax over tokens divided by its sum over slots is the softmax over slots of its logarithm.
    Not the layer's own, since in float its operators are slower.
    """
    return ops.softmax(ops.log_softmax(scores, axis=1), axis=-1)


def normalize(norm, inputs):
    """What a `LayerNormalization` of the last axis computes, in a form that integers hold.

    A matrix product sums the squares in 32 bits, without a tensor of squares. The mean is taken
    off at the end, from values of fine resolution: where outliers make the grid of the inputs
    coarse, all channels of the centred ones would round in the same direction.
    """
    mean = ops.mean(inputs, axis=-1, keepdims=True)
    centred = ops.expand_dims(inputs - mean, -2)  # (b, n, c) -> (b, n, 1, c)
    squares = ops.matmul(centred, ops.swapaxes(centred, -1, -2))[..., 0]  # (b, n, 1)
    scale = ops.rsqrt(squares / inputs.shape[-1] + norm.epsilon) * norm.gamma
    return inputs * scale + (norm.beta - mean * scale)
