"""The convolutional baseline: the residual network for small images, from stock Keras layers."""

import keras
from keras import layers, ops

from keras_gmlp.models.image_classifier import check_rates, check_sizes, compiled, head, pixels


def ResNet(
    depth=56,
    width=16,
    *,
    input_shape=(32, 32, 3),
    classes=10,
    stochastic_depth=0.0,
    include_top=True,
    mean=0.5,
    std=0.5,
    dtype=None,
    name="resnet",
):
    """The CIFAR ResNet: three stages of basic blocks, 6n + 2 layers, shortcuts without weights.

    Args:
        depth: layers with weights, 6n + 2: 20, 32, 44, 56, 110.
        width: channels of the first stage; the next two have twice and four times as many.
        input_shape: `(height, width, channels)` of the images.
        classes: number of classes.
        stochastic_depth: probability, in [0, 1), that a sample skips the last block in training;
            it grows linearly from 0 at the first block.
        include_top: `False` gives the last stage's features, `(batch, rows, columns, channels)`.
        mean, std: of the pixels scaled to [0, 1], one number or one for each channel.
        dtype: dtype policy of all layers. Logits are float32 always.
        name: the model's name.

    Returns:
        A compiled `keras.Model`, images in [0, 255] to logits, as `image_classifier` gives it.
        Without a top it is not compiled.

    Raises:
        ValueError: a depth that is not 6n + 2, or a size out of its range.

    Example:
        >>> ResNet(20).output_shape
        (None, 10)

    Reference: "Deep Residual Learning", https://arxiv.org/abs/1512.03385, section 4.2, option A.
    """
    check_sizes(depth=depth, width=width, input_shape=input_shape, classes=classes)
    check_rates(stochastic_depth=stochastic_depth)
    if depth < 8 or (depth - 2) % 6:
        raise ValueError(f"depth must be 6n + 2: 20, 32, 44, 56, 110; received {depth}.")
    own = {"dtype": dtype}
    inputs, x = pixels(input_shape, mean, std)
    x = _convolution(x, width, 1, "stem", own)
    x = layers.ReLU(name="stem_relu", **own)(x)
    blocks = (depth - 2) // 2
    for i in range(blocks):
        stage, first = divmod(i, blocks // 3)
        drop_path = stochastic_depth * i / max(blocks - 1, 1)
        strides = 2 if stage and not first else 1
        x = _basic_block(x, width << stage, strides, drop_path, f"block_{i}", own)
    if not include_top:
        return keras.Model(inputs, x, name=name)
    pool = layers.GlobalAveragePooling2D("channels_last", dtype="float32", name="pool")
    return compiled(keras.Model(inputs, head(classes)(pool(x)), name=name))


def _basic_block(x, channels, strides, drop_path, name, own):
    """Two 3x3 convolutions; a shortcut that strides and pads with channels of zeros."""
    shortcut = x
    x = _convolution(x, channels, strides, f"{name}_1", own)
    x = layers.ReLU(name=f"{name}_relu_1", **own)(x)
    x = _convolution(x, channels, 1, f"{name}_2", own)
    x = layers.Dropout(drop_path, (None, 1, 1, 1), name=f"{name}_drop_path", **own)(x)
    if strides > 1:
        added = channels - shortcut.shape[-1]
        channel_padding = (added // 2, added - added // 2)
        shortcut = ops.pad(
            shortcut[:, ::strides, ::strides], ((0, 0), (0, 0), (0, 0), channel_padding)
        )
    x = layers.Add(name=f"{name}_add", **own)([shortcut, x])
    return layers.ReLU(name=f"{name}_relu_2", **own)(x)


def _convolution(x, channels, strides, name, own):
    x = layers.Conv2D(
        channels,
        3,
        strides,
        "same",
        data_format="channels_last",
        use_bias=False,
        kernel_initializer="he_normal",
        name=f"{name}_convolution",
        **own,
    )(x)
    # In short runs, statistics over the last hundred steps; Keras' 0.99 would lag by a thousand.
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5, name=f"{name}_norm", **own)(x)
