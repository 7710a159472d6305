"""The converter's own part: signatures, pixels as they are, what it refuses."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from check_layer import to_numpy
from random_models import random_model

from keras_gmlp import features
from keras_gmlp.analysis.explanation import class_maps
from keras_gmlp.export.tflite import convert
from keras_gmlp.export.writing import export
from keras_gmlp.inference.similarity import find_nearest, make_embedder
from keras_gmlp.utils.card import read_card
from keras_gmlp.weights.loading import load

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="the converter is TensorFlow's"
)
CALIBRATION = np.random.default_rng(0).integers(0, 256, (20, 16, 16, 3), "uint8")


def test_one_signature_and_pixels_that_are_their_own_integers(tmp_path):
    dark = CALIBRATION // 2  # no pixel above 127
    model = random_model("gmlp", depth=1)
    formats = [f"tflite{end}" for end in ("", "_float16", "_float32", "_int8")]
    for name, path in export(model, tmp_path, formats, calibration=dark).items():
        interpreter = Interpreter(str(path))
        found = interpreter.get_signature_list()
        assert found == {"serving_default": {"inputs": ["image"], "outputs": ["logits"]}}
        (image,) = interpreter.get_input_details()
        is_integer = name == "tflite_int8"
        assert image["dtype"] == (np.uint8 if is_integer else np.float32)
        assert not is_integer or image["quantization"] == (1.0, 0)


def test_a_file_of_several_images_at_once(tmp_path):
    model = random_model("gmlp", depth=1)
    images = np.random.default_rng(1).integers(0, 256, (6, 16, 16, 3), "uint8")
    four = [tf.TensorSpec((4, 16, 16, 3), "float32", "image")]
    signatures = {"serving_default": (lambda image: {"logits": model(image)}, four)}
    (tmp_path / "model.tflite").write_bytes(
        convert(model, signatures, "float32", tmp_path / "traced")
    )
    # The last four are two images and what fills the batch.
    found = load(tmp_path / "model.tflite").logits(images)
    np.testing.assert_allclose(found, to_numpy(model(images)), atol=1e-3)


def test_calibration_is_checked(tmp_path):
    model = random_model("gmlp", depth=1)
    with pytest.raises(ValueError, match="float64"):
        export(model, tmp_path, ["tflite_int8"], calibration=CALIBRATION / 255)


@pytest.mark.parametrize(("family", "dim"), [("gmlp", 512), ("deit", 256)])
def test_features_are_a_second_signature(tmp_path, family, dim):
    model = random_model(family, dim=dim, depth=1)
    plain, both = export(model, tmp_path, ["tflite", "features"]).values()
    assert both.stat().st_size < 1.5 * plain.stat().st_size  # the signatures share the weights
    classifier = load(both)
    maps = ["maps"] if family == "gmlp" else []  # deit has class tokens
    interpreter = Interpreter(str(both))
    assert interpreter.get_signature_list() == {
        "serving_default": {"inputs": ["image"], "outputs": ["logits"]},
        "serving_features": {"inputs": ["image"], "outputs": ["features", *maps]},
    }
    # A reader without signatures sees the file of one signature, bit for bit.
    logits = load(plain).logits(CALIBRATION)
    np.testing.assert_array_equal(classifier.logits(CALIBRATION), logits)
    vectors = make_embedder(classifier)(CALIBRATION)
    expected = to_numpy(features(model)(CALIBRATION))
    assert vectors.shape == expected.shape
    assert read_card(both)["features"] == expected.shape[1]
    assert "features" not in read_card(plain)
    if maps:
        assert read_card(both)["maps"] == [4, 4]
        run = interpreter.get_signature_runner("serving_features")
        found = run(image=CALIBRATION[:1].astype("float32"))["maps"][0]
        exact = np.moveaxis(class_maps(model, CALIBRATION[0], range(5)), 0, -1)
        assert np.abs(found - exact).max() < 0.05 * np.ptp(exact)
        bias = np.asarray(model.get_layer("head").bias)
        np.testing.assert_allclose(found.mean(axis=(0, 1)) + bias, logits[0], atol=0.3)
    for found, exact in zip(vectors, expected, strict=True):
        assert find_nearest(found, exact[None], 1)[0][1] > 0.99
