"""A family from outside: a block class and one call, and everything else works with it."""

import keras
import numpy as np
import pytest
from check_layer import to_numpy
from keras import ops
from PIL import Image

import keras_gmlp
from keras_gmlp.analysis import plots
from keras_gmlp.analysis.tokens import filters_make_tokens, spatial_filters
from keras_gmlp.export.writing import export
from keras_gmlp.layers import Block, ResidualBlock, make_dense, mask_tokens
from keras_gmlp.weights.loading import load
from keras_gmlp.weights.resampling import transfer


@keras.saving.register_keras_serializable("toy")
class GatedTokens(ResidualBlock):
    """Mixes tokens by one dense layer and gates the tokens with the result."""

    token_axes = {"spatial/kernel": ("reads", "writes"), "spatial/bias": ("writes",)}  # noqa: RUF012

    def build_mixer(self, input_shape):
        batch, tokens, dim = input_shape
        self.spatial = make_dense(self, tokens, "spatial")
        self.spatial.build((batch, dim, tokens))

    def mix_tokens(self, x, mask=None):
        gate = self.spatial(ops.transpose(mask_tokens(x, mask), (0, 2, 1)))
        return x * ops.transpose(gate, (0, 2, 1))


def build(size=16, **overrides):
    sizes = {"dim": 16, "depth": 2, "patch_size": 4, "classes": 3, **overrides}
    return keras_gmlp.image_classifier(
        GatedTokens, {"hidden_dim": 32}, input_shape=(size, size, 3), **sizes, name="toy"
    )


def stripes(count):
    """Noisy images with a bright bar at the top, in the middle or at the bottom: 0, 1, 2."""
    rng = np.random.default_rng(0)
    labels = np.arange(count) % 3
    images = rng.integers(0, 60, (count, 16, 16, 3))
    for image, label in zip(images, labels, strict=True):
        image[5 * label : 5 * label + 5] += 150
    return images.astype("uint8"), labels


@pytest.fixture(scope="module")
def trained():
    keras.utils.set_random_seed(0)
    model = build(stochastic_depth=0.1)
    model.compile(keras.optimizers.AdamW(5e-3), model.loss, metrics=["accuracy"])
    images, labels = stripes(96)
    model.fit(images, labels, batch_size=32, epochs=20, verbose=0)
    return model


def accuracy(model, images, labels):
    return np.mean(to_numpy(model(images)).argmax(axis=-1) == labels)


def test_trains_saves_and_loads(trained, tmp_path):
    images, labels = stripes(96)
    assert accuracy(trained, images, labels) > 0.95
    trained.save(tmp_path / "toy.keras")
    loaded = keras_gmlp.load_model(tmp_path / "toy.keras")
    np.testing.assert_array_equal(to_numpy(loaded(images)), to_numpy(trained(images)))


def test_resizes_to_a_new_input_size(trained):
    size = 24
    larger, fresh = (build(size, patch_window=size // 4) for _ in range(2))
    report = transfer(trained, larger)
    over_tokens = [path for path in report.resized if not path.startswith("stem")]
    assert sorted(over_tokens) == [
        f"block_{i}/spatial/{name}" for i in (0, 1) for name in ("bias", "kernel")
    ]
    small, labels = stripes(96)
    enlarged = [Image.fromarray(image).resize((size, size), Image.BICUBIC) for image in small]
    images = np.stack([np.asarray(image) for image in enlarged])
    for theirs, ours in zip(larger.weights, fresh.weights, strict=True):
        if "spatial" not in ours.path:  # all but the weights over tokens
            ours.assign(theirs)
    kept, lost = accuracy(larger, images, labels), accuracy(fresh, images, labels)
    assert kept > 0.9
    assert lost < kept - 0.2


def test_returns_and_draws_its_spatial_filters(trained, tmp_path):
    filters = spatial_filters(trained)
    block = trained.get_layer("block_1")
    assert list(filters) == ["block_0", "block_1"]
    assert filters_make_tokens(block)
    kernel = to_numpy(block.spatial.kernel)
    np.testing.assert_array_equal(filters["block_1"].reshape(16, 16).T, kernel)
    plots.draw_spatial_filters(trained, tmp_path / "filters.png")
    assert (tmp_path / "filters.png").stat().st_size > 1000


class WithoutMask(Block):
    def call(self, inputs, training=None):
        return inputs


def test_block_that_takes_no_mask_does_not_claim_to():
    assert GatedTokens(16).supports_masking
    assert not WithoutMask(16).supports_masking


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow converts to TFLite")
def test_exports_to_tflite_and_quantizes(trained, tmp_path):
    images, labels = stripes(48)
    formats = ["tflite", "tflite_int8"]  # the first has 8-bit weights
    paths = export(trained, tmp_path, formats, calibration=images)
    expected = to_numpy(trained(images))
    for name, tolerance in zip(formats, (0.05, 0.15), strict=True):
        logits = load(paths[name]).logits(images)
        assert np.abs(logits - expected).max() < tolerance * np.ptp(expected), name
        assert np.mean(logits.argmax(axis=-1) == labels) > 0.95
