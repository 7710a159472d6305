"""What a trained model does with tokens, as arrays: spatial filters and attention."""

import keras
import numpy as np
from keras import ops

from keras_gmlp.layers import (
    FeedForwardOnlyBlock,
    FoldedResMLPBlock,
    GMLPBlock,
    MixerBlock,
    ResMLPBlock,
    TransformerBlock,
)
from keras_gmlp.models.structure import NotApplicableError, token_grid


def spatial_filters(model):
    """The weights over tokens of each block that mixes tokens by a matrix.

    Args:
        model: a built `keras.Model` of blocks.

    Returns:
        For each such block, by its name, an array `(filters, rows, columns)`: where
        `filters_make_tokens(block)`, one filter for each token that is made, row by row; else one
        for each unit of the token MLP's first layer. What a class token gives and gets is left
        out.

    Raises:
        NotApplicableError: the model has no such block.
    """
    grid = token_grid(model)
    found = {}
    for layer in model.layers:
        if isinstance(layer, GMLPBlock) and layer.gate is not None:
            kernel = layer.gate.spatial.kernel
        elif isinstance(layer, ResMLPBlock | FoldedResMLPBlock):
            kernel = layer.spatial.kernel
        elif isinstance(layer, MixerBlock | FeedForwardOnlyBlock):
            kernel = layer.token_mlp.expand.kernel
        else:
            continue
        kernel = ops.convert_to_numpy(kernel)  # (tokens, filters)
        leading = len(kernel) - grid[0] * grid[1]  # class and distillation token
        made = leading if filters_make_tokens(layer) else 0
        found[layer.name] = kernel[leading:, made:].T.reshape(-1, *grid)
    if not found:
        raise NotApplicableError(
            f"{model.name} has no block that mixes tokens by a matrix of weights."
        )
    return found


def filters_make_tokens(block):
    """Whether a block's filters each make a token (gMLP, ResMLP), not a hidden unit (Mixer)."""
    return isinstance(block, GMLPBlock | ResMLPBlock | FoldedResMLPBlock)


def attention_maps(model, image):
    """Where each block that attends looks on an image.

    Args:
        model: an aMLP or a ViT.
        image: `(height, width, channels)`, values in [0, 255].

    Returns:
        For each such block, by its name, an array `(rows, columns)` that sums to at most 1: in a
        ViT what the class token attends to, the mean over heads; in an aMLP, or a ViT without a
        class token, the mean over all tokens that attend.

    Raises:
        NotApplicableError: the model has no such block.
    """
    blocks = [
        layer
        for layer in model.layers
        if isinstance(layer, TransformerBlock)
        or (isinstance(layer, GMLPBlock) and layer.attention is not None)
    ]
    if not blocks:
        raise NotApplicableError(f"{model.name} has no block with attention; aMLP and ViT have.")
    grid = token_grid(model)
    patches = grid[0] * grid[1]
    inputs = keras.Model(model.input, [block.input for block in blocks])(image[None])
    inputs = inputs if isinstance(inputs, list | tuple) else [inputs]
    maps = {}
    for block, tokens in zip(blocks, inputs, strict=True):
        scores = _scores(block, tokens)  # (queries, keys)
        leading = scores.shape[1] - patches  # class and distillation token
        looks = scores[0] if leading else scores.mean(axis=0)
        maps[block.name] = looks[leading:].reshape(grid)
    return maps


def _scores(block, tokens):
    """What each token attends to, the mean over heads: an array (queries, keys), rows sum to 1."""
    if isinstance(block, TransformerBlock):
        x = block.norm1(tokens)
        _, scores = block.attention(x, x, return_attention_scores=True)
        return ops.convert_to_numpy(ops.cast(scores, "float32"))[0].mean(axis=0)
    attention = block.attention
    query, key, _ = ops.split(attention.qkv(block.norm(tokens)), 3, axis=-1)
    query = ops.cast(query, "float32") * attention.head_size**-0.5
    scores = ops.matmul(query, ops.transpose(ops.cast(key, "float32"), (0, 2, 1)))
    return ops.convert_to_numpy(ops.softmax(scores))[0]


def confusion(labels, predictions, classes):
    """Counts `(classes, classes)`: row the true class, column the one that the model says."""
    counts = np.zeros((classes, classes), int)
    np.add.at(counts, (labels, predictions), 1)
    return counts
