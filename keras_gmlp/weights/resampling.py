"""Resizes a model to another image size: resamples weights over tokens on their 2-D grid."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_gmlp.layers import PatchEmbedding
from keras_gmlp.models.structure import (
    class_tokens,
    find_stem,
    learned_weights,
    token_axes,
    token_grid,
)


@dataclasses.dataclass(frozen=True)
class TransferReport:
    """The paths of the target's weights, by what `transfer` did to them."""

    kept: tuple[str, ...]
    resized: tuple[str, ...]
    fresh: tuple[str, ...]

    def __str__(self):
        parts = [f"{len(self.kept)} weights kept", f"{len(self.resized)} resized"]
        return ", ".join([*parts, *([f"fresh: {' '.join(self.fresh)}"] if self.fresh else [])])


def transfer(source: keras.Model, target: keras.Model, head: bool = True) -> TransferReport:
    """Copies the weights of a model to a model for another image size or other classes.

    A matrix W over tokens becomes `U W D`, where D maps the new token grid to the old one and U
    maps the result back: a constant input keeps its output at every size. The matrix that leads to
    the larger grid interpolates; the other is its pseudo-inverse, as "FlexiViT"
    (https://arxiv.org/abs/2212.08013) resizes the kernels of patches. The kernel of a stem with
    another patch size or window is resized in the same way. Interpolation in both directions would
    blur what a filter reads.

    Weights of offsets between tokens (`SpatialProjection`) keep their values: those of offsets that
    the old grid did not have start at zero.

    Args:
        source: A `keras.Model` of this package, or of blocks that declare `token_axes`.
        target: A `keras.Model` of the same architecture. Its image and patches may have other
            sizes; if both grow by the same factor, no weight over tokens changes. A head with
            another number of classes stays as it is.
        head: Whether to copy the head if it fits.

    Returns:
        A report with the paths of the target's weights, tuples: `kept`, those that were copied,
        `resized`, and `fresh`, those that stay as they were initialized.

    Raises:
        ValueError: If the target has another architecture or another size of it. The target does
            not change then.
    """
    ours, theirs = learned_weights(target), learned_weights(source)
    fresh = [
        path
        for path in ours
        if path.startswith("head")
        and not (head and path in theirs and tuple(theirs[path].shape) == tuple(ours[path].shape))
    ]
    missing = sorted(set(ours) - set(theirs) - set(fresh))
    # Attention pooling belongs to the head of a target without one.
    unused = "head" if any(path.startswith("head") for path in ours) else ("head", "pool/")
    extra = sorted(path for path in set(theirs) - set(ours) if not path.startswith(unused))
    if missing or extra:
        raise ValueError(
            f"{source.name} and {target.name} have different architectures: only the target has "
            f"{missing[:3]}, only the source has {extra[:3]}."
        )
    values = {}
    matrices = {**_token_matrices(source, target), **_window_matrices(source, target)}
    for path in (path for path in ours if path not in fresh):
        value = ops.convert_to_numpy(theirs[path])
        for axis, matrix in enumerate(matrices.get(path, ())):
            if matrix is not None:
                value = np.moveaxis(np.tensordot(matrix, value, (1, axis)), 0, axis)
        if value.shape != tuple(ours[path].shape):
            raise ValueError(
                f"{path} has shape {tuple(theirs[path].shape)} in {source.name} and "
                f"{tuple(ours[path].shape)} in {target.name}: the sizes of the architecture differ."
            )
        values[path] = value
    for path, value in values.items():  # only after all checks
        ours[path].assign(value)
    kept = tuple(path for path in values if path not in matrices)
    resized = tuple(path for path in values if path in matrices)
    return TransferReport(kept, resized, tuple(fresh))


def resample(old, new):
    """Returns the matrix that resizes a 2-D grid, stored row by row."""
    return np.kron(*(_resample_axis(o, n) for o, n in zip(old, new, strict=True)))


def _resample_axis(old, new):
    scale = old / new
    support = max(scale, 1.0)  # width of the filter, in old pixels
    centres = (np.arange(new) + 0.5) * scale
    distance = np.abs(np.arange(old) + 0.5 - centres[:, None]) / support
    near = 1.5 * distance**3 - 2.5 * distance**2 + 1  # Keys' cubic, a = -0.5
    far = -0.5 * distance**3 + 2.5 * distance**2 - 4 * distance + 2
    weights = np.where(distance < 1, near, np.where(distance < 2, far, 0.0))
    return weights / weights.sum(axis=1, keepdims=True)


def _token_matrices(source, target):
    """Returns, by path, a matrix or `None` for each axis of each weight over tokens."""
    try:
        old, new = token_grid(source), token_grid(target)
    except ValueError:  # without tokens, no weight depends on the image size
        return {}
    if old == new:
        return {}
    leading = len(class_tokens(target))
    rows, columns = (resampling_pair(*sizes) for sizes in zip(old, new, strict=True))
    grids = *map(np.kron, rows, columns), resample(old, new)
    writes, reads, holds = (_keep_leading(grid, leading) for grid in grids)
    matrices = {"reads": reads.T, "writes": writes, "holds": holds, None: None}
    for axis, was, now in zip(("rows", "columns"), old, new, strict=True):
        # Crops or pads the weights of the offsets between `was` places.
        matrices[axis] = np.eye(2 * now - 1, 2 * was - 1, k=was - now)
    return {path: [matrices[kind] for kind in axes] for path, axes in token_axes(target).items()}


def _window_matrices(source, target):
    """Returns the same for the kernel of the stem, if its patch or window has another size."""
    old, new = (find_stem(model, PatchEmbedding) for model in (source, target))
    if old is None or new is None or old.patch_window == new.patch_window:
        return {}
    reads = resampling_pair(old.patch_window, new.patch_window)[1].T
    return {f"{new.name}/projection/kernel": [reads, reads, None, None]}


def resampling_pair(old, new):
    """Returns the matrices that resize an axis from `old` to `new` and back."""
    if new < old:
        return resampling_pair(new, old)[::-1]
    enlarge = _resample_axis(old, new)
    return enlarge, np.linalg.pinv(enlarge)


def _keep_leading(matrix, tokens):
    """Returns a matrix that also keeps leading tokens."""
    kept = np.eye(*(tokens + size for size in matrix.shape))
    kept[tokens:, tokens:] = matrix
    return kept
