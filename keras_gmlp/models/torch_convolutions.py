"""Convolutions and pooling of Keras on PyTorch without copies of their inputs."""

import contextlib

import keras


@contextlib.contextmanager
def channels_stay_last():
    """Keeps images in the memory order `(batch, height, width, channels)`; for `fit` on PyTorch."""
    functions = None
    if keras.backend.backend() == "torch":
        with contextlib.suppress(ImportError):
            from keras.src.backend.torch import nn as functions
    copying = getattr(functions, "_transpose_spatial_inputs", None)
    if copying is None:  # another backend or version of Keras
        yield
        return
    # A view with the axes in the order of PyTorch; the memory keeps its order.
    functions._transpose_spatial_inputs = lambda inputs: inputs.movedim(-1, 1)
    try:
        yield
    finally:
        functions._transpose_spatial_inputs = copying
