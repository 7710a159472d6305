"""The image classifier that all families share; the block is an argument."""

import difflib
import inspect
from numbers import Integral

import keras
import numpy as np
from keras import layers

from keras_gmlp.layers import (
    AttentionPooling,
    ClassToken,
    ConvolutionalStem,
    PatchEmbedding,
    PositionEmbedding,
)
from keras_gmlp.layers.block import check_rates
from keras_gmlp.losses import Accuracy, CrossEntropy

STEMS = {"patches": PatchEmbedding, "convolutions": ConvolutionalStem}

# Arguments of timm, torchvision and Keras, and what they are called here.
SYNONYMS = {
    "num_classes": "classes",
    "image_size": "input_shape",
    "img_size": "input_shape",
    "input_tensor": "input_shape",
    "in_chans": "input_shape",
    "pretrained": "weights of keras_gmlp.build",
    "embed_dim": "dim",
    "num_layers": "depth",
    "drop_rate": "dropout",
    "drop_path_rate": "stochastic_depth",
}

POOLINGS = (None, "avg", "mean", "max", "attention")


def image_classifier(
    block,
    block_arguments=None,
    *,
    input_shape=(224, 224, 3),
    patch_size=16,
    patch_window=None,
    dim=256,
    depth=12,
    classes=1000,
    stochastic_depth=0.0,
    include_top=True,
    classifier_activation=None,
    stem="patches",
    pooling=None,
    class_token=False,
    distillation_token=False,
    position_embedding=False,
    norm=None,
    mean=0.5,
    std=0.5,
    dtype=None,
    name=None,
):
    """Builds a stem, a stack of blocks, the mean over tokens or a class token, and a linear head.

    The model takes pixels as they are in a file, 0 to 255; it scales and normalizes them.

    Args:
        block: A layer class that maps tokens `(batch, tokens, dim)` to tokens, such as a subclass
            of `layers.ResidualBlock`, or a function that returns such a layer. It must accept the
            keyword arguments `stochastic_depth`, `dtype` and `name`.
        block_arguments: Dict of further keyword arguments of `block`.
        input_shape: `(height, width, channels)` of the images.
        patch_size: Side of a patch in pixels; it must divide height and width.
        patch_window: Side of the square that a token is computed from, if larger than its patch;
            see `layers.PatchEmbedding`.
        dim: Channels of a token.
        depth: Number of blocks.
        classes: Number of classes.
        stochastic_depth: Probability, in [0, 1), that a sample skips the last block in training;
            it grows linearly from 0 at the first block.
        include_top: If `False`, the model has no head: it returns what `pooling` makes of the
            tokens after the last norm.
        classifier_activation: Activation on the logits, such as `"softmax"`. The model is then not
            compiled and cannot be trained by `keras_gmlp.train`, which requires logits.
        stem: `"patches"`, or `"convolutions"` for a few convolutions of stride 2.
        pooling: How tokens become one vector: `"avg"` or `"mean"` for their mean, `"max"` for their
            maximum, `"attention"` for a mean by learned weights, see `layers.AttentionPooling`.
            With a top, `None` is the mean, and a class token is read in place of the pooling.
            Without a top, `None` returns all tokens, `(batch, tokens, dim)`; the others return a
            vector, `(batch, dim)`, of the patches, without a class or distillation token.
        class_token: Classify from a learned class token instead of all tokens.
        distillation_token: Add a second token with a separate head, `head_distillation`; the logits
            are the mean of both heads. Requires `class_token=True`.
        position_embedding: Add a learned vector to each position.
        norm: Function of the keyword arguments `dtype` and `name` that returns the last norm.
            Defaults to layer normalization.
        mean, std: Mean and standard deviation of the pixels in [0, 1]; one number or one per
            channel.
        dtype: Dtype policy of all layers, for example `"mixed_bfloat16"`. Defaults to the global
            policy. Logits are always float32.
        name: Name of the model.

    Returns:
        A compiled `keras.Model` from images `(batch, height, width, channels)` with values in
        [0, 255] to logits `(batch, classes)`. Its loss accepts class indices and one-hot rows.
        Without a top it is not compiled.

    Raises:
        ValueError: If a size is out of its range, the patch size does not divide the image, or
            Keras is set to `"channels_first"`.

    Example:
        >>> from keras_gmlp.layers import MixerBlock
        >>> hidden = {"token_hidden_dim": 64, "hidden_dim": 256}
        >>> model = image_classifier(MixerBlock, hidden, dim=128, depth=2, classes=10)
        >>> model.output_shape
        (None, 10)
    """
    check_sizes(
        dim=dim, depth=depth, classes=classes, patch_size=patch_size, input_shape=input_shape
    )
    check_rates(stochastic_depth=stochastic_depth)
    if stem not in STEMS:
        raise ValueError(f"stem must be one of {', '.join(map(repr, STEMS))}; received {stem!r}.")
    if pooling not in POOLINGS:
        expected = ", ".join(map(repr, POOLINGS))
        raise ValueError(f"pooling must be one of {expected}; received {pooling!r}.")
    if distillation_token and not class_token:
        raise ValueError("distillation_token requires class_token=True.")
    if patch_window is not None and stem != "patches":
        raise ValueError(f"patch_window requires stem='patches'; received {stem!r}.")
    window = {} if patch_window is None else {"patch_window": patch_window}
    inputs, x = pixels(input_shape, mean, std)
    x = STEMS[stem](dim, patch_size, **window, dtype=dtype, name="stem")(x)
    if distillation_token:
        x = ClassToken(dtype=dtype, name="distillation_token")(x)
    if class_token:
        x = ClassToken(dtype=dtype, name="class_token")(x)
    if position_embedding:
        x = PositionEmbedding(dtype=dtype, name="position")(x)
    for i in range(depth):
        shared = {"stochastic_depth": stochastic_depth * i / max(depth - 1, 1), "dtype": dtype}
        x = block(**(block_arguments or {}), **shared, name=f"block_{i}")(x)
    x = (norm or _layer_norm)(dtype=dtype, name="norm")(x)
    if not include_top:
        if pooling is not None:
            x = _pool(pooling)(x[:, int(class_token) + int(distillation_token) :])
        return keras.Model(inputs, x, name=name)
    if distillation_token:
        heads = [head(classes)(x[:, 0]), head(classes, "head_distillation")(x[:, 1])]
        logits = layers.Average(dtype="float32", name="logits")(heads)
    elif class_token:
        logits = head(classes)(x[:, 0])
    else:
        logits = head(classes)(_pool(pooling or "avg")(x))
    return classifier(inputs, logits, classifier_activation, name)


def require_channels_last():
    """Raises a `ValueError` if Keras is set to `"channels_first"`, which `Rescaling` obeys."""
    if keras.config.image_data_format() != "channels_last":
        raise ValueError(
            "keras_gmlp takes images of shape (height, width, channels); received image data "
            "format 'channels_first'. Call keras.config.set_image_data_format(\"channels_last\")."
        )


def pixels(input_shape, mean, std):
    """Returns the input of a model and the pixels, scaled and normalized.

    Raises:
        ValueError: If Keras is set to `"channels_first"`.
    """
    require_channels_last()
    inputs = keras.Input(input_shape, name="image")
    # In float32 under every policy: bfloat16 has too few digits for mixed pixels.
    return inputs, _normalization(mean, std, input_shape[-1])(inputs)


def head(classes, name="head"):
    """Returns the linear layer for the logits: in float32, and zero at the start."""
    return layers.Dense(classes, kernel_initializer="zeros", dtype="float32", name=name)


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


def family_classifier(family, block, block_arguments, **arguments):
    """Calls `image_classifier`; an unknown argument is reported in the name of the family."""
    require_known(family, image_classifier, arguments)
    return image_classifier(block, block_arguments, **arguments)


def require_known(family, shell, arguments):
    """Raises a `TypeError` for arguments that neither a family nor the function for all has."""
    known = [n for n in inspect.signature(shell).parameters if not n.startswith("block")]
    unknown = sorted(set(arguments) - set(known))
    if not unknown:
        return
    known = list(dict.fromkeys([*inspect.signature(family).parameters, *known]))
    near = [SYNONYMS.get(n) or (difflib.get_close_matches(n, known, 1) or [""])[0] for n in unknown]
    hint = " or ".join(filter(None, near))
    hint = f"did you mean {hint}? The" if hint else "the"
    raise TypeError(
        f"{family.__name__} has no argument {', '.join(map(repr, unknown))}; {hint} arguments are "
        f"{', '.join(n for n in known if n != 'kwargs')}."
    )


def check_sizes(**sizes):
    """Raises a `ValueError` if a size or an entry of a shape is not a positive integer."""
    for name, value in sizes.items():
        is_shape = name == "input_shape" and isinstance(value, tuple | list)
        if name == "input_shape" and not (is_shape and len(value) == 3):
            raise ValueError(f"input_shape must be (height, width, channels); received {value}.")
        if not all(map(_is_positive_integer, value if is_shape else [value])):
            expected = "positive integers" if is_shape else "a positive integer"
            raise ValueError(f"{name} must be {expected}; received {value!r}.")


def _is_positive_integer(value):
    # A bool is an Integral, but as a size it is a mistake.
    return isinstance(value, Integral) and not isinstance(value, bool) and value > 0


def _pool(pooling):
    if pooling == "attention":
        return AttentionPooling(dtype="float32", name="pool")
    kind = layers.GlobalMaxPooling1D if pooling == "max" else layers.GlobalAveragePooling1D
    return kind("channels_last", dtype="float32", name="pool")


def pool_map(x, pooling):
    """Pools features `(batch, rows, columns, channels)` by `"avg"` or `"max"`, or not."""
    kinds = {"avg": layers.GlobalAveragePooling2D, "max": layers.GlobalMaxPooling2D}
    if pooling is None:
        return x
    if pooling not in kinds:
        raise ValueError(f"pooling must be None, 'avg' or 'max'; received {pooling!r}.")
    return kinds[pooling]("channels_last", dtype="float32", name="pool")(x)


def _layer_norm(**kwargs):
    return layers.LayerNormalization(epsilon=1e-6, **kwargs)


def _normalization(mean, std, channels):
    def per_channel(value):
        values = [value] * channels if np.ndim(value) == 0 else list(value)
        if len(values) != channels:
            raise ValueError(
                f"mean and std must be one number or one for each of {channels} channels; "
                f"received {value}."
            )
        return values

    means, stds = per_channel(mean), per_channel(std)
    if not all(s > 0 for s in stds):
        raise ValueError(f"std must be above 0; received {std}.")
    return layers.Rescaling(
        [1 / (255 * s) for s in stds],
        [-m / s for m, s in zip(means, stds, strict=True)],
        dtype="float32",
        name="normalization",
    )
