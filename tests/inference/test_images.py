"""Loading of models and the classification of files, by every format."""

import contextlib
import dataclasses
import json
import shutil
import zipfile

import keras
import numpy as np
import pytest
from colours import LABELS, colour_model
from PIL import Image
from refused import refused
from scipy.special import softmax

import keras_gmlp
from keras_gmlp.export.writing import FORMATS, export
from keras_gmlp.tasks.classifier import Classifier
from keras_gmlp.tasks.confidence import Confidence
from keras_gmlp.utils.card import members, read_card
from keras_gmlp.weights.loading import load

# Other precisions open as "tflite" does; an ONNX file of the same answers is written by hand.
EXPORTED = ("tflite", "tflite_int8", "saved_model")
MODELS = ["model.keras", *(FORMATS[name].path for name in (*EXPORTED, "onnx"))]


def write_onnx(path, shape=("batch", 8, 8, 3), output=("batch", 3), axes=(0, 3, 1, 2), card=None):
    """Writes a model that returns the mean of each channel."""
    from onnx import TensorProto, helper, save

    nodes = [
        helper.make_node("Transpose", ["image"], ["channels_first"], perm=axes),
        helper.make_node("GlobalAveragePool", ["channels_first"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["logits"]),
    ]
    inputs = [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, output)]
    graph = helper.make_graph(nodes, "by hand", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    helper.set_model_props(model, card or {})
    save(model, path)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run whose model distinguishes pure colours."""
    directory = tmp_path_factory.mktemp("run")
    model = colour_model()
    model.save(directory / "model.keras")
    (directory / "labels.txt").write_text("\n".join(LABELS) + "\n")
    tints = np.random.default_rng(0).integers(0, 256, (50, 1, 1, 3), "uint8")
    tints = np.concatenate([tints, 255 * np.eye(3, dtype="uint8").reshape(3, 1, 1, 3)])
    calibration = np.broadcast_to(tints, (53, 8, 8, 3))
    card = {"preset": "colours"}
    export(model, directory, EXPORTED, LABELS, card, calibration)
    write_onnx(directory / "model.onnx", card=members(model, LABELS, card))
    return directory


def without_card(path):
    """Returns the bytes of a .tflite file before its card."""
    with zipfile.ZipFile(path) as archive:
        return path.read_bytes()[: archive.infolist()[0].header_offset]


@pytest.mark.parametrize("name", MODELS)
def test_every_format_classifies(run, tmp_path, name):
    classifier = load(run / name)
    assert classifier.image_shape == (8, 8, 3)
    assert classifier.labels == LABELS
    for colour in LABELS:
        path = tmp_path / f"{colour}.png"
        Image.new("RGB", (31, 17), colour).save(path)
        predictions = classifier.classify(path)
        assert predictions[0][0] == colour
        assert sum(probability for _, probability in predictions) == pytest.approx(1)
        assert [p for _, p in predictions] == sorted((p for _, p in predictions), reverse=True)
        assert classifier.classify(path, top=1) == predictions[:1]
        logits = classifier.logits(classifier.read(path)[None])[0]
        expected = softmax(logits.astype("float64"))
        found = dict(predictions)
        np.testing.assert_allclose([found[label] for label in LABELS], expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["model.keras", "model.tflite"])
def test_one_image_or_many_of_every_source(run, tmp_path, name):
    pixels = np.random.default_rng(1).integers(0, 256, (17, 31, 3), "uint8")
    path = tmp_path / "picture.png"
    Image.fromarray(pixels).save(path)
    classifier = load(run / name)
    expected = classifier.classify(str(path), top=2)
    with open(path, "rb") as file, Image.open(path) as opened:
        sources = [path, path.read_bytes(), file, opened, pixels]
        assert classifier.classify(sources, top=2) == [expected] * 5
    assert classifier.classify(pixels, top=2) == expected
    assert classifier.classify(pixels[None], top=2) == [expected]
    (rows,) = classifier.answer((path,), 2)
    assert [(row["label"], row["score"]) for row in rows] == expected
    assert classifier.classify([]) == []
    assert classifier.logits(np.zeros((0, 8, 8, 3), "uint8")).shape == (0, len(LABELS))
    assert classifier.classify(path, top=np.int64(2)) == expected


def test_logits_without_probabilities():
    for logits in ([0, np.nan], [0, np.inf], [-np.inf, -np.inf]):
        rows = np.array([logits], "float32")
        own = (8, 8, 3), ("a", "b"), "m.tflite", "image_classification"
        model = Classifier(lambda _, rows=rows: rows, *own)
        with refused("its logits are NaN or infinite", "m.tflite"):
            model.classify(np.zeros((8, 8, 3), "uint8"))


def test_folder_of_a_run_gives_its_smallest_model(run, tmp_path):
    assert load(run).path == run / "model.tflite"
    bare = tmp_path / "bare.tflite"  # without a card
    bare.write_bytes(without_card(run / "model.tflite"))
    assert read_card(bare) == {}
    assert load(bare).labels == ("0", "1", "2")


def test_underscores_are_shown_as_spaces(run, tmp_path, app):
    shutil.copy(run / "model.keras", tmp_path)
    (tmp_path / "labels.txt").write_text("deep_red\ngreen\nblue\n")
    model, red = tmp_path / "model.keras", tmp_path / "red.png"
    Image.new("RGB", (8, 8), "red").save(red)
    classifier = load(model)
    assert classifier.labels == ("deep_red", "green", "blue")
    assert classifier.classify(red)[0][0] == "deep red"
    assert "deep red" in app("classify", red, "--model", model)[1]
    found = json.loads(app("classify", red, "--model", model, "--json")[1])  # data for others
    assert found["predictions"][0]["label"] == "deep_red"
    several = Confidence(thresholds=(1.0, 0.0, 0.0))
    alike = dataclasses.replace(classifier, labels=("a b", "a_b", "c"), confidence=several)
    assert {name for name, _ in alike.find_labels(red)} == {"a_b", "c"}


def test_damaged_card_is_never_taken_for_another(run, tmp_path):
    whole, start = (run / "model.tflite").read_bytes(), len(without_card(run / "model.tflite"))
    card, found = read_card(run / "model.tflite"), []
    damaged = tmp_path / "damaged.tflite"
    for place in range(start, len(whole), 3):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        damaged.write_bytes(flipped)
        with contextlib.suppress(ValueError):
            found.append(read_card(damaged) == card)  # of a date, which nobody reads
    assert all(found)
    assert len(found) < (len(whole) - start) / 6
    damaged.write_bytes(whole[:-1])
    with refused("its class names .* cut off or damaged", damaged):
        load(damaged)


def test_bad_models_say_what_is_wrong_in_one_line(tmp_path):
    for name, content in (
        ("broken.keras", b"PK no zip"),
        ("broken.tflite", b"TFL3" * 100),
        ("broken.onnx", b"no protocol buffer"),
        ("saved/saved_model.pb", b"none"),
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        path = path.parent if path.suffix == ".pb" else path
        with refused("damaged", path):
            load(path)


@pytest.mark.filterwarnings("ignore:You are saving a model that has not yet been built")
def test_models_that_are_not_image_classifiers(tmp_path):
    shape = {"patch_size": 4, "classes": 2, "input_shape": (8, 8, 3)}
    row, dense = keras.Input((4,)), keras.layers.Dense(2)
    for model, reason in (
        (keras.Model(row, dense(row)), "not an image classifier"),
        (keras.Sequential([keras.layers.Dense(2)]), "holds a Sequential"),
        (
            keras_gmlp.gMLP(4, 1, hidden_dim=8, classifier_activation="softmax", **shape),
            "logits",
        ),
    ):
        model.save(tmp_path / "model.keras")
        with refused(reason):
            load(tmp_path / "model.keras")


@pytest.mark.filterwarnings("ignore:Statistics for quantized inputs")
@pytest.mark.parametrize(
    ("taken", "given", "activation"),
    [("uint8", "uint8", None), ("int8", "int8", "softmax"), ("uint8", "float32", "softmax")],
)
def test_quantized_file_from_elsewhere(tmp_path, taken, given, activation):
    import tensorflow as tf

    image = keras.Input((8, 8, 3), 1)
    dense = keras.layers.Dense(4, activation, kernel_initializer="orthogonal")
    model = keras.Model(image, dense(keras.layers.Flatten()(image)))
    pixels = np.random.default_rng(0).integers(0, 256, (99, 8, 8, 3), "uint8")
    scaled = pixels / np.float32(127.5) - 1  # what stock files take
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([image[None]] for image in scaled)
    converter.inference_input_type = tf.as_dtype(taken)
    converter.inference_output_type = tf.as_dtype(given)
    path = tmp_path / "elsewhere.tflite"
    path.write_bytes(converter.convert())
    assert load(path).labels == ("0", "1", "2", "3")
    with zipfile.ZipFile(path, "a") as archive:  # as TFLite Metadata holds them
        archive.writestr("labels.txt", "a\nb\nc\nd\n")
    classifier = load(path)
    assert classifier.labels == tuple("abcd")
    expected = np.concatenate([keras.ops.convert_to_numpy(model(row[None])) for row in scaled[:8]])
    if activation is None:
        np.testing.assert_allclose(classifier.logits(pixels[:8]), expected, atol=0.05)
    else:
        found = classifier.confidence.probabilities(classifier.logits(pixels[:8]))
        np.testing.assert_allclose(found, expected, atol=0.02)


def test_onnx_from_elsewhere(tmp_path):
    for shape, output, axes, reason in (
        (("batch", "h", "w", 3), ("batch", "h"), (0, 1, 2, 3), "not an image classifier"),
        (("batch", 3, 8, 8), ("batch", 3), (0, 1, 2, 3), "1 or 3 channels"),
    ):
        write_onnx(tmp_path / "model.onnx", shape, output, axes)
        with refused(reason):
            load(tmp_path / "model.onnx")
