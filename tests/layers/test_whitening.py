import keras
import numpy as np
import pytest
from check_layer import to_numpy

from keras_gmlp.layers import WhiteningConvolution


def images(count=40, size=9, seed=0):
    """Smooth images with correlated channels, as photographs have them."""
    noise = np.random.default_rng(seed).normal(size=(count, size + 2, size + 2, 3))
    smooth = sum(noise[:, i : i + size, j : j + size] for i in range(3) for j in range(3))
    return (smooth @ [[1, 0.8, 0.7], [0, 0.5, 0.3], [0, 0, 0.4]] + 0.3).astype("float32")


def outputs_of(layer, batch):
    """The outputs at all places as rows, float64."""
    outputs = to_numpy(layer(batch)).astype("float64")
    return outputs.reshape(-1, outputs.shape[-1])


@pytest.mark.once
def test_whitened_patches_have_the_identity_as_covariance():
    layer = WhiteningConvolution(2, epsilon=0)
    layer.adapt([images()])
    assert layer.kernel.shape == (2, 2, 3, 24)
    found = outputs_of(layer, images())
    np.testing.assert_allclose(np.cov(found[:, :12].T, bias=True), np.eye(12), atol=2e-4)
    np.testing.assert_allclose(found[:, 12:], -found[:, :12], atol=1e-5)


@pytest.mark.once
def test_epsilon_lowers_directions_of_little_variance():
    layer = WhiteningConvolution(2, epsilon=0.5)
    layer.adapt([images()])
    patches = [images()[:, i : i + 8, j : j + 8].reshape(-1, 3) for i in (0, 1) for j in (0, 1)]
    variances = np.linalg.eigvalsh(np.cov(np.concatenate(patches, axis=1).T, bias=True))[::-1]
    found = np.cov(outputs_of(layer, images())[:, :12].T, bias=True)
    np.testing.assert_allclose(found, np.diag(variances / (variances + 0.5)), atol=2e-4)


@pytest.mark.once
def test_kernel_does_not_depend_on_batches():
    whole, parts = WhiteningConvolution(3), WhiteningConvolution(3)
    whole.adapt([images()])
    parts.adapt(iter([images()[:7], images()[7:]]))
    assert whole.adapted
    np.testing.assert_allclose(to_numpy(parts.kernel), to_numpy(whole.kernel), rtol=1e-4, atol=1e-5)


def test_kernel_stays_and_bias_trains_also_after_loading(tmp_path):
    model = keras.Sequential([keras.Input((9, 9, 3)), WhiteningConvolution(2, name="white")])
    assert not model.get_layer("white").adapted
    model.get_layer("white").adapt([images()])
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    layer = loaded.get_layer("white")
    assert layer.adapted
    kernel = to_numpy(layer.kernel).copy()
    loaded.compile("sgd", loss="mse")
    loaded.fit(images(), np.ones((40, 8, 8, 24)), verbose=0)
    np.testing.assert_array_equal(to_numpy(layer.kernel), kernel)
    assert (to_numpy(layer.bias) != 0).all()
    assert [w.path for w in loaded.trainable_weights] == ["white/bias"]
