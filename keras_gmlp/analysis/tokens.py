"""Spatial filters and attention maps of a trained model, of images or texts, as arrays."""

import keras
import numpy as np
from keras import ops

from keras_gmlp.models.folding import to_dense
from keras_gmlp.models.structure import (
    NotApplicableError,
    class_tokens,
    learned_weights,
    token_axes,
    token_grid,
)


def spatial_filters(model: keras.Model) -> dict[str, np.ndarray]:
    """Returns the weights over tokens of each block that mixes tokens by a matrix.

    Args:
        model: A built `keras.Model` with blocks that declare `token_axes`.

    Returns:
        A dict from the name of a block to an array `(filters, rows, columns)`: one filter for each
        output token, row by row, if `filters_make_tokens(block)`; otherwise one for each hidden
        unit of the token MLP. A gate with heads has the filters of its first head, then those of
        the second, and so on. Weights of class tokens are left out.

    Raises:
        NotApplicableError: If the model has no such block.
    """
    grid = token_grid(model)
    leading = len(class_tokens(model))
    model = to_dense(model)
    weights, axes_by_path = learned_weights(model), token_axes(model)
    filters = {}
    for layer in model.layers:
        path = _kernel_path(layer)
        if path is None or f"{layer.name}/{path}" not in axes_by_path:
            continue
        kernel = ops.convert_to_numpy(weights[f"{layer.name}/{path}"])
        kernel = np.moveaxis(kernel, layer.token_axes[path].index("reads"), -1)
        skipped = leading if filters_make_tokens(layer) else 0  # ([heads], filters, tokens)
        filters[layer.name] = kernel[..., skipped:, leading:].reshape(-1, *grid)
    if not filters:
        raise NotApplicableError(
            f"{model.name} has no block that mixes tokens by a matrix of weights."
        )
    return filters


def filters_make_tokens(block):
    """Returns whether each filter computes a token (gMLP, ResMLP), not a hidden unit (Mixer)."""
    path = _kernel_path(block)
    return path is not None and "writes" in block.token_axes[path]


def _kernel_path(block):
    """Returns the path of the first declared matrices that read tokens, or `None`."""
    axes = getattr(block, "token_axes", {})
    return next((path for path in axes if len(axes[path]) > 1 and "reads" in axes[path]), None)


def attention_maps(model: keras.Model, image: np.ndarray) -> dict[str, np.ndarray]:
    """Returns where each block with attention looks in an image.

    Args:
        model: A `keras.Model` with blocks that have a method `attention_scores`: aMLP, ViT.
        image: `(height, width, channels)`, values in [0, 255].

    Returns:
        A dict from the name of a block to an array `(rows, columns)` with a sum of at most 1: the
        attention of the class token, averaged over heads, or without a class token the average
        attention of all tokens.

    Raises:
        NotApplicableError: If the model has no block with attention.
    """
    found = block_attention(model, model.input, image, "aMLP and ViT")
    grid, maps = token_grid(model), {}
    for name, scores in found.items():
        leading = scores.shape[1] - grid[0] * grid[1]  # class and distillation token
        looks = scores[0] if leading else scores.mean(axis=0)
        maps[name] = looks[leading:].reshape(grid)
    return maps


def block_attention(model, entry, sample, families):
    """Returns the attention `(queries, keys)` of each block that has some for one sample."""
    blocks = [layer for layer in model.layers if hasattr(layer, "attention_scores")]
    found = {}
    if blocks:
        # A text model gives a block the tokens and a mask.
        inputs = [b.input[0] if isinstance(b.input, list | tuple) else b.input for b in blocks]
        tokens = keras.Model(entry, inputs)(sample[None])
        tokens = tokens if isinstance(tokens, list | tuple) else [tokens]
        scores = {b.name: b.attention_scores(x) for b, x in zip(blocks, tokens, strict=True)}
        found = {n: ops.convert_to_numpy(s)[0] for n, s in scores.items() if s is not None}
    if not found:
        raise NotApplicableError(f"{model.name} has no block with attention; {families} have.")
    return found


def distance_filters(model):
    """Returns the weight that each gate of a text model gives to a token by its distance."""
    filters = {}
    for layer in model.layers:
        if getattr(layer, "gate", None) is not None:
            matrices = ops.convert_to_numpy(layer.gate.spatial.matrices())  # (heads, in, out)
            # Input j and output i: below the main diagonal, the input is to the right.
            places = range(1 - matrices.shape[-1], matrices.shape[-1])
            means = [matrices.diagonal(-place, 1, 2).mean(-1) for place in places]
            filters[layer.name] = np.stack(means, axis=-1)
    if not filters:
        raise NotApplicableError(
            f"{model.name} has no block that mixes tokens by a matrix of weights; gMLP and aMLP "
            "have."
        )
    return filters


def token_attention(model, ids):
    """Returns what the blocks with attention look at in a text."""
    (token_ids,) = [tensor for tensor in model.inputs if tensor.name == "token_ids"]
    return block_attention(model, token_ids, np.asarray(ids, "int32"), "aMLP and BERT")
