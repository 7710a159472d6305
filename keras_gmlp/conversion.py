"""Published weights to ours and back, strict in both directions."""

import dataclasses
from collections.abc import Callable

import numpy as np
from keras import ops

from keras_gmlp.published_names import DISTILLED, TABLES


@dataclasses.dataclass(frozen=True)
class Link:
    """One array of theirs, the weights of ours that it becomes, and the way there and back."""

    theirs: str
    ours: tuple[str, ...]
    forward: Callable  # (array, shapes of ours) -> arrays of ours
    backward: Callable  # (arrays of ours) -> array


def _same(theirs, ours):
    return Link(theirs, (ours,), lambda a, shapes: [a], lambda w: w[0])


def _affine(theirs, ours):
    """timm's carry two axes of length 1; the original release's do not."""
    for name in ("alpha", "beta"):
        yield Link(
            f"{theirs}.{name}",
            (f"{ours}/{name}",),
            lambda a, shapes: [a[0, 0] if a.ndim == 3 and a.shape[:2] == (1, 1) else a],
            lambda w: w[0][None, None],
        )


def _transposed(theirs, ours, axes, back):
    return Link(
        theirs,
        (ours,),
        lambda a, shapes: [a.transpose(axes)],
        lambda w: w[0].transpose(back),
    )


def _dense(theirs, ours):
    yield _transposed(f"{theirs}.weight", f"{ours}/kernel", (1, 0), (1, 0))
    yield _same(f"{theirs}.bias", f"{ours}/bias")


def _convolution(theirs, ours):
    yield _transposed(f"{theirs}.weight", f"{ours}/kernel", (2, 3, 1, 0), (3, 2, 0, 1))
    yield _same(f"{theirs}.bias", f"{ours}/bias")


def _pairs(theirs_suffixes, ours_suffixes):
    def links(theirs, ours):
        for t, o in zip(theirs_suffixes, ours_suffixes, strict=True):
            yield _same(theirs + t, ours + o)

    return links


def _qkv(theirs, ours):
    """One matrix (3d, d), rows ordered query, key, value, then heads."""
    names = ("query", "key", "value")

    def parts(array, shapes):  # for the bias too: turning one axis changes nothing
        return [part.T.reshape(s) for part, s in zip(np.split(array, 3), shapes, strict=True)]

    def matrix(weights):
        return np.concatenate([w.reshape(len(w), -1).T for w in weights])

    kernel_paths = tuple(f"{ours}/{name}/kernel" for name in names)
    bias_paths = tuple(f"{ours}/{name}/bias" for name in names)
    yield Link(f"{theirs}.weight", kernel_paths, parts, matrix)
    yield Link(
        f"{theirs}.bias", bias_paths, parts, lambda w: np.concatenate([b.ravel() for b in w])
    )


def _heads(theirs, ours):
    """The output projection: (d, heads x size) there, (heads, size, d) here."""
    yield Link(
        f"{theirs}.weight",
        (f"{ours}/kernel",),
        lambda a, shapes: [a.T.reshape(shapes[0])],
        lambda w: w[0].reshape(-1, w[0].shape[-1]).T,
    )
    yield _same(f"{theirs}.bias", f"{ours}/bias")


KINDS = {
    "dense": _dense,
    "convolution": _convolution,
    "norm": _pairs((".weight", ".bias"), ("/gamma", "/beta")),
    "affine": _affine,
    "plain affine": _pairs((".alpha", ".beta"), ("/alpha", "/beta")),
    "array": _pairs(("",), ("",)),
    "qkv": _qkv,
    "heads": _heads,
    "flax": _pairs(("/kernel", "/bias"), ("/kernel", "/bias")),
    "flax norm": _pairs(("/scale", "/bias"), ("/gamma", "/beta")),
}


def links(model, dialect):
    """The links between a model of ours and a checkpoint in one of the family's dialects."""
    depth = sum(layer.name.startswith("block_") for layer in model.layers)
    table = _tables(model)[dialect]
    if any(layer.name == "distillation_token" for layer in model.layers):
        table = (*table, *DISTILLED)
    if not any(layer.name == "class_token" for layer in model.layers):
        table = tuple(row for row in table if not row[1].startswith("class_token"))
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
    raise ValueError(
        f"No published weights are known for {model.name}; there are for gMLP, MLPMixer, ResMLP, "
        "ViT and FeedForwardOnly."
    )


def learned_weights(model):
    """A model's weights by their paths, without the states of its random generators."""
    return {weight.path: weight for weight in model.weights if "seed" not in weight.name}


def load_arrays(model, arrays, origin="the checkpoint"):
    """Writes published arrays to a model of the same size.

    Args:
        model: a `keras.Model` of a family in `TABLES`.
        arrays: by their published names, in any dialect of the family.
        origin: what the arrays came from, for errors.

    Raises:
        ValueError: a name too many or too few on either side, or another shape. The model stays
            as it was.
    """
    weights = learned_weights(model)
    dialects = {name: links(model, name) for name in _tables(model)}

    def differences(dialect):
        return {link.theirs for link in dialects[dialect]} ^ set(arrays)

    nearest = min(dialects, key=lambda name: len(differences(name)))
    chosen = dialects[nearest]
    expected = {link.theirs for link in chosen}
    reached = {path for link in chosen for path in link.ours}
    _refuse(origin, model, "has no", expected - set(arrays))
    _refuse(origin, model, "has beside what the model knows", set(arrays) - expected)
    _refuse(origin, model, "leaves as they are", set(weights) - reached)
    values = {}
    for link in chosen:
        shapes = [tuple(weights[path].shape) for path in link.ours]
        sizes = [int(np.prod(shape)) for shape in shapes]
        array = arrays[link.theirs]
        try:
            parts = link.forward(array, shapes) if array.size == sum(sizes) else []
        except ValueError:  # another number of axes
            parts = []
        if [part.shape for part in parts] != shapes:
            raise ValueError(
                f"{origin}: {link.theirs} has shape {array.shape}, which does not fit "
                f"{link.ours[0]} {shapes[0]} of {model.name}: another size or another family."
            )
        values.update(zip(link.ours, parts, strict=True))
    for path, value in values.items():  # once nothing can fail any more
        weights[path].assign(value)


def to_arrays(model, dialect=None):
    """A model's weights under their published names; the inverse of `load_arrays`.

    Args:
        model: a `keras.Model` of a family in `TABLES`.
        dialect: `"timm"`, `"release"` or `"flax"`; defaults to the family's first.

    Returns:
        float32 arrays by name.

    Raises:
        ValueError: a model some of whose weights no published model has.
    """
    chosen = links(model, dialect or next(iter(_tables(model))))
    weights = {path: ops.convert_to_numpy(w) for path, w in learned_weights(model).items()}
    differing = sorted({path for link in chosen for path in link.ours} ^ set(weights))
    if differing:
        raise ValueError(
            f"{model.name}: no published names are known for a model of this kind "
            f"({', '.join(differing[:3])}{', ...' if len(differing) > 3 else ''})."
        )
    return {
        link.theirs: np.ascontiguousarray(link.backward([weights[path] for path in link.ours]))
        for link in chosen
    }


def _refuse(origin, model, what, names):
    if names:
        some = ", ".join(sorted(names)[:4]) + (", ..." if len(names) > 4 else "")
        raise ValueError(f"{origin} {what} {some} ({len(names)} in all), as {model.name} expects.")
