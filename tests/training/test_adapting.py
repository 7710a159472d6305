"""Layers whose weights follow from the data: when they are set, and that a run resumes."""

import keras
import numpy as np
import pytest
from check_layer import to_numpy
from tiny_run import RECIPE, Kill, make_data

from keras_gmlp import ConvNet
from keras_gmlp.layers import WhiteningConvolution
from keras_gmlp.training.train import train

pytestmark = pytest.mark.eager

SIZES = {"widths": (6,), "input_shape": (8, 8, 3), "classes": 2}


def small_model():
    keras.utils.set_random_seed(0)
    return ConvNet(**SIZES)


def expected_kernel(images):
    layer = WhiteningConvolution(2)
    layer.adapt([images / 127.5 - 1])
    return to_numpy(layer.kernel)


@pytest.mark.once
def test_run_sets_the_layer_once(tmp_path, monkeypatch):
    data = make_data()
    expected = expected_kernel(data.train.arrays()[0])

    class KillInSecondEpoch(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                raise Kill

    with pytest.raises(Kill):
        train(small_model(), data, RECIPE, tmp_path, verbose=0, callbacks=[KillInSecondEpoch()])
    monkeypatch.delattr(WhiteningConvolution, "adapt")  # the checkpoint holds the kernel
    resumed = small_model()
    train(resumed, data, RECIPE, tmp_path, verbose=0)
    kernel = to_numpy(resumed.get_layer("stem").kernel)
    np.testing.assert_allclose(kernel, expected, rtol=1e-3, atol=1e-4)
