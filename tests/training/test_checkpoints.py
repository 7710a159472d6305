"""Checkpoints at the end of an epoch; `test_train` resumes runs from them."""

import errno
import shutil

import keras
import numpy as np
import pytest

from keras_gmlp.training.checkpoints import RunCheckpoint

pytestmark = pytest.mark.once


def compiled():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.evaluate(np.ones((1, 2)), np.ones((1, 1)), verbose=0)
    assert RunCheckpoint("missing").restore(model) == 0
    assert model.optimizer.built  # before the first step
    return model


@pytest.fixture
def checkpoint(tmp_path):
    checkpoint = RunCheckpoint(tmp_path)
    checkpoint.set_model(compiled())
    return checkpoint


def test_an_epoch_replaces_the_one_before_but_not_the_best(checkpoint, tmp_path):
    for epoch in range(2):
        checkpoint.on_epoch_end(epoch)
        assert [path.name for path in checkpoint.files()] == [f"{epoch + 1:06d}.weights.h5"]
    checkpoint.best = 2
    checkpoint.on_epoch_end(2)
    assert [path.name[:6] for path in checkpoint.files()] == ["000002", "000003"]
    (tmp_path / ".7.000004.weights.h5").touch()  # half written
    assert checkpoint.restore(checkpoint.model) == 3
    assert len(list(tmp_path.iterdir())) == 2


def test_failed_save_leaves_the_checkpoint_before(checkpoint, monkeypatch):
    checkpoint.on_epoch_end(0)

    def fail(path):
        path.write_bytes(b"half a file")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint.model, "save_weights", fail)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.on_epoch_end(1)
    assert checkpoint.restore(compiled()) == 1


def test_full_disk_ends_a_run_before_its_first_epoch(checkpoint, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: (2000, 1000, 1000))
    with pytest.raises(OSError, match="no space left") as caught:
        checkpoint.on_train_begin()
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.setattr("shutil.disk_usage", lambda path: (0, 0, 0))  # as some file systems do
    checkpoint.on_train_begin()
    checkpoint.on_epoch_end(0)
    assert checkpoint.restore(compiled()) == 1


def test_checkpoint_that_cannot_be_loaded_says_what_to_do(checkpoint, tmp_path, monkeypatch):
    checkpoint.on_epoch_end(0)
    older = tmp_path / "000001_000002.weights.h5"  # which earlier versions saved within an epoch
    shutil.copy(tmp_path / "000001.weights.h5", older)
    with pytest.raises(ValueError, match="within an epoch"):
        checkpoint.restore(checkpoint.model)
    older.unlink()

    def fail(*_):  # an error of the system is not taken for damage
        raise PermissionError(errno.EACCES, "Permission denied", "000001.weights.h5")

    monkeypatch.setattr(checkpoint.model, "load_weights", fail)
    with pytest.raises(PermissionError):
        checkpoint.restore(checkpoint.model)
