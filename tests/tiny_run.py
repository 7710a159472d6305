"""A tiny run on generated pictures that is killed and goes on, for tests of what a run keeps."""

import dataclasses

import keras
import numpy as np
import pytest

import keras_gmlp
from keras_gmlp.data import Augmentation, ImageData
from keras_gmlp.data.images.samples import from_pixels
from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.training.checkpoints import RunCheckpoint
from keras_gmlp.training.recipes import Recipe
from keras_gmlp.training.train import train

PIPELINES = ["host", "device"] if keras.backend.backend() == "jax" else ["host"]

RECIPE = Recipe(
    epochs=2,
    batch_size=8,
    learning_rate=0.01,
    ema=0.3,
    task=ImageClassification(augmentation=Augmentation(mixup=0.5)),
)


class Kill(BaseException):
    """Neither an Exception nor caught by anything: as near to SIGKILL as a process survives."""


def make_data():
    """Returns 24 training images, three batches, and 8 test images."""
    rng = np.random.default_rng(0)
    labels = np.arange(32) % 2
    images = rng.integers(0, 60, (32, 8, 8, 3)) + 190 * labels[:, None, None, None]
    images = images.astype("uint8")
    train, test = from_pixels(images[:24], labels[:24]), from_pixels(images[24:], labels[24:])
    return ImageData("shades", ("dark", "bright"), (8, 8, 3), train, test)


def tiny_model(**overrides):
    """Returns a gMLP of one block for these pictures, or for others."""
    keras.utils.set_random_seed(0)
    sizes = {"dim": 8, "depth": 1, "hidden_dim": 16, "patch_size": 4, "classes": 2}
    return keras_gmlp.gMLP(**{**sizes, "input_shape": (8, 8, 3), **overrides})


def train_tiny(directory, pipeline="host", data=None, recipe=RECIPE, **options):
    """Returns weights and metrics after training, with random numbers that must resume too."""
    # The first of two blocks is never dropped.
    model = tiny_model(depth=2, stochastic_depth=0.3, dropout=0.1)
    recipe = dataclasses.replace(recipe, pipeline=pipeline)
    metrics = train(model, data or make_data(), recipe, directory, verbose=0, **options)
    return model.get_weights(), metrics


def kill_after_an_epoch(train, *arguments, **options):
    """Calls a function that trains, and dies when it has saved its first epoch."""

    def save_and_die(self, epoch, logs=None, original=RunCheckpoint.on_epoch_end):
        original(self, epoch, logs)
        raise Kill

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunCheckpoint, "on_epoch_end", save_and_die)
        with pytest.raises(Kill):
            train(*arguments, **options)


class KillWithin(keras.callbacks.Callback):
    """Dies after the first step of an epoch."""

    def __init__(self, epoch):
        super().__init__()
        self.last = epoch

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        if (self.epoch, batch) == (self.last, 1):
            raise Kill


def train_killed(monkeypatch, directory, epoch, pipeline="host", **options):
    """Dies within an epoch; returns the names of the checkpoints."""
    with monkeypatch.context() as patch:
        patch.setattr("keras_gmlp.data.batches.device.chunk_length", lambda steps: 1)
        with pytest.raises(Kill):
            train_tiny(directory, pipeline, callbacks=[KillWithin(epoch)], **options)
    return sorted(path.name for path in (directory / "checkpoint").iterdir())
