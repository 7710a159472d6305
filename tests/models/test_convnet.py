import math

import keras
import numpy as np
import pytest
from check_layer import to_numpy
from numpy_reference import convolution, gelu
from random_models import pixels, redraw_all

from keras_gmlp import ConvNet
from keras_gmlp.models.convnet import PartialIdentity

SMALL = {"widths": (6, 8), "input_shape": (10, 9, 3), "classes": 3}


def halved(x):
    """The largest of 2 x 2 values; a last odd row or column is left out."""
    rows, columns = x.shape[1] // 2, x.shape[2] // 2
    x = x[:, : 2 * rows, : 2 * columns]
    return x.reshape(len(x), rows, 2, columns, 2, -1).max(axis=(2, 4))


def reference(images, weights, depth=2):
    """Jordan 2024, section 3.1: after each first convolution of a group the pooling.

    A third convolution adds its input to its output.
    """
    x = images / 127.5 - 1
    kernel = np.pad(weights["stem/kernel"], [(1, 0), (1, 0), (0, 0), (0, 0)])
    x = gelu(convolution(x, kernel)[:, :-1, :-1] + weights["stem/bias"])
    for block in range(2 * depth):
        skipped = x if block % depth > 1 else 0
        x = convolution(x, weights[f"block_{block}_convolution/kernel"])
        x = x if block % depth else halved(x)
        mean, variance = (weights[f"block_{block}_norm/moving_{k}"] for k in ("mean", "variance"))
        x = (x - mean) / np.sqrt(variance + 1e-5) + weights[f"block_{block}_norm/beta"]
        x = gelu(x + skipped)
    return x.max(axis=(1, 2)) / 9 @ weights["head/kernel"] + weights["head/bias"]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_logits(depth):
    model = ConvNet(**SMALL, depth=depth)
    weights = redraw_all(model)
    images = pixels(4, 10, 9, 3)
    expected = reference(images.astype("float64"), weights, depth)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(to_numpy(model(images)), expected, rtol=1e-4, atol=1e-5)


def test_sizes_of_airbench94():
    model = ConvNet()
    shapes = [model.get_layer(f"block_{i}_gelu").output.shape[1:] for i in range(6)]
    assert shapes == [(15, 15, 64)] * 2 + [(7, 7, 256)] * 2 + [(3, 3, 256)] * 2
    assert model.get_layer("stem").output.shape[1:] == (31, 31, 24)
    # Convolutions, shifts of the norms, bias of the first layer, head.
    convolutions = 9 * (24 * 64 + 64 * 64 + 64 * 256 + 3 * 256 * 256)
    trained = convolutions + 2 * (64 + 256 + 256) + 24 + 257 * 10
    assert sum(math.prod(w.shape) for w in model.trainable_weights) == trained == 1_971_362
    assert [w.path for w in model.weights if not w.trainable and "norm" not in w.path] == [
        "stem/kernel"
    ]


def test_first_filters_copy_a_channel():
    keras.utils.set_random_seed(0)
    kernel = to_numpy(PartialIdentity()((3, 3, 4, 6), "float32"))
    expected = np.zeros((3, 3, 4, 4))
    expected[1, 1] = np.eye(4)
    np.testing.assert_array_equal(kernel[..., :4], expected)
    rest = kernel[..., 4:]
    assert 0.1 < np.abs(rest).max() <= 1 / 6  # 1 / sqrt(36 inputs)
    assert abs(rest.mean()) < 0.05
    narrowing = to_numpy(PartialIdentity()((1, 1, 3, 2), "float32"))
    np.testing.assert_array_equal(narrowing[0, 0], np.eye(3, 2))


def test_filters_have_length_1_after_a_step():
    model = ConvNet((4, 6), input_shape=(8, 8, 3), classes=2)
    model.compile(keras.optimizers.SGD(10.0), model.loss)
    images = np.random.default_rng(0).uniform(0, 255, (4, 8, 8, 3)).astype("float32")
    model.get_layer("stem").adapt([images / 127.5 - 1])
    layers = [layer for layer in model.layers if isinstance(layer, keras.layers.Conv2D)]
    before = [np.array(to_numpy(layer.kernel)) for layer in layers]
    model.get_layer("head").kernel.assign(np.ones((6, 2)) * [1, -1])  # zeros give no gradient
    model.fit(images, np.array([0, 1, 0, 1]), verbose=0)
    assert len(layers) == 4
    for layer, old in zip(layers, before, strict=True):
        kernel = to_numpy(layer.kernel)
        np.testing.assert_allclose(np.sqrt((kernel**2).sum((0, 1, 2))), 1, rtol=1e-5)
        assert np.abs(kernel - old).max() > 1e-3


def test_first_layer_and_logits_are_float32_under_mixed_precision():
    model = ConvNet(**SMALL, dtype="mixed_bfloat16")
    assert keras.backend.standardize_dtype(model(pixels(4, 10, 9, 3)).dtype) == "float32"
    assert model.get_layer("stem").compute_dtype == "float32"
    assert model.get_layer("block_0_convolution").compute_dtype == "bfloat16"
