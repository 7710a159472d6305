"""The convolutional network of the CIFAR-10 speed runs, built from Keras layers."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import layers, ops

from keras_gmlp.layers.whitening import WhiteningConvolution
from keras_gmlp.models.common import (
    batch_norm,
    classifier,
    convolution,
    head,
    pixels,
    pool_map,
)


def ConvNet(
    widths: Sequence[int] = (64, 256, 256),
    depth: int = 2,
    *,
    input_shape: tuple[int, int, int] = (32, 32, 3),
    classes: int = 10,
    include_top: bool = True,
    pooling: str | None = None,
    classifier_activation: str | None = None,
    mean: float | Sequence[float] = 0.5,
    std: float | Sequence[float] = 0.5,
    dtype: str | keras.DTypePolicy | None = None,
    name: str = "convnet",
) -> keras.Model:
    """Builds the network of airbench94: whitened 2x2 patches and groups of 3x3 convolutions.

    The first layer, `stem`, has fixed filters that follow from the training images.
    `keras_gmlp.train` sets them; before `model.fit`, call its `adapt` with pixels as it takes them,
    after `mean` and `std`.

    Args:
        widths: Channels of each group. A group halves the sides of the image.
        depth: Convolutions of each group. From the third on, each adds its input to its output.
        input_shape: `(height, width, channels)` of the images.
        classes: Number of classes.
        include_top, pooling, classifier_activation, mean, std, name: See `ResNet`.
        dtype: Dtype policy of the groups; the first layer and the logits are always float32.

    Returns:
        A compiled `keras.Model` from images in [0, 255] to logits; see `image_classifier`. Without
        a top it is not compiled.

    Raises:
        ValueError: If Keras is set to `"channels_first"`.

    Example:
        >>> ConvNet().output_shape
        (None, 10)

    Reference: "94% on CIFAR-10 in 3.29 Seconds on a Single GPU", https://arxiv.org/abs/2404.00498.
    """
    inputs, x = pixels(input_shape, mean, std)
    # bfloat16 has too few digits: the filters of least variance enlarge differences of pixels.
    x = WhiteningConvolution(2, dtype="float32", name="stem")(x)
    x = layers.Activation("gelu", dtype=dtype, name="stem_gelu")(x)
    for block in range(depth * len(widths)):
        group, place = divmod(block, depth)
        x = _block(x, widths[group], place, f"block_{block}", dtype)
    if not include_top:
        return keras.Model(inputs, pool_map(x, pooling), name=name)
    x = layers.GlobalMaxPooling2D("channels_last", dtype="float32", name="max_pool")(x)
    x = layers.Rescaling(1 / 9, dtype="float32", name="scale")(x)
    return classifier(inputs, head(classes)(x), classifier_activation, name)


def _block(x, width, place, name, dtype):
    """A 3x3 convolution, normalization and GELU; the first of a group halves the sides."""
    # A step gives filters the length 1: a norm follows, so longer ones only make steps smaller.
    constraint = keras.constraints.UnitNorm(axis=[0, 1, 2])
    kernel = {"kernel_initializer": PartialIdentity(), "kernel_constraint": constraint}
    skipped = x
    x = convolution(width, name, dtype, **kernel)(x)
    if place == 0:
        pool = {"data_format": "channels_last", "dtype": dtype, "name": f"{name}_pool"}
        x = layers.MaxPooling2D(**pool)(x)
    x = batch_norm(name, dtype, scale=False)(x)
    if place > 1:
        x = layers.Add(dtype=dtype, name=f"{name}_add")([x, skipped])
    return layers.Activation("gelu", dtype=dtype, name=f"{name}_gelu")(x)


@keras.saving.register_keras_serializable("keras_gmlp")
class PartialIdentity(keras.initializers.Initializer):
    """Kernels of which the first filters copy one input channel each; the rest are random."""

    # "94% on CIFAR-10 in 3.29 Seconds on a Single GPU", section 3.3, "dirac".

    def __init__(self):
        self.random = keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform")

    def __call__(self, shape, dtype=None, **kwargs):
        *sides, inputs, outputs = shape
        copied = np.arange(min(inputs, outputs))
        identity = np.zeros(shape, "float32")
        identity[(*(side // 2 for side in sides), copied, copied)] = 1
        random = self.random(shape, dtype)
        is_copy = np.arange(outputs) < len(copied)
        return ops.where(is_copy, ops.cast(identity, random.dtype), random)
