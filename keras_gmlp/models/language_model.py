"""The language model that all families share; the block is an argument."""

from collections.abc import Callable

import keras
import numpy as np
from keras import layers, ops

from keras_gmlp.layers.block import copy_initializer
from keras_gmlp.layers.embedding import SegmentEmbedding, TokenPositions, WordEmbedding
from keras_gmlp.layers.heads import LogitBias, MaskedLMHead, TextMean
from keras_gmlp.models.common import compiled, head
from keras_gmlp.models.structure import token_axes
from keras_gmlp.objectives.losses import MaskedCrossEntropy
from keras_gmlp.objectives.metrics import Perplexity

PADDING = 0  # id of [PAD] in the vocabularies of this package and of BERT
LOGITS = ("head", "head_bias")  # layers that compute logits, in float32


def language_model(
    block: Callable[..., layers.Layer],
    block_arguments: dict | None = None,
    *,
    vocabulary_size: int,
    max_length: int = 128,
    dim: int = 256,
    depth: int = 12,
    dropout: float = 0.0,
    stochastic_depth: float = 0.0,
    positions: bool = False,
    segments: int = 0,
    separator: int = 3,
    norm_placement: str = "pre",
    kernel_initializer: str | keras.Initializer = "glorot_uniform",
    epsilon: float = 1e-6,
    dtype: str | keras.DTypePolicy | None = None,
    name: str | None = None,
) -> keras.Model:
    """Builds a token embedding, a stack of blocks and a head that predicts masked tokens.

    The head reads only the masked positions and compares them with the token embedding, so the
    logits of all other positions are never computed. Padding is where `token_ids` is 0.

    Args:
        block: A layer class that maps tokens `(batch, tokens, dim)` to tokens, such as
            `layers.GMLPBlock`. It must accept `mask` in its call and the keyword arguments of
            `layers.Block`.
        block_arguments: Dict of further keyword arguments of `block`.
        vocabulary_size: Number of tokens in the vocabulary.
        max_length: Largest number of tokens in a text, special ones included.
        dim: Channels of a token.
        depth: Number of blocks.
        dropout: Rate, in [0, 1), on the embedding and on the output of each branch.
        stochastic_depth: Probability, in [0, 1), that a sample skips the last block in training;
            it grows linearly from 0 at the first block.
        positions: Add a learned vector to each position. A gMLP has none.
        segments: Number of learned segment vectors, 2 in BERT; 0 for none.
        separator: Id of `[SEP]`, which ends a segment.
        norm_placement, kernel_initializer, epsilon: See `layers.Block`. With `"post"` there is no
            norm after the last block.
        dtype: Dtype policy of all layers, for example `"mixed_bfloat16"`. Defaults to the global
            policy. Logits are always float32. Under mixed precision words are looked up in float32.
        name: Name of the model.

    Returns:
        A compiled `keras.Model` from a dict of `"token_ids"`, integers `(batch, tokens)`, and
        `"mask_positions"`, integers `(batch, masked)`, to logits `(batch, masked, words)`. Its
        loss takes the masked tokens' ids `(batch, masked)`, with a sample weight of 0 for places
        that are not used.

    Example:
        >>> from keras_gmlp.layers import GMLPBlock
        >>> gate = {"hidden_dim": 64, "toeplitz": True, "max_tokens": 16}
        >>> model = language_model(GMLPBlock, gate, vocabulary_size=50, max_length=16, dim=32,
        ...                        depth=2)
        >>> ids = keras.ops.array([[2, 7, 4, 3, 0]])
        >>> model({"token_ids": ids, "mask_positions": keras.ops.array([[2]])}).shape
        (1, 1, 50)
    """
    if depth < 1:
        raise ValueError(f"depth must be at least 1; received {depth}.")
    norms = {"epsilon": epsilon, "dtype": dtype}
    shared = {"dropout": dropout, "norm_placement": norm_placement, **norms}
    token_ids = keras.Input((None,), dtype="int32", name="token_ids")
    mask_positions = keras.Input((None,), dtype="int32", name="mask_positions")
    mask = ops.not_equal(token_ids, PADDING)
    embedding = WordEmbedding(
        vocabulary_size,
        dim,
        embeddings_initializer=keras.initializers.TruncatedNormal(stddev=0.02),
        name="token_embedding",
        **_embedding_dtypes(dtype),
    )
    x = embedding(token_ids)
    if positions:
        x = TokenPositions(max_length, dtype=dtype, name="position")(x)
    if segments:
        x = SegmentEmbedding(separator, segments, dtype=dtype, name="segment")(x, token_ids)
    x = layers.LayerNormalization(**norms, name="embedding_norm")(x)
    x = layers.Dropout(dropout, dtype=dtype, name="embedding_dropout")(x)
    for i in range(depth):
        own = {
            "stochastic_depth": stochastic_depth * i / max(depth - 1, 1),
            "kernel_initializer": copy_initializer(keras.initializers.get(kernel_initializer)),
            "name": f"block_{i}",
        }
        x = block(**(block_arguments or {}), **shared, **own)(x, mask=mask)
    if norm_placement == "pre":
        x = layers.LayerNormalization(**norms, name="norm")(x)
    transform = MaskedLMHead(kernel_initializer, **norms, name="head_transform")
    x = embedding(transform(x, mask_positions), reverse=True)
    logits = LogitBias(dtype="float32", name="head_bias")(x)
    inputs = {"token_ids": token_ids, "mask_positions": mask_positions}
    model = keras.Model(inputs, logits, name=name)
    model.compile(
        optimizer=keras.optimizers.AdamW(1e-3, weight_decay=0.01),
        loss=MaskedCrossEntropy(),
        weighted_metrics=[Perplexity(), keras.metrics.SparseCategoricalAccuracy("accuracy")],
    )
    return model


def text_classifier(
    model: keras.Model, classes: int, dropout: float = 0.1, name: str | None = None
) -> keras.Model:
    """Returns a classifier of texts, or pairs of texts, on the encoder of a language model.

    It computes logits from the first token, `[CLS]`, by a dense layer with tanh and a linear layer,
    as BERT does. Both are new; all other layers are shared with the language model.

    Args:
        model: A language model, as `language_model` returns it.
        classes: Number of classes.
        dropout: Rate, in [0, 1), before each of the two layers.
        name: Name of the model. Defaults to the language model's.

    Returns:
        A compiled `keras.Model` from `token_ids` `(batch, tokens)` to logits `(batch, classes)`.

    Reference: "BERT", https://arxiv.org/abs/1810.04805, section 4.1.
    """
    token_ids, x = encoder(model)
    dtype = model.get_layer("embedding_norm").dtype_policy
    x = layers.Dropout(dropout, dtype=dtype, name="head_dropout_0")(x[:, 0])
    x = layers.Dense(x.shape[-1], activation="tanh", dtype=dtype, name="head_pooler")(x)
    x = layers.Dropout(dropout, dtype=dtype, name="head_dropout_1")(x)
    return compiled(keras.Model(token_ids, head(classes)(x), name=name or model.name))


def text_features(model):
    """Builds the model from token ids to the vector of a text, the mean of its encoded tokens."""
    token_ids, x = encoder(model)
    vectors = TextMean(dtype="float32", name="text_mean")(x, token_ids)
    return keras.Model(token_ids, vectors, name=model.name)


def encoder(model):
    """Returns the input `token_ids` and the encoded tokens of a language model or of its kin."""
    inputs = {tensor.name: tensor for tensor in model.inputs}
    names = [layer.name for layer in model.layers]
    blocks = [name for name in names if name.startswith("block_")]
    if "token_ids" not in inputs or not blocks:
        raise ValueError(
            f"{model.name} is not a language model: expected an input token_ids and blocks, as "
            "keras_gmlp.text.build returns them."
        )
    last = "norm" if "norm" in names else blocks[-1]
    return inputs["token_ids"], model.get_layer(last).output


def adapt(
    model: keras.Model,
    max_length: int | None = None,
    dropout: float | None = None,
    dtype: str | keras.DTypePolicy | None = None,
) -> keras.Model:
    """Returns a copy of a language model, or of a model on its encoder, with other settings.

    Args:
        model: A language model, or a model that `text_classifier` returned.
        max_length: New maximum number of tokens, at least the present one. Weights for new offsets
            start at zero and new biases at the last one, so texts of up to the present maximum
            give the same outputs. `None` for the present one.
        dropout: New rate of dropout in the encoder; `None` for the present one.
        dtype: New dtype policy of the encoder; `None` for the present one. Logits stay in float32.

    Returns:
        A new `keras.Model`, not compiled, with the same weights.
    """

    def clone(layer):
        config = layer.get_config()
        if max_length is not None and config.get("max_tokens") is not None:
            config["max_tokens"] = max_length
        if dropout is not None and layer.name.startswith("block_"):
            config["dropout"] = dropout
        if dropout is not None and layer.name == "embedding_dropout":
            config["rate"] = dropout
        is_layer = isinstance(layer, layers.Layer) and not isinstance(layer, layers.InputLayer)
        if dtype is not None and is_layer and layer.name not in LOGITS:
            is_table = layer.name == "token_embedding"
            config |= _embedding_dtypes(dtype) if is_table else {"dtype": dtype}
        return type(layer).from_config(config)

    copy = keras.models.clone_model(model, clone_function=clone)
    axes = token_axes(model)
    weights = {weight.path: weight for weight in model.weights}
    for weight in copy.weights:
        value = ops.convert_to_numpy(weights[weight.path])
        if value.shape != tuple(weight.shape):
            value = _grow(value, tuple(weight.shape), axes[weight.path])
        weight.assign(value)
    return copy


def _embedding_dtypes(dtype):
    """Returns the dtypes of the table of words in a model of a dtype policy, a dict."""
    # The rows of frequent words add up thousands of gradients. GPUs have fast instructions for that
    # in float32, not in bfloat16.
    policy = keras.dtype_policies.get(dtype)
    if policy.compute_dtype == policy.variable_dtype:
        return {"dtype": dtype, "reverse_dtype": None}
    return {"dtype": policy.variable_dtype, "reverse_dtype": policy.compute_dtype}


def _grow(value, shape, axes):
    """Pads a weight over tokens to a shape: offsets on both sides, all others at the end."""
    extra = [new - old for new, old in zip(shape, value.shape, strict=True)]
    widths = [
        (size // 2, size // 2) if kind == "places" else (0, size)
        for size, kind in zip(extra, axes, strict=True)
    ]
    is_matrix = "reads" in axes or "places" in axes
    return np.pad(value, widths, "constant" if is_matrix else "edge")
