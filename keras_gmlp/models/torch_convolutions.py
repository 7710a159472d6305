"""Convolutions and pooling of Keras on PyTorch without copies of their inputs."""

import contextlib

import keras


@contextlib.contextmanager
def channels_stay_last():
    """Keeps images in the memory order `(batch, height, width, channels)`; for `fit` on PyTorch."""
    functions = _functions()
    copying = getattr(functions, "_transpose_spatial_inputs", None)
    if copying is None:
        yield
        return
    functions._transpose_spatial_inputs = _channels_first
    try:
        yield
    finally:
        functions._transpose_spatial_inputs = copying


def _functions():
    """Returns the module of Keras that calls PyTorch's operators, or `None`."""
    if keras.backend.backend() != "torch":
        return None
    with contextlib.suppress(ImportError):
        from keras.src.backend.torch import nn

        return nn
    return None


def _channels_first(inputs):
    """Returns a view with the axes in the order of PyTorch; the memory keeps its order."""
    return inputs.movedim(-1, 1)
