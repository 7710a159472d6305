"""Files with weights in float16."""

import zipfile

import numpy as np
import pytest
from check_layer import to_numpy

from keras_gmlp import gMLP, load_model
from keras_gmlp.inference.half_size import halve_weights, main
from keras_gmlp.utils.card import read_card, write_card


@pytest.fixture
def path(tmp_path):
    model = gMLP(64, 2, 256, input_shape=(8, 8, 3), patch_size=4, classes=3)
    model.save(tmp_path / "model.keras")
    write_card(tmp_path / "model.keras", model, ["a", "b", "c"])
    return tmp_path / "model.keras"


def test_half_the_size_and_the_same_model_but_for_rounding(path):
    before, card = load_model(path, compile=False), read_card(path)
    with zipfile.ZipFile(path) as archive:
        config, size = archive.read("config.json"), archive.getinfo("model.weights.h5").file_size
    change = halve_weights(path)
    after = load_model(path, compile=False)
    assert 0 < change <= 2**-11
    for old, new in zip(before.weights, after.weights, strict=True):
        assert new.dtype == old.dtype
        expected = to_numpy(old)
        if expected.dtype.kind == "f":
            expected = expected.astype("float16").astype("float32")
        np.testing.assert_array_equal(to_numpy(new), expected)
    with zipfile.ZipFile(path) as archive:
        assert archive.read("config.json") == config
        assert archive.getinfo("model.weights.h5").file_size < 0.7 * size
    assert read_card(path) == card


def test_weight_that_float16_cannot_hold_leaves_the_file(path):
    model = load_model(path, compile=False)
    model.get_layer("head").bias.assign([1e6, 0, 0])
    model.save(path)
    content = path.read_bytes()
    with pytest.raises(ValueError, match="has a weight that float16 cannot hold"):
        halve_weights(path)
    assert path.read_bytes() == content


def test_program(path, capsys):
    assert main([str(path.parent)]) == 0
    assert "weights above 6.1e-5 changed by at most 0.000" in capsys.readouterr().out
    path.write_bytes(b"no archive")
    assert main([str(path.parent)]) == 1
    assert "half_size:" in capsys.readouterr().err
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{}")
    assert main([str(path.parent)]) == 1
    assert "it has no model.weights.h5" in capsys.readouterr().err
