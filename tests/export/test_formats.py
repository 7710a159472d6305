"""Every export against the model it came from, on every backend."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from check_layer import to_numpy
from load_app import ROOT
from random_models import MODELS, random_model
from small_text import LABELS, LINES, small_text_model

from keras_gmlp.export.verify import check_export
from keras_gmlp.export.writing import FORMATS, export
from keras_gmlp.models.language_families import aMLP
from keras_gmlp.objectives.losses import CrossEntropy
from keras_gmlp.objectives.optimizers import MatrixMuon
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.weights.loading import load

# Largest logit difference; the logits' own spread is about 3.
TOLERANCE = {
    "saved_model": 1e-3,
    "onnx": 1e-3,
    "tflite_float32": 1e-3,
    "tflite_float16": 0.02,
    "tflite": 0.3,
    "tflite_int8": 1.0,
}


PIXELS = np.random.default_rng(2).integers(0, 256, (50, 16, 16, 3), "uint8")


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(1).integers(0, 256, (10, 16, 16, 3), "uint8")


ON_TORCH = keras.backend.backend() == "torch"


def predict(model, images):
    logits = to_numpy(model(images))
    assert np.ptp(logits, axis=0).min() > 0.1  # the images get different logits
    return logits


def check_all(paths, images, expected):
    for name, path in paths.items():
        found = check_export(path, images, expected, expected.argmax(-1))
        assert found["max_logit_difference"] <= TOLERANCE[name], name
        assert found["accuracy"] == found["top1_agreement"]
        assert name == "saved_model" or found["latency_ms"] > 0


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A model with an optimizer of this package and its state, and its files in all formats."""
    model = random_model("gmlp", depth=1)
    model.compile(MatrixMuon(1e-6), CrossEntropy(), run_eagerly=True)
    model.fit(np.zeros((2, 16, 16, 3), "uint8"), np.zeros(2, "int32"), verbose=0)
    directory = tmp_path_factory.mktemp("gmlp")
    # What a backend hands over to another one is the model's file, whatever the format.
    usual = [name for name in FORMATS if FORMATS[name].usual and name != "onnx"]
    formats = ["saved_model", "onnx"] if ON_TORCH else usual
    return model, export(model, directory, formats, list("abcde"), calibration=PIXELS)


def test_exports_agree_with_the_model(exported, images):
    model, paths = exported
    check_all(paths, images, predict(model, images))


FAMILIES = [name for name in MODELS if name not in ("gmlp", "vit")]  # of which others consist
SMALLEST = {"resnet": {"depth": 8}, "convnet": {}}  # of the others a block


on_tensorflow = pytest.mark.skipif(ON_TORCH, reason="TensorFlow writes all TFLite files")


@on_tensorflow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_builtin_operators_and_integers_throughout(family, images, tmp_path):
    model = random_model(family, **SMALLEST.get(family, {"depth": 1}))
    paths = export(model, tmp_path, ["tflite", "tflite_int8"], calibration=PIXELS)
    # LiteRT loads each without the Flex delegate: its operators are built in.
    check_all(paths, images, predict(model, images))
    interpreter = Interpreter(str(paths["tflite_int8"]))
    (logits,) = interpreter.get_output_details()
    floats = [t["name"] for t in interpreter.get_tensor_details() if t["dtype"] == np.float32]
    assert floats == [logits["name"]]


@on_tensorflow
def test_sizes_tell_the_precision_of_the_weights(exported):
    model, paths = exported
    weights = 4 * model.count_params()
    assert paths["tflite_float32"].stat().st_size > weights
    assert paths["tflite_float16"].stat().st_size < 0.8 * weights + 20_000
    assert paths["tflite"].stat().st_size < paths["tflite_float16"].stat().st_size
    stored = sum(p.stat().st_size for p in (paths["saved_model"] / "variables").iterdir())
    assert stored < 1.2 * weights + 20_000  # once, and nothing of an optimizer


@on_tensorflow
def test_guide_names_the_oldest_runtime(exported):
    rows = [line.split("|") for line in (ROOT / "docs/guides/deploy.md").read_text().splitlines()]
    named = {row[1].strip(" `"): row[2].strip() for row in rows if len(row) == 5}
    for path in exported[1].values():
        if path.suffix == ".tflite":
            model = schema.ModelT.InitFromPackedBuf(path.read_bytes())
            (oldest,) = (m.buffer for m in model.metadata if m.name == b"min_runtime_version")
            found = bytes(model.buffers[oldest].data).rstrip(b"\0").decode()
            assert found == f"{named[path.name]}.0"


def test_saved_model_takes_any_batch_of_float_or_uint8_pixels(exported, images):
    model, paths = exported
    loaded = tf.saved_model.load(str(paths["saved_model"]))
    expected = to_numpy(model(images))
    for count in (1, 7):
        floats = loaded.signatures["serving_default"](image=tf.constant(images[:count], tf.float32))
        bytes_ = loaded.signatures["uint8"](image=tf.constant(images[:count]))
        np.testing.assert_allclose(floats["logits"], expected[:count], atol=1e-3)
        np.testing.assert_array_equal(bytes_["logits"], floats["logits"])
    labels = paths["saved_model"] / "assets.extra" / "labels.txt"
    assert labels.read_text().split() == list("abcde")


@pytest.mark.skipif(not ON_TORCH, reason="PyTorch writes the ONNX files of all backends")
@pytest.mark.parametrize("family", ["amlp", "deit", "eamlp", "resnet", "convnet"])
def test_onnx_takes_any_batch_and_contains_its_labels(family, tmp_path, images):
    model = random_model(family, **SMALLEST.get(family, {"depth": 1}))
    path = export(model, tmp_path, ["onnx"], list("abcde"))["onnx"]
    classifier = load(path)
    assert classifier.labels == tuple("abcde")
    assert classifier.image_shape == (16, 16, 3)
    expected = predict(model, images)
    for count in (1, 7):
        np.testing.assert_allclose(classifier.logits(images[:count]), expected[:count], atol=1e-3)


@pytest.mark.skipif(not ON_TORCH, reason="PyTorch writes the ONNX files of all backends")
@pytest.mark.parametrize("task", ["masked_lm", "text_classification"])
def test_onnx_takes_any_number_of_texts_and_contains_its_tokenizer(task, tokenizer, tmp_path):
    model = small_text_model(task, tokenizer, aMLP)
    labels = LABELS if task == "text_classification" else ()
    path = export(model, tmp_path, ["onnx"], labels, tokenizer=tokenizer)["onnx"]
    opened = load(path)
    assert (opened.tokenizer.text, opened.labels) == (tokenizer.text, labels)
    inputs = find_task(task).encode(opened, LINES)
    expected = to_numpy(model(inputs if len(inputs) > 1 else inputs["token_ids"]))
    found = check_export(path, inputs, expected)  # all texts at once, and one
    assert found["max_logit_difference"] <= TOLERANCE["onnx"]


def test_shift_invariant_gates_are_exported_as_matrices(tmp_path, images):
    sizes = {"toeplitz": True, "heads": 4, "stem": "convolutions", "pooling": "attention"}
    model = random_model("gmlp", depth=1, **sizes)
    formats = ["onnx"] if ON_TORCH else ["tflite", "tflite_int8"]
    paths = export(model, tmp_path, formats, calibration=images)
    check_all(paths, images, predict(model, images))
    for path in tmp_path.glob("*.tflite"):
        operators = Interpreter(str(path))._get_ops_details()
        assert not {"TILE", "CONCATENATION"} & {operator["op_name"] for operator in operators}


def test_mistakes_are_refused_before_the_conversion(exported, tmp_path, monkeypatch):
    monkeypatch.setitem(FORMATS, "onnx", FORMATS["onnx"]._replace(packages=("no_such_package",)))
    for formats, labels, reason in (
        (["tflite"], list("abcd"), "4 labels"),
        (["coreml"], None, "coreml"),
        (["onnx"], None, "no_such_package"),
    ):
        with pytest.raises(ValueError, match=reason):
            export(exported[0], tmp_path, formats, labels)
    with pytest.raises(ValueError, match="in_float32"):
        export(random_model("gmlp", depth=1, dtype="mixed_bfloat16"), tmp_path)
    assert not list(tmp_path.iterdir())
