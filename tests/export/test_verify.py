"""A run's exports and what is written of them."""

import contextlib
import json
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from check_layer import to_numpy
from random_models import random_model
from refused import refused

from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.export.verify import check_export, export_run
from keras_gmlp.export.writing import FORMATS
from keras_gmlp.utils.card import read_card, write_card
from keras_gmlp.utils.files import directory_lock


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(1).integers(0, 256, (20, 16, 16, 3), "uint8")


def save_run(folder, model, images, wrong=0):
    """Makes the folder of a run; returns data of whose images the first have a wrong class."""
    model.save(folder / "model.keras")
    (folder / "labels.txt").write_text("\n".join("abcde"))
    (folder / "metrics.json").write_text('{"test_accuracy": 0.5}')
    labels = to_numpy(model(images)).argmax(-1)
    labels[:wrong] = (labels[:wrong] + 1) % 5
    split = tf.data.Dataset.from_tensor_slices((images, labels))
    return ImageData("random", tuple("abcde"), (16, 16, 3), split, split)


@pytest.fixture(scope="module")
def saved(tmp_path_factory, images):
    folder = tmp_path_factory.mktemp("saved")
    return folder, save_run(folder, random_model("gmlp", depth=1), images, wrong=5)


@pytest.fixture
def exported_run(saved, tmp_path):
    """A run's folder, and data of whose images a quarter are called wrong."""
    folder, data = saved
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return tmp_path, data


def test_export_of_a_run_records_what_it_found(exported_run, monkeypatch):
    tmp_path, data = exported_run
    metadata = {"preset": "gmlp_n4_32", "arguments": {"depth": 2}}
    write_card(tmp_path / "model.keras", random_model("gmlp", depth=1), list("abcde"), metadata)
    recipe = {"data": "random", "image_shape": [16, 16, 3], "labels": list("abcde")}
    (tmp_path / "recipe.json").write_text(json.dumps(recipe))
    lines, folders, save = [], [], tf.saved_model.save

    def record(module, folder, **more):
        folders.append(Path(folder))
        save(module, folder, **more)

    monkeypatch.setattr(tf.saved_model, "save", record)
    found = export_run(tmp_path, ["tflite_float16", "tflite_float32"], data, lines.append)
    assert found["keras"] == {"accuracy": 0.75}
    assert found["tflite_float32"]["accuracy"] == 0.75
    assert found["tflite_float32"]["top1_agreement"] == 1.0
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics == {"test_accuracy": 0.5, "exports": found}
    card = read_card(tmp_path / "model_float32.tflite")
    assert (card["test_accuracy"], card["arguments"]) == (0.5, {"depth": 2})
    assert any("top1_agreement 1.0" in line for line in lines)
    row = "| `model_float32.tflite` | 0.75 | 1.0 |"
    assert row in (tmp_path / "README.md").read_text("utf-8")
    if keras.backend.backend() == "tensorflow":  # others convert in another process
        (trace,) = folders  # which both precisions share
        assert not trace.exists()


@pytest.fixture
def unconverted(monkeypatch):
    """Writes empty files in place of conversions; returns errors to raise by format or file."""
    failing = {}

    def write(model, directory, formats, options):
        (name,) = formats
        if isinstance(failing.get(name), RuntimeError):
            raise failing[name]
        (directory / FORMATS[name].path).touch()

    def check(path, *_):
        if path.name in failing:
            raise failing[path.name]
        return {"accuracy": 1.0}

    monkeypatch.setattr("keras_gmlp.export.verify.write_formats", write)
    monkeypatch.setattr("keras_gmlp.export.verify.check_export", check)
    return failing


def test_interrupted_checks_keep_what_was_found(exported_run, unconverted):
    directory, data = exported_run
    unconverted["model.tflite"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        export_run(directory, ["tflite_float32", "tflite"], data)
    exports = json.loads((directory / "metrics.json").read_text())["exports"]
    assert list(exports) == ["keras", "tflite_float32"]
    assert (directory / "model.tflite").exists()


def test_nothing_is_recorded_of_files_that_were_replaced(exported_run, unconverted):
    directory, _ = exported_run
    metrics = directory / "metrics.json"
    old = {"tflite": {"accuracy": 0.9}, "onnx": {"accuracy": 0.8}}
    metrics.write_text(json.dumps({"test_accuracy": 0.5, "exports": old}))
    assert export_run(directory, ["tflite_float32"]) == {}
    assert json.loads(metrics.read_text())["exports"] == old
    assert export_run(directory, ["tflite"]) == {}
    assert json.loads(metrics.read_text())["exports"] == {"onnx": {"accuracy": 0.8}}


def test_failed_conversion_leaves_the_others_and_their_checks(exported_run, unconverted):
    directory, data = exported_run
    unconverted["onnx"] = RuntimeError("onnx: no such operator.")
    unconverted["model.tflite"] = ValueError("model.tflite: does not answer.")
    old = {"onnx": {"accuracy": 0.8}}  # of a file that stays as it is
    metrics = {"test_accuracy": 0.5, "exports": old}
    (directory / "metrics.json").write_text(json.dumps(metrics))
    with pytest.raises(RuntimeError, match=r"^onnx: no such operator\. model\.tflite: does"):
        export_run(directory, ["onnx", "tflite", "saved_model"], data)
    exports = json.loads((directory / "metrics.json").read_text())["exports"]
    assert list(exports) == ["onnx", "keras", "saved_model"]
    assert exports["onnx"] == old["onnx"]
    assert not (directory / "model.tflite").exists()  # programs would open it


def test_file_that_answers_otherwise_is_refused(tmp_path, images):
    model, path = random_model("gmlp", depth=1), tmp_path / "model.keras"
    expected, head = to_numpy(model(images)), model.get_layer("head")
    right = head.get_weights()
    for factor, reason in ((1, None), (-1, "does not answer"), (np.nan, "NaN")):
        head.set_weights([factor * weight for weight in right])
        model.save(path)
        with pytest.raises(ValueError, match=reason) if reason else contextlib.nullcontext():
            check_export(path, images, expected)


def test_one_export_at_a_time(exported_run):
    directory, data = exported_run
    with directory_lock(directory), refused("another process uses this directory"):
        export_run(directory, ["tflite_float32"], data)


def test_folded_export_agrees_with_the_model_as_it_was(tmp_path, images):
    model = random_model("resmlp", depth=1)
    data = save_run(tmp_path, model, images)
    found = export_run(tmp_path, ["tflite_float32"], data, folded=True)["tflite_float32"]
    assert found["max_logit_difference"] < 1e-3
    # Two Affines and two LayerScales of 32 channels a block, and the last Affine; a shift comes in.
    assert found["folded"]
    assert found["parameters"] != model.count_params()
    assert read_card(tmp_path / "model_float32.tflite")["folded"]
