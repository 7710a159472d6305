"""Loading a `.keras` file: what it may name, and what is refused."""

import io
import zipfile
from pathlib import Path
from unittest import mock

import h5py
import keras
import numpy as np
import pytest
from check_layer import to_numpy
from refused import refused

import keras_gmlp
from keras_gmlp.models.saved import load_model
from keras_gmlp.objectives.optimizers import LayerwiseAdamW, MatrixMuon
from keras_gmlp.utils.parsers import WEIGHTS

SHIPPED = Path(__file__).resolve().parents[2] / "saved_models"

SIZES = {"dim": 8, "depth": 1, "input_shape": (8, 8, 3), "patch_size": 4, "classes": 3}


@pytest.fixture(scope="module")
def model():
    return keras_gmlp.gMLP(hidden_dim=16, **SIZES)


@pytest.fixture
def path(tmp_path, model):
    """The file of a saved model."""
    model.save(tmp_path / "model.keras")
    return tmp_path / "model.keras"


@pytest.mark.parametrize("optimizer", [MatrixMuon, LayerwiseAdamW])
def test_compiled_model_keeps_its_optimizer(tmp_path, optimizer, one_trace, monkeypatch):
    monkeypatch.setattr(keras.Model, "make_train_function", one_trace)  # as a user's `fit`
    model = keras.Sequential([keras.Input((4,)), *(keras.layers.Dense(n) for n in (3, 2))])
    model.compile(optimizer(1e-3), loss="mse")
    model.fit(np.ones((2, 4)), np.ones((2, 2)), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = load_model(tmp_path / "model.keras")
    assert type(loaded.optimizer) is optimizer
    for ours, theirs in zip(loaded.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(to_numpy(ours), to_numpy(theirs))


@pytest.mark.once
def test_channels_first_is_refused(path):
    keras.config.set_image_data_format("channels_first")
    try:
        with pytest.raises(ValueError, match=r'set_image_data_format\("channels_last"\)'):
            load_model(path)
    finally:
        keras.config.set_image_data_format("channels_last")


@pytest.mark.once
def test_file_of_another_kind_or_too_large_for_the_memory(path, monkeypatch):
    error = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8")
    monkeypatch.setattr(keras.saving, "load_model", mock.Mock(side_effect=error))
    with refused("not enough memory to load it", path, MemoryError):
        load_model(path)
    path.write_text("not a zip archive")
    with refused("cannot be loaded", path):
        load_model(path)


def rewrite(path, weights=None, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members |= {WEIGHTS: weights} if weights else {}
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.once
def test_compressed_members_are_refused(path, model):
    rewrite(path)
    assert load_model(path, compile=False).count_params() == model.count_params()
    rewrite(path, method=zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match=r"model\.keras: .*compressed; expected stored members"):
        load_model(path)


@pytest.mark.once
def test_weights_that_take_more_than_they_hold_are_refused(path):
    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        file["0"] = np.zeros(10_000, "float32")
        file["1"] = file["0"]
    rewrite(path, weights.getvalue())
    with pytest.raises(ValueError, match="its weights declare 80,000 bytes and hold 4"):
        load_model(path)


def filter_array(file, name, values):
    file.create_dataset(name, data=values, chunks=values.shape, compression="gzip")


def store_outside(file, name, values):
    file.create_dataset(name, values.shape, values.dtype, external=[("/etc/passwd", 0, 64)])


def link_outside(file, name, values):
    file[name] = h5py.ExternalLink("/tmp/other.h5", "/x")


def replace_bias(path, write):
    """Writes the last bias of a `.keras` file in another way."""
    with zipfile.ZipFile(path) as archive:
        content = io.BytesIO(archive.read(WEIGHTS))
    names = []
    with h5py.File(content, "a") as file:
        file.visit(names.append)
        name = [name for name in names if name.endswith("/vars/1") and file[name].ndim == 1][-1]
        values = file[name][()]
        del file[name]
        write(file, name, values)
    rewrite(path, content.getvalue())


@pytest.mark.once
@pytest.mark.parametrize("write", [filter_array, store_outside, link_outside])
def test_odd_arrays_are_refused(path, write):
    replace_bias(path, write)
    with pytest.raises(ValueError, match=r"model\.keras: .*'[/a-z0-9_]*/vars/1', .*; expected"):
        load_model(path, compile=False)


@pytest.mark.once
@pytest.mark.filterwarnings("ignore:You are saving a model that has not yet been built")
def test_part_of_a_model_is_refused(tmp_path):
    keras.saving.save_model(keras.layers.Dense(2), tmp_path / "part.keras")
    with refused("holds a Dense", tmp_path / "part.keras"):
        load_model(tmp_path / "part.keras")
