"""Weights that follow from the data and are computed before training."""

import keras
import numpy as np

from keras_gmlp.training.devices import whole_batches

SAMPLES = 5_000  # training samples that the weights are computed from, at most


def adapt_layers(model, task, data):
    """Computes the weights that layers take from the training data, such as whitening filters.

    A layer takes part if it has a method `adapt`, which takes an iterable of batches of its inputs,
    and an attribute `adapted` that is `False`. Layers of trained models are `adapted`. The first
    samples in their order decide, unchanged, so that the same data give the same weights.

    Args:
        model: A functional `keras.Model`.
        task: `Task` that the model fits.
        data: Data set that fits the task.

    Returns:
        The names of the layers, in their order: a later one sees the outputs of those before it.
    """
    names = []
    for layer in model.layers:
        if not hasattr(layer, "adapt") or getattr(layer, "adapted", True):
            continue
        before = keras.Model(model.input, layer.input)
        with whole_batches():
            batches = task.evaluation_batches(data, "train", SAMPLES)
            # JAX takes no tensors of TensorFlow.
            arrays = (keras.tree.map_structure(np.asarray, inputs) for inputs, *_ in batches)
            layer.adapt(map(before.predict_on_batch, arrays))
        names.append(layer.name)
    return names
