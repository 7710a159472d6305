"""A model that distinguishes pure colours by weights set by hand."""

from pathlib import Path

import numpy as np

import keras_gmlp
from keras_gmlp.utils.card import write_card

LABELS = ("red", "green", "blue")


def colour_model():
    """Returns the model, for images of 8 by 8 pixels."""
    model = keras_gmlp.gMLP(
        8, 1, 16, input_shape=(8, 8, 3), patch_size=4, classes=3, name="colours"
    )
    # The token's first three channels are the patch's mean colour, the head reads them off.
    stem = np.zeros((4, 4, 3, 8), "float32")
    stem[:, :, range(3), range(3)] = 1 / 16
    model.get_layer("stem").set_weights([stem, np.zeros(8, "float32")])
    model.get_layer("head").set_weights([5 * np.eye(8, 3, dtype="float32"), np.zeros(3, "float32")])
    shrink = model.get_layer("block_0").shrink
    shrink.set_weights([np.zeros_like(w) for w in shrink.get_weights()])
    return model


def save_colour_model(folder):
    """Saves the model with its card as the one of a run, and returns it."""
    model, path = colour_model(), Path(folder) / "model.keras"
    model.save(path)
    write_card(path, model, LABELS)
    return model
