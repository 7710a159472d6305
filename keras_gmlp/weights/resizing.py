"""From one image size to another: weights over tokens, resampled on the tokens' 2-D grid."""

import dataclasses
from functools import reduce

import numpy as np
from keras import ops

from keras_gmlp.layers import (
    FeedForwardOnlyBlock,
    FoldedResMLPBlock,
    GMLPBlock,
    MixerBlock,
    PatchEmbedding,
    PositionEmbedding,
    ResMLPBlock,
)
from keras_gmlp.models.structure import class_tokens, find_stem, learned_weights, token_grid

# What lies along each axis of the weights that have tokens on one: "reads" where the weight is
# multiplied by the tokens of an image, "writes" where it makes tokens, "stands" where it is theirs.
TOKEN_AXES = {
    GMLPBlock: {"gate/spatial/kernel": ("reads", "writes"), "gate/spatial/bias": ("writes",)},
    ResMLPBlock: {"spatial/kernel": ("reads", "writes"), "spatial/bias": ("writes",)},
    FoldedResMLPBlock: {"spatial/kernel": ("reads", "writes"), "shift": ("writes", None)},
    MixerBlock: {
        "token_mlp/expand/kernel": ("reads", None),
        "token_mlp/shrink/kernel": (None, "writes"),
        "token_mlp/shrink/bias": ("writes",),
    },
    FeedForwardOnlyBlock: {
        "norm2/gamma": ("stands",),
        "norm2/beta": ("stands",),
        "token_mlp/expand/kernel": ("reads", None),
        "token_mlp/shrink/kernel": (None, "writes"),
        "token_mlp/shrink/bias": ("writes",),
    },
    PositionEmbedding: {"embedding": (None, "stands", None)},
}


@dataclasses.dataclass(frozen=True)
class TransferReport:
    """What became of each weight of the target: paths that were kept, resized, left fresh."""

    kept: tuple[str, ...]
    resized: tuple[str, ...]
    fresh: tuple[str, ...]

    def __str__(self):
        parts = [f"{len(self.kept)} weights kept", f"{len(self.resized)} resized"]
        return ", ".join([*parts, *([f"fresh: {' '.join(self.fresh)}"] if self.fresh else [])])


def transfer(source, target, head=True):
    """Copies a model's weights to one for another image size or with other classes.

    A matrix W over tokens becomes `U W D`, where D brings an image's tokens to the old grid and U
    brings the answer to the new one: a constant input keeps its output, whatever the size. The one
    that leads to the larger grid interpolates, the other is its pseudo-inverse, which undoes it, as
    "FlexiViT" (https://arxiv.org/abs/2212.08013) resizes the kernels of patches: so does a stem
    with another patch or window here. Resampled both ways, what a filter reads would be blurred.

    Args:
        source: a `keras.Model` of this package.
        target: one of the same architecture. Its image and its patches may have another size: where
            both have grown alike, no weight over tokens changes. Where its head has another number
            of classes, the head stays as it is.
        head: copy the head where it fits.

    Returns:
        A `Transfer`.

    Raises:
        ValueError: another architecture, or another size of it. The target stays as it was.
    """
    ours, theirs = learned_weights(target), learned_weights(source)
    fresh = [
        path
        for path in ours
        if path.startswith("head")
        and not (head and path in theirs and tuple(theirs[path].shape) == tuple(ours[path].shape))
    ]
    lacking = sorted(set(ours) - set(theirs) - set(fresh))
    over = sorted(path for path in set(theirs) - set(ours) if not path.startswith("head"))
    if lacking or over:
        raise ValueError(
            f"{source.name} and {target.name} are of other architectures: the target alone has "
            f"{lacking[:3]}, the source alone {over[:3]}."
        )
    values = {}
    matrices = {**_token_matrices(source, target), **_window_matrices(source, target)}
    for path in ours:
        if path in fresh:
            continue
        values[path] = _resized(ops.convert_to_numpy(theirs[path]), matrices.get(path, ()))
        if values[path].shape != tuple(ours[path].shape):
            raise ValueError(
                f"{path} has shape {tuple(theirs[path].shape)} in {source.name} and "
                f"{tuple(ours[path].shape)} in {target.name}: another size of the architecture."
            )
    for path, value in values.items():  # once nothing can fail any more
        ours[path].assign(value)
    kept = tuple(path for path in values if path not in matrices)
    resized = tuple(path for path in values if path in matrices)
    return TransferReport(kept, resized, tuple(fresh))


def resample(old, new):
    """The matrix that brings a 2-D grid, row by row, to another size.

    Bicubic, with antialiasing where the grid shrinks, as images are resized; borders are cut off
    the filter. Rows sum to 1.

    Args:
        old, new: `(rows, columns)`.

    Returns:
        A float64 array `(new rows x new columns, old rows x old columns)`.
    """
    return np.kron(*(_resample_axis(o, n) for o, n in zip(old, new, strict=True)))


def _resample_axis(old, new):
    scale = old / new
    support = max(scale, 1.0)  # of the filter, in old pixels
    centres = (np.arange(new) + 0.5) * scale
    distance = np.abs(np.arange(old) + 0.5 - centres[:, None]) / support
    near = 1.5 * distance**3 - 2.5 * distance**2 + 1  # Keys' cubic, a = -0.5
    far = -0.5 * distance**3 + 2.5 * distance**2 - 4 * distance + 2
    weights = np.where(distance < 1, near, np.where(distance < 2, far, 0.0))
    return weights / weights.sum(axis=1, keepdims=True)


def _token_matrices(source, target):
    """For each weight with tokens on an axis, by its path: a matrix for each axis, or `None`."""
    try:
        old, new = token_grid(source), token_grid(target)
    except ValueError:  # a model without tokens has no weights of any image size
        return {}
    if old == new:
        return {}
    leading = len(class_tokens(target))
    rows, columns = (resampling_pair(*sizes) for sizes in zip(old, new, strict=True))
    grids = *map(np.kron, rows, columns), resample(old, new)
    writing, reading, standing = (
        reduce(_join, [np.ones((1, 1))] * leading, grid) for grid in grids
    )
    by_kind = {"reads": reading.T, "writes": writing, "stands": standing, None: None}
    return {
        f"{layer.name}/{path}": [by_kind[kind] for kind in axes]
        for layer in target.layers
        for block, weights in TOKEN_AXES.items()
        if isinstance(layer, block)
        for path, axes in weights.items()
    }


def _window_matrices(source, target):
    """The same for the stem's kernel, where its patch or its window has another size."""
    old, new = (find_stem(model, PatchEmbedding) for model in (source, target))
    if old is None or new is None or old.window == new.window:
        return {}
    reading = resampling_pair(old.window, new.window)[1].T
    return {f"{new.name}/projection/kernel": [reading, reading, None, None]}


def resampling_pair(old, new):
    """The matrices that bring an axis to its new size and to its old one."""
    if new < old:
        return resampling_pair(new, old)[::-1]
    there = _resample_axis(old, new)
    return there, np.linalg.pinv(there)


def _join(below, above):
    """A matrix that leaves one more leading token as it is."""
    joined = np.zeros((len(below) + 1, below.shape[1] + 1))
    joined[:1, :1], joined[1:, 1:] = above, below
    return joined


def _resized(array, matrices):
    for axis, matrix in enumerate(matrices):
        if matrix is not None:
            array = np.moveaxis(np.tensordot(matrix, array, (1, axis)), 0, axis)
    return array
