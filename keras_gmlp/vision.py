"""Image classifiers: one shell, in which the block is an argument."""

import inspect
from numbers import Integral

import keras
import numpy as np
from keras import layers

from keras_gmlp.layers import (
    ClassToken,
    GMLPBlock,
    PatchEmbedding,
    PositionEmbedding,
    TransformerBlock,
)
from keras_gmlp.objective import Accuracy, CrossEntropy


def image_classifier(
    block,
    *,
    input_shape=(224, 224, 3),
    patch_size=16,
    dim=256,
    depth=12,
    classes=1000,
    stochastic_depth=0.0,
    include_top=True,
    class_token=False,
    position_embedding=False,
    mean=0.5,
    std=0.5,
    dtype=None,
    name=None,
):
    """Patches, a stack of blocks, the mean over tokens (or the class token), a linear head.

    Pixels go in as they are in a file, 0 to 255; scaling and normalization are inside.

    Args:
        block: function of keyword arguments `drop_path`, `dtype` and `name` that makes a layer
            from tokens to tokens, shape `(batch, tokens, dim)`.
        input_shape: `(height, width, channels)` of the images.
        patch_size: side of a patch in pixels; it must divide height and width.
        dim: channels of a token.
        depth: number of blocks.
        classes: number of classes.
        stochastic_depth: probability, in [0, 1), that a sample skips the last block in training;
            it grows linearly from 0 at the first block.
        include_top: `False` gives the tokens after the last norm, `(batch, tokens, dim)`.
        class_token: classify from a learned class token, in place of the mean over tokens.
        position_embedding: add a learned vector to each position.
        mean, std: of the pixels scaled to [0, 1], one number or one for each channel.
        dtype: dtype policy of all layers, for example `"mixed_bfloat16"`. Defaults to the global
            one. Logits are float32 always.
        name: the model's name.

    Returns:
        A compiled `keras.Model`: images `(batch, height, width, channels)` with values in
        [0, 255] to logits `(batch, classes)`. It takes class indices and one-hot rows as labels.
        Without a top it is not compiled.

    Raises:
        ValueError: a patch size that does not divide the image, or a size out of its range.
    """
    _check_sizes(
        dim=dim, depth=depth, classes=classes, patch_size=patch_size, input_shape=input_shape
    )
    _check_rates(stochastic_depth=stochastic_depth)
    inputs = keras.Input(input_shape, name="image")
    # In float32 whatever the policy: bfloat16 has too few digits for mixed pixels.
    x = _normalization(mean, std, input_shape[-1])(inputs)
    x = PatchEmbedding(dim, patch_size, dtype=dtype, name="stem")(x)
    if class_token:
        x = ClassToken(dtype=dtype, name="class_token")(x)
    if position_embedding:
        x = PositionEmbedding(dtype=dtype, name="position")(x)
    for i in range(depth):
        drop_path = stochastic_depth * i / max(depth - 1, 1)
        x = block(drop_path=drop_path, dtype=dtype, name=f"block_{i}")(x)
    x = layers.LayerNormalization(epsilon=1e-6, dtype=dtype, name="norm")(x)
    if include_top:
        if class_token:
            x = x[:, 0]
        else:
            x = layers.GlobalAveragePooling1D(
                data_format="channels_last", dtype="float32", name="pool"
            )(x)
        x = layers.Dense(classes, kernel_initializer="zeros", dtype="float32", name="head")(x)
    model = keras.Model(inputs, x, name=name)
    if include_top:
        model.compile(
            optimizer=keras.optimizers.AdamW(1e-3, weight_decay=0.05),
            loss=CrossEntropy(),
            metrics=[Accuracy()],
        )
    return model


def gMLP(
    dim=256,
    depth=30,
    hidden_dim=1536,
    gating="split",
    attention_size=0,
    dropout=0.0,
    name="gmlp",
    **shell,
):
    """gMLP, "Pay Attention to MLPs" (https://arxiv.org/abs/2105.08050). Defaults: gMLP-S.

    Args:
        dim, depth: see `image_classifier`.
        hidden_dim: channels inside a block, the paper's d_ffn.
        gating: `"split"`, `"multiplicative"`, `"additive"` or `"linear"`.
        attention_size: head size of the tiny attention; 0 means none.
        dropout: rate, in [0, 1), on each block's output.
        name: the model's name.
        **shell: `input_shape`, `patch_size`, `classes`, `stochastic_depth`, `include_top`, ...:
            see `image_classifier`.

    Returns:
        A compiled `keras.Model`, images in [0, 255] to logits.

    Example:
        >>> model = gMLP(128, 8, 512, input_shape=(32, 32, 3), patch_size=4, classes=10)
        >>> model.output_shape
        (None, 10)
    """
    _check_sizes(hidden_dim=hidden_dim)
    _check_rates(dropout=dropout)

    def block(**kwargs):
        return GMLPBlock(hidden_dim, gating, attention_size, dropout=dropout, **kwargs)

    return _shell("gMLP", block, dim=dim, depth=depth, name=name, **shell)


def aMLP(dim=256, depth=24, hidden_dim=1536, attention_size=64, name="amlp", **kwargs):
    """gMLP with a tiny attention of one head in each block's gate.

    Args:
        dim, depth, hidden_dim, name: see `gMLP`.
        attention_size: head size, at least 1.
        **kwargs: the other arguments of `gMLP` and of `image_classifier`.

    Returns:
        A compiled `keras.Model`, images in [0, 255] to logits.

    Reference: "Pay Attention to MLPs", https://arxiv.org/abs/2105.08050, section 4.3.
    """
    _check_sizes(attention_size=attention_size)
    return gMLP(dim, depth, hidden_dim, attention_size=attention_size, name=name, **kwargs)


def ViT(
    dim=384,
    depth=12,
    num_heads=6,
    mlp_ratio=4,
    dropout=0.0,
    class_token=True,
    name="vit",
    **shell,
):
    """Vision Transformer, "An Image is Worth 16x16 Words". Defaults: ViT-S.

    Args:
        dim, depth: see `image_classifier`.
        num_heads: attention heads; they must divide `dim`.
        mlp_ratio: hidden channels of the feed-forward network over `dim`.
        dropout: rate, in [0, 1), on each branch's output.
        class_token: classify from it, as the paper does; `False` takes the mean over tokens.
        name: the model's name.
        **shell: `input_shape`, `patch_size`, `classes`, `stochastic_depth`, `include_top`, ...:
            see `image_classifier`.

    Returns:
        A compiled `keras.Model`, images in [0, 255] to logits.

    Reference: https://arxiv.org/abs/2010.11929.
    """
    _check_sizes(num_heads=num_heads)
    _check_rates(dropout=dropout)

    def block(**kwargs):
        return TransformerBlock(num_heads, int(dim * mlp_ratio), dropout=dropout, **kwargs)

    shell = {"class_token": class_token, "position_embedding": True, **shell}
    return _shell("ViT", block, dim=dim, depth=depth, name=name, **shell)


def _shell(family, block, **arguments):
    """`image_classifier`, with a misspelt argument reported in the family's name."""
    known = inspect.signature(image_classifier).parameters
    unknown = sorted(set(arguments) - set(known))
    if unknown:
        raise TypeError(
            f"{family} has no argument {', '.join(map(repr, unknown))}; beside its own it takes "
            f"{', '.join(name for name in known if name != 'block')}."
        )
    return image_classifier(block, **arguments)


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
    return layers.Rescaling(
        [1 / (255 * s) for s in stds],
        [-m / s for m, s in zip(means, stds, strict=True)],
        dtype="float32",
        name="normalization",
    )


def _check_rates(**rates):
    for name, rate in rates.items():
        if not 0 <= rate < 1:
            raise ValueError(f"{name} must be in [0, 1); received {rate}.")


def _check_sizes(**sizes):
    for name, value in sizes.items():
        is_shape = name == "input_shape" and isinstance(value, tuple | list)
        if name == "input_shape" and not (is_shape and len(value) == 3):
            raise ValueError(f"input_shape must be (height, width, channels); received {value}.")
        if not all(isinstance(v, Integral) and v > 0 for v in (value if is_shape else [value])):
            raise ValueError(f"{name} must be positive whole numbers; received {value!r}.")
