"""What is computed otherwise for 8-bit integers: the same numbers, and fewer of them lost."""

import keras
import numpy as np
import pytest
from check_layer import to_numpy
from random_models import random_model

from keras_gmlp.export import quantization
from keras_gmlp.export.quantization import (
    EnlargedTokensBlock,
    prepare_for_int8,
)
from keras_gmlp.export.writing import export
from keras_gmlp.layers import ExternalAttention
from keras_gmlp.weights.loading import load

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="the converter is TensorFlow's"
)
CALIBRATION = np.random.default_rng(0).integers(0, 256, (30, 16, 16, 3), "uint8")


def run_integers(model, images, folder):
    """Returns the logits of a model's file of integers."""
    path = export(model, folder, ["tflite_int8"], calibration=images)["tflite_int8"]
    return load(path).logits(images)


def test_norm_in_integers_holds_small_channels_next_to_an_outlier(tmp_path):
    """Some tokens have one large channel, some have all of 5/127 of it: squares of 1/645."""
    image = keras.Input((16, 16, 3))
    tokens = keras.layers.Reshape((4, 192))(keras.layers.Rescaling(1 / 128, -1)(image))
    model = keras.Model(image, keras.layers.Flatten()(keras.layers.LayerNormalization()(tokens)))
    rng = np.random.default_rng(0)
    small = 5 * rng.choice([-1, 1], (50, 4, 192))
    large = 127 * np.eye(192)[rng.integers(0, 192, (50, 4))]
    kind = rng.integers(0, 2, (50, 4, 1))
    images = (128 + np.where(kind, large, small)).reshape(50, 16, 16, 3).astype("uint8")
    expected = to_numpy(model(images))
    small = np.broadcast_to(kind == 0, (50, 4, 192)).reshape(50, 768)
    found = run_integers(model, images, tmp_path)
    assert np.abs(found - expected)[small].mean() < 0.05  # the norm's outputs there are 1 and -1


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
    expected = to_numpy(model(images))
    found = run_integers(model, images, tmp_path)
    assert np.abs(found - expected).mean() < 0.02 * expected.std()


def with_small_tokens(family):
    """A model whose class tokens are a sixth of what the other tokens are."""
    model = random_model(family, class_token=True, depth=1)
    for layer in model.layers:
        if layer.name in ("class_token", "distillation_token"):
            layer.token.assign(layer.token / 6)
        if layer.name == "position":
            embedding = layer.embedding.numpy()
            embedding[:, :2] /= 6
            layer.embedding.assign(embedding)
        if layer.name == "block_0":
            layer.attention.set_weights([w / 6 for w in layer.attention.get_weights()])
    return model


@pytest.mark.parametrize("family", ["vit", "deit", "eamlp"])
def test_enlarged_class_tokens_change_nothing(family):
    model = with_small_tokens(family)
    copy = prepare_for_int8(model, CALIBRATION)
    assert isinstance(copy.get_layer("block_0"), EnlargedTokensBlock)
    before, after = (m.get_layer("class_token").token.numpy() for m in (model, copy))
    gains = after / before
    assert gains.min() > 2
    np.testing.assert_allclose(gains, gains[0, 0, 0], rtol=1e-5)
    expected = to_numpy(model(CALIBRATION))
    np.testing.assert_allclose(to_numpy(copy(CALIBRATION)), expected, atol=1e-3)


@pytest.mark.parametrize("scale", [1, 1 / 1000])  # large enough; as small as epsilon
def test_class_tokens_that_stay(scale):
    model = random_model("vit", depth=1)
    for name in ("class_token", "position"):
        weights = model.get_layer(name).get_weights()
        model.get_layer(name).set_weights([w * scale for w in weights])
    copy = prepare_for_int8(model, CALIBRATION)
    assert not isinstance(copy.get_layer("block_0"), EnlargedTokensBlock)
    tokens = [m.get_layer("class_token").token.numpy() for m in (model, copy)]
    np.testing.assert_array_equal(*tokens)


def test_small_class_token_in_integers(tmp_path, monkeypatch):
    model = with_small_tokens("vit")
    expected = to_numpy(model(CALIBRATION))

    def error():
        return np.sqrt(np.mean((run_integers(model, CALIBRATION, tmp_path) - expected) ** 2))

    enlarged = error()
    monkeypatch.setattr(quantization, "measure_gains", lambda *_: (None, None))
    assert enlarged < error() / 1.5
