"""Checkpoints at the end of an epoch and within it; `test_train` resumes runs from them."""

import errno
import time
from types import SimpleNamespace

import h5py
import keras
import numpy as np
import pytest

from keras_gmlp.training import checkpoints
from keras_gmlp.training.callbacks import Clock
from keras_gmlp.training.checkpoints import RunCheckpoint, SaveWithinEpoch

pytestmark = pytest.mark.eager


def test_older_steps_are_deleted_and_an_epoch_replaces_them(tmp_path):
    checkpoint, model = RunCheckpoint(tmp_path), compiled()
    checkpoint.set_model(model)
    saved = []
    for progress in [(0, 4), (0, 10), (1, 0), (1, 2)]:
        checkpoint.save(*progress, {"seconds": 3.5})
        saved.append([path.name for path in tmp_path.iterdir()])
    names = ["000000_000004", "000000_000010", "000001", "000001_000002"]
    assert saved == [[f"{name}.weights.h5"] for name in names]
    (tmp_path / ".7.000001_000004.weights.h5").touch()  # half written
    assert (checkpoint.restore(model), checkpoint.step) == (1, 2)
    assert checkpoint.state["seconds"] == 3.5
    assert len(list(tmp_path.iterdir())) == 1
    checkpoint.on_epoch_end(1)
    assert (checkpoint.restore(model), checkpoint.step, checkpoint.state) == (2, 0, None)


@pytest.mark.once
def test_full_disk_ends_a_run_before_its_first_epoch(tmp_path, monkeypatch):
    checkpoint, model = RunCheckpoint(tmp_path), compiled()
    checkpoint.set_model(model)
    monkeypatch.setattr("shutil.disk_usage", lambda path: (2000, 1000, 1000))
    with pytest.raises(OSError, match="no space left") as caught:
        checkpoint.on_train_begin()
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.setattr("shutil.disk_usage", lambda path: (0, 0, 0))  # as some file systems do
    checkpoint.on_train_begin()
    checkpoint.on_epoch_end(0)
    assert checkpoint.restore(compiled()) == 1


def compiled():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.evaluate(np.ones((1, 2)), np.ones((1, 1)), verbose=0)
    assert RunCheckpoint("missing").restore(model) == 0
    assert model.optimizer.built  # before the first step
    return model


def make_saver(directory, minutes=1e-9, steps=1):
    checkpoint, clock = RunCheckpoint(directory), Clock()
    callback = SaveWithinEpoch(checkpoint, clock, minutes, steps)
    for each in (checkpoint, clock, callback):
        each.set_model(model := compiled())
        each.on_train_begin()
        each.on_epoch_begin(0)
    return callback, model


def list_steps(callback, batches):
    """Returns the batches before which a checkpoint was written."""
    steps = []
    callback.checkpoint.save = lambda epochs, step, state: steps.append(step)
    for batch in range(batches):
        callback.on_train_batch_begin(batch)
    return steps


@pytest.mark.once
def test_checkpoint_waits_for_its_time(tmp_path, monkeypatch):
    callback, _ = make_saver(tmp_path, minutes=2)
    now = iter(callback.saved + 50 * np.arange(100))
    times = SimpleNamespace(monotonic=lambda: next(now), perf_counter=time.perf_counter)
    monkeypatch.setattr(checkpoints, "time", times)
    # A step asks for the time, from the second on at 0 s, 50 s, ..., and a save asks once more.
    assert list_steps(callback, 9) == [4, 7]


@pytest.mark.once
def test_steps_of_a_resumed_epoch_count_from_its_start(tmp_path):
    callback, model = make_saver(tmp_path, steps=10)
    callback.checkpoint.step = 40
    callback.checkpoint.state = {**checkpoints.read_state(model), "seconds": np.float64(1000)}
    assert list_steps(callback, 3) == [50, 60]
    callback.on_epoch_end(0)
    assert model.stop_training  # the next epochs have more steps


@pytest.mark.once
def test_several_processes_agree_every_twenty_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "find_process", lambda: (0, 2))
    callback, _ = make_saver(tmp_path)
    assert list_steps(callback, 50) == [20, 40]


def test_broken_weights_and_deleted_runs_are_not_saved(tmp_path):
    callback, model = make_saver(tmp_path / "checkpoint")
    assert list_steps(callback, 2) == [1]
    (tmp_path / "checkpoint").rmdir()
    assert list_steps(callback, 2) == []
    (tmp_path / "checkpoint").mkdir()
    model.metrics_variables[0].assign(np.nan)
    callback.set_model(model)
    assert list_steps(callback, 2) == []


@pytest.mark.once
def test_seconds_of_an_epoch_add_up():
    clock, model = Clock(), compiled()
    checkpoint, logs = RunCheckpoint("missing"), {}
    checkpoint.state = {**checkpoints.read_state(model), "seconds": np.float64(1000)}
    checkpoint.step = 2
    for callback in (clock, SaveWithinEpoch(checkpoint, clock)):
        callback.set_model(model)
        callback.on_epoch_begin(3)
        callback.on_train_batch_begin(0)
    clock.on_epoch_end(3, logs)
    assert 1000 <= logs["seconds"] < 1010


def test_checkpoint_that_cannot_be_loaded_says_what_to_do(tmp_path, monkeypatch):
    model = compiled()
    checkpoint = RunCheckpoint(tmp_path)
    checkpoint.set_model(model)
    checkpoint.save(1, 2, {"seconds": 1.0})
    with h5py.File(tmp_path / "000001_000002.weights.h5", "a") as file:
        file[checkpoints.GROUP].create_dataset("odd", (3,), chunks=(3,))
    with pytest.raises(ValueError, match="epoch/odd"):
        checkpoint.restore(model)

    def fail(*_):  # an error of the system is not taken for damage
        raise PermissionError(errno.EACCES, "Permission denied", "000001.weights.h5")

    checkpoint.save(2)
    monkeypatch.setattr(model, "load_weights", fail)
    with pytest.raises(PermissionError):
        checkpoint.restore(model)
