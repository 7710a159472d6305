"""Parts that all classifiers share: pixels, the head, compiling, pooling."""

import keras
import numpy as np
from keras import layers

from keras_gmlp.layers import AttentionPooling
from keras_gmlp.layers.block import Dense
from keras_gmlp.objectives.losses import CrossEntropy
from keras_gmlp.objectives.metrics import Accuracy
from keras_gmlp.utils.errors import require_one_of


def require_channels_last():
    """Raises a `ValueError` for `"channels_first"`."""
    if keras.config.image_data_format() != "channels_last":
        raise ValueError(
            "keras_gmlp takes images of shape (height, width, channels); received image data "
            "format 'channels_first'. Call keras.config.set_image_data_format(\"channels_last\")."
        )


def pixels(input_shape, mean, std):
    """Returns the input of a model and the pixels, scaled and normalized."""
    require_channels_last()
    channels = input_shape[-1]
    means, stds = (np.broadcast_to(value, channels).tolist() for value in (mean, std))
    if min(stds) <= 0:
        raise ValueError(f"std must be above 0; received {std}.")
    scales = [1 / (255 * s) for s in stds]
    offsets = [-m / s for m, s in zip(means, stds, strict=True)]
    inputs = keras.Input(input_shape, name="image")
    # In float32 under every policy: bfloat16 has too few digits for mixed pixels.
    normalize = layers.Rescaling(scales, offsets, dtype="float32", name="normalization")
    return inputs, normalize(inputs)


def head(classes, name="head"):
    """Returns the linear layer for the logits: in float32, and zero at the start."""
    return Dense(classes, kernel_initializer="zeros", dtype="float32", name=name)


def classifier(inputs, logits, activation, name):
    """Returns a compiled model with logits, or one with an activation on them."""
    if activation in (None, "linear"):
        return compiled(keras.Model(inputs, logits, name=name))
    activation = layers.Activation(activation, dtype="float32", name="classifier_activation")
    return keras.Model(inputs, activation(logits), name=name)


def compiled(model):
    """Compiles a model with a default optimizer and a loss for both kinds of labels."""
    model.compile(
        optimizer=keras.optimizers.AdamW(1e-3, weight_decay=0.05),
        loss=CrossEntropy(),
        metrics=[Accuracy()],
    )
    return model


def pool_tokens(pooling):
    """Returns the layer that pools tokens to a vector."""
    if pooling == "attention":
        return AttentionPooling(dtype="float32", name="pool")
    kind = layers.GlobalMaxPooling1D if pooling == "max" else layers.GlobalAveragePooling1D
    return kind("channels_last", dtype="float32", name="pool")


def convolution(channels, name, dtype, **kwargs):
    """Returns a 3x3 convolution that keeps the size, without bias because a norm follows."""
    kwargs |= {"padding": "same", "data_format": "channels_last", "use_bias": False}
    return layers.Conv2D(channels, 3, dtype=dtype, name=f"{name}_convolution", **kwargs)


def batch_norm(name, dtype, **kwargs):
    """Returns a batch normalization that averages over about 10 steps."""
    # The 0.99 of Keras would lag behind in short runs.
    kwargs |= {"momentum": 0.9, "epsilon": 1e-5}
    return layers.BatchNormalization(dtype=dtype, name=f"{name}_norm", **kwargs)


def pool_map(x, pooling):
    """Pools features `(batch, rows, columns, channels)` by `"avg"` or `"max"`, or not."""
    kinds = {"avg": layers.GlobalAveragePooling2D, "max": layers.GlobalMaxPooling2D}
    require_one_of("pooling", pooling, (None, *kinds))
    if pooling is None:
        return x
    return kinds[pooling]("channels_last", dtype="float32", name="pool")(x)
