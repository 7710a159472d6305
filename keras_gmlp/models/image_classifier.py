"""The image classifier that all families share; the block is an argument."""

from collections.abc import Callable, Sequence
from functools import partial

import keras
from keras import layers

from keras_gmlp.layers import (
    ClassToken,
    ConvolutionalStem,
    PatchEmbedding,
    PositionEmbedding,
    ResidualStem,
    ZoomedViews,
)
from keras_gmlp.layers.zoomed_views import AverageViews
from keras_gmlp.models.common import classifier, head, pixels, pool_tokens
from keras_gmlp.utils.errors import require_one_of

STEMS = {"patches": PatchEmbedding, "convolutions": ConvolutionalStem, "residual": ResidualStem}


def image_classifier(
    block: Callable[..., layers.Layer],
    block_arguments: dict | None = None,
    *,
    input_shape: tuple[int, int, int] = (224, 224, 3),
    patch_size: int = 16,
    patch_window: int | None = None,
    dim: int = 256,
    depth: int = 12,
    classes: int = 1000,
    stochastic_depth: float = 0.0,
    include_top: bool = True,
    classifier_activation: str | None = None,
    stem: str = "patches",
    stem_arguments: dict | None = None,
    pooling: str | None = None,
    class_token: bool = False,
    distillation_token: bool = False,
    position_embedding: bool = False,
    zooms: Sequence[float] | None = None,
    norm: Callable[..., layers.Layer] | None = None,
    mean: float | Sequence[float] = 0.5,
    std: float | Sequence[float] = 0.5,
    dtype: str | keras.DTypePolicy | None = None,
    name: str | None = None,
) -> keras.Model:
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
        stem: `"patches"`; `"convolutions"` for a few convolutions of stride 2; or `"residual"` for
            more convolutions, with shortcuts.
        stem_arguments: Dict of `channels` and `depth` of `layers.ResidualStem`; its defaults if
            left out.
        pooling: How tokens become one vector: `"avg"` or `"mean"` for their mean, `"max"` for their
            maximum, `"attention"` for a mean by learned weights, see `layers.AttentionPooling`.
            With a top, `None` is the mean, and a class token is read in place of the pooling.
            Without a top, `None` returns all tokens, `(batch, tokens, dim)`; the others return a
            vector, `(batch, dim)`, of the patches, without a class or distillation token.
        class_token: Classify from a learned class token instead of all tokens.
        distillation_token: Add a second token with a separate head, `head_distillation`; the logits
            are the mean of both heads. Requires `class_token=True`.
        position_embedding: Add a learned vector to each position.
        zooms: Shares of the sides, such as `(1, 0.75, 0.5)`, that views around the centre show; the
            head takes the mean of their vectors. The tokens are those of a view, which is as large
            as the smallest share of the image. `None` for the image as it is. See
            `layers.ZoomedViews`.
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
        ValueError: If the patch size does not divide the image, arguments exclude each other, or
            Keras is set to `"channels_first"`.

    Example:
        >>> from keras_gmlp.layers import MixerBlock
        >>> hidden = {"token_hidden_dim": 64, "hidden_dim": 256}
        >>> model = image_classifier(MixerBlock, hidden, dim=128, depth=2, classes=10)
        >>> model.output_shape
        (None, 10)
    """
    require_one_of("stem", stem, STEMS)
    require_one_of("pooling", pooling, (None, "avg", "mean", "max", "attention"))
    if distillation_token and not class_token:
        raise ValueError("distillation_token requires class_token=True.")
    further = dict(stem_arguments or {})
    if patch_window is not None:
        further["patch_window"] = patch_window
    if zooms is not None and (class_token or not include_top):
        raise ValueError("zooms require include_top=True and a model without a class token.")
    inputs, x = pixels(input_shape, mean, std)
    if zooms is not None:
        x = ZoomedViews(zooms, dtype="float32", name="views")(x)
    x = STEMS[stem](dim, patch_size, **further, dtype=dtype, name="stem")(x)
    if distillation_token:
        x = ClassToken(dtype=dtype, name="distillation_token")(x)
    if class_token:
        x = ClassToken(dtype=dtype, name="class_token")(x)
    if position_embedding:
        x = PositionEmbedding(dtype=dtype, name="position")(x)
    for i in range(depth):
        shared = {"stochastic_depth": stochastic_depth * i / max(depth - 1, 1), "dtype": dtype}
        x = block(**(block_arguments or {}), **shared, name=f"block_{i}")(x)
    norm = norm or partial(layers.LayerNormalization, epsilon=1e-6)
    x = norm(dtype=dtype, name="norm")(x)
    if not include_top:
        if pooling is not None:
            x = pool_tokens(pooling)(x[:, int(class_token) + int(distillation_token) :])
        return keras.Model(inputs, x, name=name)
    if distillation_token:
        heads = [head(classes)(x[:, 0]), head(classes, "head_distillation")(x[:, 1])]
        logits = layers.Average(dtype="float32", name="logits")(heads)
    elif class_token:
        logits = head(classes)(x[:, 0])
    else:
        x = pool_tokens(pooling or "avg")(x)
        if zooms is not None:
            x = AverageViews(len(zooms), dtype="float32", name="average_views")(x)
        logits = head(classes)(x)
    return classifier(inputs, logits, classifier_activation, name)
