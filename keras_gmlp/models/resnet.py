"""ResNet for small images, the convolutional baseline, built from Keras layers."""

from collections.abc import Sequence

import keras
from keras import layers, ops

from keras_gmlp.models.common import (
    batch_norm,
    classifier,
    convolution,
    head,
    pixels,
    pool_map,
)


def ResNet(
    depth: int = 56,
    width: int = 16,
    *,
    input_shape: tuple[int, int, int] = (32, 32, 3),
    classes: int = 10,
    stochastic_depth: float = 0.0,
    include_top: bool = True,
    pooling: str | None = None,
    classifier_activation: str | None = None,
    mean: float | Sequence[float] = 0.5,
    std: float | Sequence[float] = 0.5,
    dtype: str | keras.DTypePolicy | None = None,
    name: str = "resnet",
) -> keras.Model:
    """Builds the CIFAR ResNet: three stages of basic blocks, shortcuts without weights.

    Args:
        depth: Number of layers with weights, 6n + 2: 20, 32, 44, 56, 110.
        width: Channels of the first stage; the next two have twice and four times as many.
        input_shape: `(height, width, channels)` of the images.
        classes: Number of classes.
        stochastic_depth: Probability, in [0, 1), that a sample skips the last block in training;
            it grows linearly from 0 at the first block.
        include_top: If `False`, the model returns the features of the last stage, `(batch, rows,
            columns, channels)`.
        pooling: Without a top, `"avg"` or `"max"` for a vector `(batch, channels)` of them.
        classifier_activation: See `image_classifier`.
        mean, std: Mean and standard deviation of the pixels in [0, 1]; one number or one per
            channel.
        dtype: Dtype policy of all layers. Logits are always float32.
        name: Name of the model.

    Returns:
        A compiled `keras.Model` from images in [0, 255] to logits; see `image_classifier`. Without
        a top it is not compiled.

    Raises:
        ValueError: If the depth is not 6n + 2, or Keras is set to `"channels_first"`.

    Example:
        >>> ResNet(20).output_shape
        (None, 10)

    Reference: "Deep Residual Learning", https://arxiv.org/abs/1512.03385, section 4.2, option A.
    """
    if depth < 8 or (depth - 2) % 6:
        raise ValueError(f"depth must be 6n + 2: 20, 32, 44, 56, 110; received {depth}.")
    own = {"dtype": dtype}
    inputs, x = pixels(input_shape, mean, std)
    x = _convolution(x, width, 1, "stem", own)
    x = layers.ReLU(name="stem_relu", **own)(x)
    blocks = (depth - 2) // 2
    for i in range(blocks):
        stage, first = divmod(i, blocks // 3)
        rate = stochastic_depth * i / max(blocks - 1, 1)
        strides = 2 if stage and not first else 1
        x = _basic_block(x, width << stage, strides, rate, f"block_{i}", own)
    x = pool_map(x, "avg" if include_top else pooling)
    if not include_top:
        return keras.Model(inputs, x, name=name)
    return classifier(inputs, head(classes)(x), classifier_activation, name)


def _basic_block(x, channels, strides, rate, name, own):
    """Two 3x3 convolutions and a shortcut that subsamples and pads with channels of zeros."""
    shortcut = x
    x = _convolution(x, channels, strides, f"{name}_1", own)
    x = layers.ReLU(name=f"{name}_relu_1", **own)(x)
    x = _convolution(x, channels, 1, f"{name}_2", own)
    x = layers.Dropout(rate, (None, 1, 1, 1), name=f"{name}_drop_path", **own)(x)
    if strides > 1:
        added = channels - shortcut.shape[-1]
        padding = ((0, 0), (0, 0), (0, 0), (added // 2, added - added // 2))
        shortcut = ops.pad(shortcut[:, ::strides, ::strides], padding)
    x = layers.Add(name=f"{name}_add", **own)([shortcut, x])
    return layers.ReLU(name=f"{name}_relu_2", **own)(x)


def _convolution(x, channels, strides, name, own):
    x = convolution(channels, name, strides=strides, kernel_initializer="he_normal", **own)(x)
    return batch_norm(name, **own)(x)
