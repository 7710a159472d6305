"""A run's exports and what is written of them."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from random_models import random_model

from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.export import tflite
from keras_gmlp.export.verify import check_export, export_run
from keras_gmlp.utils.card import read_card, write_card
from keras_gmlp.utils.files import directory_lock


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(1).integers(0, 256, (20, 16, 16, 3), "uint8")


@pytest.fixture
def exported_run(tmp_path, images):
    """A run's folder, and data of whose images a quarter are called wrong."""
    model = random_model("gmlp")
    model.save(tmp_path / "model.keras")
    (tmp_path / "labels.txt").write_text("\n".join("abcde"))
    (tmp_path / "metrics.json").write_text('{"test_accuracy": 0.5}')
    labels = model.predict(images, verbose=0).argmax(-1)
    labels[:5] = (labels[:5] + 1) % 5
    split = tf.data.Dataset.from_tensor_slices((images, labels))
    return tmp_path, ImageData("random", tuple("abcde"), (16, 16, 3), split, split)


def test_export_of_a_run_records_what_it_found(exported_run):
    tmp_path, data = exported_run
    (tmp_path / "recipe.json").write_text('{"data": "random"}')
    lines = []
    found = export_run(tmp_path, ["tflite_float32"], data, lines.append)
    assert found["keras"] == {"accuracy": 0.75}
    assert found["tflite_float32"]["accuracy"] == 0.75
    assert found["tflite_float32"]["top1_agreement"] == 1.0
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics == {"test_accuracy": 0.5, "exports": found}
    assert read_card(tmp_path / "model_float32.tflite")["test_accuracy"] == 0.5
    assert any("top1_agreement 1.0" in line for line in lines)
    row = "| `model_float32.tflite` | TFLite, float32 | 75.00 % | 100.00 % |"
    assert row in (tmp_path / "README.md").read_text("utf-8")


def test_precisions_share_one_trace(exported_run, monkeypatch):
    directory, data = exported_run
    folders, save = [], tflite._save
    monkeypatch.setattr(tflite, "_save", lambda *a: folders.append(a[3]) or save(*a))
    export_run(directory, ["tflite", "tflite_float16", "tflite_float32"], data)
    assert len(folders) == 1
    assert not Path(folders[0]).exists()


def test_exports_keep_the_arguments_of_the_model(exported_run):
    directory, _ = exported_run
    metadata = {"preset": "gmlp_n4_32", "arguments": {"depth": 2}}
    write_card(directory / "model.keras", random_model("gmlp"), list("abcde"), metadata)
    export_run(directory, ["tflite"])
    assert read_card(directory / "model.tflite")["arguments"] == {"depth": 2}


def test_interrupted_checks_keep_what_was_found(exported_run, monkeypatch):
    directory, data = exported_run

    def interrupted(path, *arguments):
        if path.name == "model.tflite":
            raise KeyboardInterrupt
        return check_export(path, *arguments)

    monkeypatch.setattr("keras_gmlp.export.verify.check_export", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export_run(directory, ["tflite_float32", "tflite"], data)
    exports = json.loads((directory / "metrics.json").read_text())["exports"]
    assert list(exports) == ["keras", "tflite_float32"]
    assert (directory / "model.tflite").exists()


def test_nothing_is_recorded_of_files_that_were_replaced(exported_run):
    directory, _ = exported_run
    metrics = directory / "metrics.json"
    old = {"tflite": {"accuracy": 0.9}, "onnx": {"accuracy": 0.8}}
    metrics.write_text(json.dumps({"test_accuracy": 0.5, "exports": old}))
    assert export_run(directory, ["tflite_float32"]) == {}
    assert json.loads(metrics.read_text())["exports"] == old
    assert export_run(directory, ["tflite"]) == {}
    assert json.loads(metrics.read_text())["exports"] == {"onnx": {"accuracy": 0.8}}


def test_failed_conversion_leaves_the_others_and_their_checks(exported_run, monkeypatch):
    directory, data = exported_run

    def fails(*_):
        raise RuntimeError("onnx: no such operator.")

    monkeypatch.setattr("keras_gmlp.export.formats._hand_over", fails)
    old = {"onnx": {"accuracy": 0.8}}  # of a file that stays as it is
    metrics = {"test_accuracy": 0.5, "exports": old}
    (directory / "metrics.json").write_text(json.dumps(metrics))
    with pytest.raises(RuntimeError, match=r"^onnx: no such operator\.$"):
        export_run(directory, ["onnx", "saved_model"], data)
    exports = json.loads((directory / "metrics.json").read_text())["exports"]
    assert list(exports) == ["onnx", "keras", "saved_model"]
    assert exports["onnx"] == old["onnx"]
    assert "latency_ms" not in exports["saved_model"]  # TensorFlow's threads are not its own


def test_one_export_at_a_time(exported_run):
    directory, data = exported_run
    with (
        directory_lock(directory),
        pytest.raises(ValueError, match="another process uses this directory"),
    ):
        export_run(directory, ["tflite_float32"], data)


def test_folded_export_agrees_with_the_model_as_it_was(tmp_path, images):
    model = random_model("resmlp")
    model.save(tmp_path / "model.keras")
    (tmp_path / "labels.txt").write_text("\n".join("abcde"))
    labels = model.predict(images, verbose=0).argmax(-1)
    split = tf.data.Dataset.from_tensor_slices((images, labels))
    data = ImageData("random", tuple("abcde"), (16, 16, 3), split, split)
    found = export_run(tmp_path, ["tflite_float32"], data, folded=True)["tflite_float32"]
    assert found["max_logit_difference"] < 1e-3
    assert found["speed_up"] > 0.5  # of so small a model no more can be said
    assert found["unfolded_latency_ms"] > 0
    # Two Affines and two LayerScales of 32 channels a block, and the last Affine; a shift comes in.
    folded = (tmp_path / "model_float32.tflite").stat().st_size
    export_run(tmp_path, ["tflite_float32"], data)
    assert folded != (tmp_path / "model_float32.tflite").stat().st_size


def test_what_does_not_fold(tmp_path):
    random_model("gmlp").save(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="fold takes a ResMLP"):
        export_run(tmp_path, ["tflite_float32"], folded=True)
