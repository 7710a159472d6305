"""Loading a `.keras` file: what it may name, and what is refused."""

import io
import zipfile

import h5py
import keras
import numpy as np
import pytest

import keras_gmlp
from keras_gmlp.models.saved import WEIGHTS, load_model
from keras_gmlp.objectives.optimizers import LayerwiseAdamW, MatrixMuon

SIZES = {"dim": 8, "depth": 1, "input_shape": (8, 8, 3), "patch_size": 4, "classes": 3}


@pytest.fixture
def model():
    return keras_gmlp.gMLP(hidden_dim=16, **SIZES)


@pytest.mark.two_traces  # as a user's `fit`
@pytest.mark.parametrize("optimizer", [MatrixMuon, LayerwiseAdamW])
def test_compiled_model_keeps_its_optimizer(tmp_path, model, optimizer):
    model.compile(optimizer(1e-3), loss="mse")
    images = np.zeros((2, 8, 8, 3))
    model.fit(images, np.ones((2, 3)), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = load_model(tmp_path / "model.keras")
    assert type(loaded.optimizer) is optimizer
    np.testing.assert_allclose(
        loaded.predict(images, verbose=0), model.predict(images, verbose=0), atol=1e-6
    )


def test_channels_first_is_refused(tmp_path, model):
    model.save(tmp_path / "model.keras")
    keras.config.set_image_data_format("channels_first")
    try:
        with pytest.raises(ValueError, match=r'set_image_data_format\("channels_last"\)'):
            load_model(tmp_path / "model.keras")
    finally:
        keras.config.set_image_data_format("channels_last")


def test_model_that_does_not_fit_in_memory(tmp_path, model, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8")

    model.save(tmp_path / "model.keras")
    monkeypatch.setattr(keras.saving, "load_model", fail)
    with pytest.raises(MemoryError, match=r"model\.keras: not enough memory to load it\."):
        load_model(tmp_path / "model.keras")


def test_file_of_another_kind(tmp_path):
    (tmp_path / "model.keras").write_text("not a zip archive")
    with pytest.raises(ValueError, match=r"model\.keras: cannot be loaded") as error:
        load_model(tmp_path / "model.keras")
    assert "\n" not in str(error.value)


def rewrite(path, weights=None, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members |= {WEIGHTS: weights} if weights else {}
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_compressed_members_are_refused(tmp_path, model):
    path = tmp_path / "model.keras"
    model.save(path)
    rewrite(path)
    assert load_model(path, compile=False).count_params() == model.count_params()
    rewrite(path, method=zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match=r"model\.keras: .*compressed; expected stored members"):
        load_model(path)


@pytest.mark.parametrize("options", [{}, {"chunks": (1000,), "compression": "gzip"}])
def test_weights_that_take_more_than_they_hold_are_refused(tmp_path, model, options):
    model.save(tmp_path / "model.keras")
    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        file.create_dataset("vars/0", (100_000_000,), "float32", **options)
    rewrite(tmp_path / "model.keras", weights.getvalue())
    with pytest.raises(ValueError, match="its weights declare 400,000,000 bytes and hold"):
        load_model(tmp_path / "model.keras")


@pytest.mark.filterwarnings("ignore:You are saving a model that has not yet been built")
@pytest.mark.parametrize("part", [keras.layers.Dense, keras.optimizers.Adam])
def test_part_of_a_model_is_refused(tmp_path, part):
    arguments = {"units": 2} if part is keras.layers.Dense else {}
    keras.saving.save_model(part(**arguments), tmp_path / "part.keras")
    with pytest.raises(ValueError, match=rf"part\.keras: holds a {part.__name__}; expected a"):
        load_model(tmp_path / "part.keras")
