import numpy as np
import pytest
from check_layer import to_numpy
from numpy_reference import convolution
from random_models import pixels, redraw_all

from keras_gmlp import ResNet

SMALL = {"depth": 14, "width": 4, "input_shape": (8, 8, 3), "classes": 3}


def normalized_convolution(x, weights, name, stride=1):
    x = convolution(x, weights[f"{name}_convolution/kernel"], stride=stride)
    norm = {key: weights[f"{name}_norm/{key}"] for key in ("gamma", "beta")}
    mean, variance = (weights[f"{name}_norm/moving_{key}"] for key in ("mean", "variance"))
    return (x - mean) / np.sqrt(variance + 1e-5) * norm["gamma"] + norm["beta"]


def reference(images, weights):
    """He et al. 2015, section 4.2, option A: 2 blocks a stage."""
    x = np.maximum(normalized_convolution(images / 127.5 - 1, weights, "stem"), 0)
    for block in range(6):
        stride = 2 if block in (2, 4) else 1
        y = np.maximum(normalized_convolution(x, weights, f"block_{block}_1", stride), 0)
        y = normalized_convolution(y, weights, f"block_{block}_2")
        added = y.shape[-1] - x.shape[-1]
        x = np.pad(x[:, ::stride, ::stride], [(0, 0)] * 3 + [(added // 2, added - added // 2)])
        x = np.maximum(x + y, 0)
    return x.mean(axis=(1, 2)) @ weights["head/kernel"] + weights["head/bias"]


def test_logits():
    model = ResNet(**SMALL)
    weights = redraw_all(model)
    images = pixels(4, 8, 8, 3)
    expected = reference(images.astype("float64"), weights)
    assert np.abs(expected).max() > 0.5
    np.testing.assert_allclose(to_numpy(model(images)), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.once
def test_stochastic_depth_grows_linearly_over_depth():
    model = ResNet(**SMALL, stochastic_depth=0.5)
    rates = [model.get_layer(f"block_{i}_drop_path").rate for i in range(6)]
    assert rates == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])


@pytest.mark.once
def test_depth_must_be_6n_plus_2():
    for depth in (2, 18, 57):
        with pytest.raises(ValueError, match="depth"):
            ResNet(depth)
