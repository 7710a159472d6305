"""The parts of an image that speak for a class, as arrays."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_gmlp.layers import AttentionPooling
from keras_gmlp.models.structure import (
    NotApplicableError,
    class_tokens,
    find_zooms,
    require_floats,
    token_grid,
)


def class_maps(model: keras.Model, image: np.ndarray, classes: Sequence[int]) -> np.ndarray:
    """Returns how much each part of an image adds to the logits of classes.

    A head over pooled tokens is linear, so the map is exact: the logit of each token alone, times
    its weight in an attention pooling. The mean of the map plus the head's bias is the logit (class
    activation mapping, Zhou et al., 2016, arxiv.org/abs/1512.04150). Of a model with `zooms` it is
    the map of the whole image, and the other views add to the logit.

    A class token sees the image through the blocks, so its map is an estimate. At the tokens that
    enter the middle block, the gradient of the logit is multiplied by the difference of each token
    from their mean: the tokens themselves would be invisible to a gradient through a layer norm,
    which ignores their scale.

    Args:
        model: An image classifier, a `keras.Model`.
        image: `(height, width, channels)`, values in [0, 255].
        classes: Class indices.

    Returns:
        A float64 array `(classes, rows, columns)`. Positive values speak for the class, negative
        ones against it.

    Raises:
        NotApplicableError: If the model has no head.

    Example:
        >>> model = keras_gmlp.gMLP(dim=128, depth=2, hidden_dim=256)
        >>> class_maps(model, np.zeros((224, 224, 3)), [5, 7]).shape
        (2, 14, 14)
    """
    if all(layer.name != "head" for layer in model.layers):
        raise NotApplicableError(f"{model.name} has no head; expected an image classifier.")
    if not _is_pooled(model):
        return _gradient_maps(model, image, classes)
    require_floats(model)
    tokens = keras.Model(model.input, model.get_layer("pool").input)(image[None], training=False)
    return np.moveaxis(_to_float64(map_tokens(model, tokens))[0][..., classes], -1, 0)


def has_exact_maps(model):
    """Returns whether the mean of a map and the head's bias is the logit, for each class."""
    return _is_pooled(model) and find_zooms(model) == (1,)


def _is_pooled(model):
    return any(layer.name == "pool" for layer in model.layers)


def map_grid(model):
    """Returns the rows and columns of the maps of a model whose maps are exact."""
    shape = model.get_layer("pool").input.shape[1:]
    return tuple(shape[:2]) if len(shape) == 3 else token_grid(model)


def map_tokens(model, tokens):
    """Returns exact maps of all classes."""
    pool, head = model.get_layer("pool"), model.get_layer("head")
    grid = map_grid(model)
    flat = ops.reshape(tokens, (-1, grid[0] * grid[1], tokens.shape[-1]))
    logits = ops.matmul(ops.cast(flat, "float32"), ops.cast(head.kernel, "float32"))
    if isinstance(pool, AttentionPooling):
        weights = ops.cast(ops.softmax(pool.score(tokens), axis=1), "float32")
        logits *= grid[0] * grid[1] * weights
    return ops.reshape(logits, (-1, *grid, logits.shape[-1]))


def _gradient_maps(model, image, classes):
    blocks = [layer for layer in model.layers if layer.name.startswith("block_")]
    entering = blocks[len(blocks) // 2].input
    tokens = keras.Model(model.input, entering)(image[None], training=False)
    tail = keras.Model(entering, model.output)
    leading = len(class_tokens(model))
    differences = _to_float64(tokens)[0, leading:]
    differences -= differences.mean(axis=0)
    maps = []
    for index in classes:
        gradient = _gradient(lambda x, i=index: tail(x, training=False)[0, i], tokens)
        shares = (_to_float64(gradient)[0, leading:] * differences).sum(axis=-1)
        maps.append(len(shares) * shares.reshape(token_grid(model)))
    return np.stack(maps)


def _gradient(function, x):
    """Returns the gradient of a function from a tensor to a number."""
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        return jax.grad(function)(x)
    if backend == "torch":
        import torch

        x = x.detach().requires_grad_()
        with torch.enable_grad():
            return torch.autograd.grad(function(x), x)[0]
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
    return tape.gradient(value, x)


def _to_float64(tensor):
    return ops.convert_to_numpy(tensor).astype("float64")
