"""The memory order of images in training on PyTorch."""

import keras
import numpy as np
import pytest
from check_layer import to_numpy
from keras import ops

from keras_gmlp.models.torch_convolutions import channels_stay_last

IMAGES = np.random.default_rng(0).normal(size=(2, 6, 5, 3)).astype("float32")
KERNEL = np.random.default_rng(1).normal(size=(3, 3, 3, 4)).astype("float32")


def outputs():
    x = ops.convert_to_tensor(IMAGES)
    convolved = ops.conv(x, KERNEL, 1, "same", "channels_last")
    pooled = ops.max_pool(convolved, 2, 2, "valid", "channels_last")
    return [convolved, pooled, ops.average_pool(x, 2, 2, "same", "channels_last")]


def test_results_are_the_same():
    expected = list(map(to_numpy, outputs()))
    with channels_stay_last():
        found = list(map(to_numpy, outputs()))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "torch", reason="the order of PyTorch")
def test_nothing_is_copied_only_inside_the_context():
    with channels_stay_last():
        assert all(output.is_contiguous() for output in outputs())
    assert not outputs()[1].is_contiguous()
    with pytest.raises(KeyError), channels_stay_last():
        raise KeyError
    assert not outputs()[1].is_contiguous()
