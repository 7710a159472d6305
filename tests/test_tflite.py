"""The converter's own part: integers that keep their precision, batches, what it refuses."""

import keras
import numpy as np
import pytest
from random_models import random_model

from keras_gmlp import inference
from keras_gmlp.export import export
from keras_gmlp.layers import ExternalAttention
from keras_gmlp.tflite import attend, convert, normalize

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="the converter is TensorFlow's"
)
CALIBRATION = np.random.default_rng(0).integers(0, 256, (20, 16, 16, 3), "uint8")


def test_norm_is_the_norm():
    rng = np.random.default_rng(0)
    norm = keras.layers.LayerNormalization(epsilon=1e-5)
    norm.build((None, 3, 8))
    norm.set_weights([rng.normal(size=8), rng.normal(size=8)])
    inputs = rng.normal(3, 2, (2, 3, 8)).astype("float32")
    centred = inputs - inputs.mean(-1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    expected = expected * norm.gamma.numpy() + norm.beta.numpy()
    np.testing.assert_allclose(normalize(norm, inputs), expected, atol=1e-5)


def test_norm_in_integers_holds_small_channels_beside_an_outlier(tmp_path):
    """Some tokens have one large channel, some have all of 5/127 of it: squares of 1/645."""
    image = keras.Input((16, 16, 3))
    tokens = keras.layers.Reshape((4, 192))(keras.layers.Rescaling(1 / 128, -1)(image))
    model = keras.Model(image, keras.layers.Flatten()(keras.layers.LayerNormalization()(tokens)))
    rng = np.random.default_rng(0)
    small = 5 * rng.choice([-1, 1], (50, 4, 192))
    large = 127 * np.eye(192)[rng.integers(0, 192, (50, 4))]
    kind = rng.integers(0, 2, (50, 4, 1))
    images = (128 + np.where(kind, large, small)).reshape(50, 16, 16, 3).astype("uint8")
    expected = model.predict(images, verbose=0)
    small = np.broadcast_to(kind == 0, (50, 4, 192)).reshape(50, 768)

    (tmp_path / "norm.tflite").write_bytes(convert(model, "int8", images))
    found = inference.load(tmp_path / "norm.tflite").logits(images)
    assert np.abs(found - expected)[small].mean() < 0.05  # the norm's outputs there are 1 and -1


def test_norm_that_has_no_such_form():
    image = keras.Input((8, 8, 3))
    norm = keras.layers.LayerNormalization(scale=False, name="odd")
    model = keras.Model(image, keras.layers.Flatten()(norm(image)))
    with pytest.raises(ValueError, match=r"odd.*with scale and shift"):
        convert(model, "int8", CALIBRATION[:, :8, :8])


def test_attention_is_external_attention():
    scores = np.random.default_rng(0).normal(0, 4, (2, 5, 3, 7)).astype("float32")
    expected = ExternalAttention(3, slots=7).attend(scores)
    np.testing.assert_allclose(attend(scores), expected, rtol=1e-4, atol=1e-6)


def test_attention_in_integers_divides_by_no_sum_that_rounds_to_nothing(tmp_path):
    """One token of 64 takes nearly all of each slot's softmax; the others' sums are tiny."""
    image = keras.Input((16, 16, 3))
    tokens = keras.layers.Reshape((64, 12))(keras.layers.Rescaling(1 / 255)(image))
    attention = ExternalAttention(1, slots=4, expansion=1, name="attention")
    model = keras.Model(image, keras.layers.Flatten()(attention(tokens)))
    rng = np.random.default_rng(0)
    attention.query.kernel.assign(np.eye(12))
    attention.keys.kernel.assign(np.ones((12, 4)))
    attention.values.kernel.assign(rng.normal(size=(4, 12)))
    images = rng.integers(0, 20, (50, 16, 16, 3)).astype("uint8")
    images.reshape(50, 64, 12)[:, 7] = 255
    expected = model.predict(images, verbose=0)

    (tmp_path / "model.tflite").write_bytes(convert(model, "int8", images))
    found = inference.load(tmp_path / "model.tflite").logits(images)
    assert np.abs(found - expected).mean() < 0.02 * expected.std()


def test_unknown_precision():
    with pytest.raises(ValueError, match=r"float32, float16, dynamic, int8; received 'int16'"):
        convert(random_model("gmlp"), "int16")


def test_a_pixel_is_its_own_integer(tmp_path):
    from ai_edge_litert.interpreter import Interpreter

    dark = CALIBRATION // 2  # no pixel above 127
    interpreter = Interpreter(model_content=convert(random_model("gmlp"), "int8", dark))
    (image,) = interpreter.get_input_details()
    assert image["dtype"] == np.uint8
    assert image["quantization"] == (1.0, 0)


def test_batches(tmp_path):
    model = random_model("gmlp")
    images = np.random.default_rng(1).integers(0, 256, (10, 16, 16, 3), "uint8")
    for name in ("tflite_float32", "tflite_int8"):
        several, one = (
            export(model, tmp_path, [name], calibration=CALIBRATION, tflite_batch=batch)[name]
            for batch in (4, 1)
        )
        assert several.name.endswith("_batch4.tflite")
        # The last four are two images and what fills the batch.
        found, expected = (inference.load(path).logits(images) for path in (several, one))
        assert found.shape == (10, 5)
        np.testing.assert_allclose(found, expected, atol=1e-4 if name == "tflite_float32" else 0.2)


@pytest.mark.parametrize(
    ("calibration", "message"),
    [
        (None, "tflite_int8 lacks images"),
        (CALIBRATION[:0], "some hundreds"),
        (CALIBRATION[:, :8], r"shape \(16, 16, 3\); received uint8 of shape \(8, 16, 3\)"),
        (CALIBRATION / 255, "received float64"),
    ],
)
def test_calibration_is_checked(tmp_path, calibration, message):
    with pytest.raises(ValueError, match=message):
        export(random_model("gmlp"), tmp_path, ["tflite_int8"], calibration=calibration)
