"""Patience: the best epoch on validation images is saved, and the run ends some epochs later."""

import dataclasses
import json

import numpy as np
import pytest
from check_layer import to_numpy
from read_table import read_table
from tiny_run import RECIPE, Kill, make_data, train_killed, train_tiny

import keras_gmlp
from keras_gmlp.data import Samples, hold_out
from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.training.callbacks import KeepBest, StopWhenDiverged
from keras_gmlp.training.checkpoints import RunCheckpoint

pytestmark = pytest.mark.once  # checkpoints and averages are tested on every backend with runs

PLANTED = (0.3, 0.8, 0.2, 0.8, 0.7)  # the second is best, and the first of two equal ones
PATIENT = dataclasses.replace(
    RECIPE, epochs=5, batch_size=5, patience=1, task=ImageClassification(0.0)
)
KEPT = "000002.weights.h5"


def split_data():
    """Returns data with validation images, and the places of test images that are read."""
    data, read = make_data(), []

    def note(places):
        read.extend(places)
        return data.test.read(places)

    test = Samples(data.test.labels, data.image_shape, note)
    return dataclasses.replace(hold_out(data, 1 / 3), test=test), read


@pytest.fixture
def losses(monkeypatch):
    """Plants the validation accuracy of each epoch; the losses on validation images by epoch."""
    found = {}

    def plant(self, epoch, logs=None):
        found[epoch + 1] = logs["val_loss"]
        logs["val_accuracy"] = PLANTED[epoch]

    monkeypatch.setattr(StopWhenDiverged, "on_epoch_end", plant)
    return found


def test_the_planted_best_epoch_is_saved_also_after_kills(tmp_path, monkeypatch, losses):
    data, read = split_data()
    run = {"data": data, "recipe": PATIENT}
    # In the epoch that ends the patience, and then before the end of the run.
    assert train_killed(monkeypatch, tmp_path, 2, **run) == [KEPT]
    with monkeypatch.context() as patch:
        patch.setattr(KeepBest, "restore", die)
        with pytest.raises(Kill):
            train_tiny(tmp_path, **run)
    assert sorted(p.name for p in (tmp_path / "checkpoint").iterdir()) == [
        KEPT,
        "000003.weights.h5",
    ]
    seen = dict(losses)
    losses.clear()
    assert not read
    train_tiny(tmp_path, **run)
    assert not losses  # no further epoch
    assert not (tmp_path / "checkpoint").exists()
    assert read == list(range(8))

    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert (metrics["best_epoch"], metrics["epochs"]) == (2, 3)
    best = [row["best_epoch"] for row in read_table(tmp_path / "history.csv")]
    assert best == ["1", "2", "2"]
    card = (tmp_path / "README.md").read_text("utf-8")
    # The averaged weights, as validation saw them.
    model = keras_gmlp.load_model(tmp_path / "model.keras", compile=False)
    images, labels = data.validation.arrays()
    right = np.mean(to_numpy(model(images)).argmax(-1) == labels)
    assert metrics["validation_accuracy"] == pytest.approx(right, abs=1e-6)
    assert f"| validation accuracy | {round(right, 4)} |" in card
    PATIENT.task.compile(model, "sgd")
    loss = PATIENT.task.evaluate(model, data, "validation")["loss"]
    assert loss == pytest.approx(seen[2], abs=1e-5)
    assert min(abs(loss - seen[epoch]) for epoch in (1, 3)) > 1e-3


def die(*_):
    raise Kill


def test_a_patience_that_never_ends_saves_the_best_epoch(tmp_path):
    keep = KeepBest(RunCheckpoint(tmp_path), "val_accuracy", 9)
    for epoch, value in enumerate(PLANTED):
        keep.on_epoch_end(epoch, {"val_accuracy": value})
    assert (keep.best, keep.checkpoint.best, keep.ended(10), keep.ended(11)) == (2, 2, False, True)
