"""Converts published weights to models of this package and back, strictly in both directions."""

import dataclasses
import math
from collections.abc import Callable

import numpy as np
from keras import ops

from keras_gmlp.models.structure import learned_weights
from keras_gmlp.weights.names import OPTIONAL, TABLES


@dataclasses.dataclass(frozen=True)
class Link:
    """Published arrays, the model weights that they become, and the conversion both ways."""

    theirs: list[str]
    ours: list[str]
    forward: Callable  # (their arrays, our shapes) -> our arrays
    backward: Callable  # (our arrays) -> their arrays


def _parts(*rows):
    """Returns a function from two names to the links of their parts, by suffix and conversion."""

    def link(theirs, ours, forward=lambda a, shape: a, backward=lambda w: w):
        def convert(arrays, shapes):
            return [forward(arrays[0], shapes[0])]

        return Link([theirs], [ours], convert, lambda w: [backward(w[0])])

    return lambda theirs, ours: [link(theirs + t, ours + o, *both) for t, o, *both in rows]


def _qkv(theirs, ours):
    """One matrix (3d, d) whose rows are ordered by query, key, value, then by head."""

    def parts(arrays, shapes):  # also for the bias: a transposed vector is the same
        thirds = np.split(arrays[0], 3)
        return [part.T.reshape(shape) for part, shape in zip(thirds, shapes, strict=True)]

    def matrix(weights):
        return [np.concatenate([w.reshape(len(w), -1).T for w in weights])]

    def vector(weights):
        return [np.concatenate([w.ravel() for w in weights])]

    names = ("query", "key", "value")
    for suffix, part, back in (("weight", "kernel", matrix), ("bias", "bias", vector)):
        yield Link([f"{theirs}.{suffix}"], [f"{ours}/{n}/{part}" for n in names], parts, back)


def _heads(to_matrix):
    """Returns the links of a dense layer whose kernel and bias have an axis for the heads."""
    kernel = lambda a, shape: a.T.reshape(shape), lambda w: to_matrix(w).T
    bias = lambda a, shape: a.reshape(shape), np.ravel
    return _parts((".weight", "/kernel", *kernel), (".bias", "/bias", *bias))


def _grid_positions(theirs, ours):
    """Theirs: (1, 1, d) for the class token, (1, d, rows, columns) for patches. Ours: (1, n, d)."""

    def joined(arrays, _):
        first, grid = arrays
        return [np.concatenate([first, grid.reshape(*grid.shape[:2], -1).swapaxes(1, 2)], axis=1)]

    def parted(weights):
        tokens, dim = weights[0].shape[1:]
        side = math.isqrt(tokens - 1)  # of square images, as all published models take
        return [weights[0][:, :1], weights[0][:, 1:].swapaxes(1, 2).reshape(1, dim, side, side)]

    yield Link([f"{theirs}.cls_pos_embed", f"{theirs}.pos_embed"], [ours], joined, parted)


_BIAS = (".bias", "/bias")
_TRANSPOSED = lambda a, _: a.T, np.transpose
_CONVOLUTION = lambda a, _: a.transpose(2, 3, 1, 0), lambda w: w.transpose(3, 2, 0, 1)
_SQUEEZED = lambda a, _: a[0, 0], lambda w: w[None, None]  # timm's Affine has two more axes

KINDS = {
    "dense": _parts((".weight", "/kernel", *_TRANSPOSED), _BIAS),
    "convolution": _parts((".weight", "/kernel", *_CONVOLUTION), _BIAS),
    "norm": _parts((".weight", "/gamma"), (".bias", "/beta")),
    "affine": _parts((".alpha", "/alpha", *_SQUEEZED), (".beta", "/beta", *_SQUEEZED)),
    "plain affine": _parts((".alpha", "/alpha"), (".beta", "/beta")),
    "array": _parts(("", "")),
    "row": _parts(("", "", lambda a, _: a[None], lambda w: w[0])),
    "qkv": _qkv,
    "to heads": _heads(lambda w: w.reshape(len(w), -1)),
    "heads": _heads(lambda w: w.reshape(-1, w.shape[-1])),
    "grid positions": _grid_positions,
    "flax": _parts(("/kernel", "/kernel"), ("/bias", "/bias")),
    "flax norm": _parts(("/scale", "/gamma"), ("/bias", "/beta")),
}


def links(model, dialect):
    """Returns the links between a model and a checkpoint in one dialect of the family."""
    absent = OPTIONAL - {layer.name for layer in model.layers}
    table = _tables(model)[dialect]
    return table_links(model, [row for row in table if row[1].partition("/")[0] not in absent])


def table_links(model, table):
    """Returns the links of a table of names, with those of each block."""
    depth = sum(layer.name.startswith("block_") for layer in model.layers)
    return [
        link
        for theirs, ours, kind in table
        for i in range(depth if "{}" in ours else 1)
        for link in KINDS[kind](theirs.format(i), ours.format(i))
    ]


def _tables(model):
    for layer in model.layers:
        for block, tables in TABLES.items():
            if isinstance(layer, block):
                return tables
    raise ValueError(f"{model.name}: no published names are known for this kind of model.")


def load_arrays(model, arrays, origin="the checkpoint"):
    """Assigns published arrays to a model of the same size; returns whether they have a head."""
    weights = learned_weights(model)
    dialects = [links(model, dialect) for dialect in _tables(model)]
    chosen = min(dialects, key=lambda found: len(_published_names(found) ^ set(arrays)))
    heads = _published_names(link for link in chosen if link.ours[0].startswith("head"))
    has_head = bool(heads & set(arrays))
    if not has_head:
        chosen = [link for link in chosen if not heads & set(link.theirs)]
        weights = {path: w for path, w in weights.items() if not path.startswith("head")}
    unknown = set(arrays) - _published_names(chosen)
    _refuse(f"{origin}: has {{}}, which {model.name} does not have", unknown)
    reached = {path for link in chosen for path in link.ours}
    _refuse(f"{origin}: has no names for {{}} of {model.name}", set(weights) ^ reached)
    assign(chosen, weights, arrays, origin, model.name)
    return has_head


def assign(chosen, weights, arrays, origin, name):
    """Assigns arrays to weights by links, after a check that all are there and fit."""
    missing = _published_names(chosen) - set(arrays)
    _refuse(f"{origin}: has no {{}}, which {name} requires", missing)
    values = {}
    for link in chosen:
        shapes = [tuple(weights[path].shape) for path in link.ours]
        given = [arrays[name] for name in link.theirs]
        try:
            back = link.backward([np.broadcast_to(np.float32(0), shape) for shape in shapes])
            fits = [a.shape for a in back] == [a.shape for a in given]
            parts = link.forward(given, shapes) if fits else []
        except ValueError:  # another number of axes
            parts = []
        if [part.shape for part in parts] != shapes:
            raise ValueError(
                f"{origin}: {link.theirs[-1]} has shape {given[-1].shape}, which does not fit "
                f"{link.ours[0]} {shapes[0]} of {name}: the size or the family differs."
            )
        values.update(zip(link.ours, parts, strict=True))
    for path, value in values.items():  # only after all checks
        weights[path].assign(value)


def to_arrays(model, dialect=None):
    """Returns the weights of a model under their published names; the inverse of `load_arrays`."""
    chosen = links(model, dialect or next(iter(_tables(model))))
    weights = {path: ops.convert_to_numpy(w) for path, w in learned_weights(model).items()}
    differing = {path for link in chosen for path in link.ours} ^ set(weights)
    if differing:
        raise ValueError(f"{model.name}: no published names are known for this kind of model.")
    return published_arrays(chosen, weights)


def published_arrays(chosen, weights):
    """Returns the arrays that links make of our weights, by their names."""
    arrays = {}
    for link in chosen:
        made = link.backward([weights[path] for path in link.ours])
        arrays |= zip(link.theirs, map(np.ascontiguousarray, made), strict=True)
    return arrays


def _published_names(chosen):
    return {name for link in chosen for name in link.theirs}


def _refuse(text, names):
    if names:
        some = ", ".join(sorted(names)[:4]) + (", ..." if len(names) > 4 else "")
        text = text.format(f"{some} ({len(names)} in all)")
        raise ValueError(f"{text}. Do the weights match the model or preset?")
