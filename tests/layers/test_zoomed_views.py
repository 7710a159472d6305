import keras
import numpy as np
import pytest
from check_layer import redraw_weights, to_numpy

import keras_gmlp
from keras_gmlp.layers.zoomed_views import AverageViews, ZoomedViews
from keras_gmlp.models.structure import find_zooms, token_grid
from keras_gmlp.weights import transfer

TINY = {"dim": 8, "depth": 2, "hidden_dim": 12, "patch_size": 4, "classes": 3, "toeplitz": True}
ZOOMS = (1, 0.75, 0.5)


def draw(side, batch=2):
    return np.random.default_rng(0).uniform(0, 255, (batch, side, side, 3)).astype("float32")


def test_views_of_a_small_image():
    image = np.arange(32, dtype="float32").reshape(1, 4, 4, 2)  # two channels
    found = to_numpy(ZoomedViews((1, 0.5))(image))
    assert found.shape == (2, 2, 2, 2)
    np.testing.assert_array_equal(found[0, :, :, 0], [[5, 9], [21, 25]])  # means of 0 2 8 10, ...
    np.testing.assert_array_equal(found[1], image[0, 1:3, 1:3])
    np.testing.assert_array_equal(to_numpy(ZoomedViews((1, 0.5))(image, training=True)), found[:1])


def test_sides_that_do_not_divide_are_interpolated():
    ramp = np.broadcast_to(np.arange(8, dtype="float32")[:, None, None], (1, 8, 8, 1))
    found = to_numpy(ZoomedViews(ZOOMS)(ramp))
    assert found.shape == (3, 4, 4, 1)
    # The middle 6 rows, 1 to 6, as 4: centres at 0.25, 1.75, 3.25 and 4.75 from the first.
    np.testing.assert_allclose(found[1, :, 0, 0], [1.25, 2.75, 4.25, 5.75], rtol=1e-6)


def test_views_of_each_image_are_averaged():
    vectors = np.arange(12, dtype="float32").reshape(6, 2)
    np.testing.assert_array_equal(to_numpy(AverageViews(3)(vectors)), [[2, 3], [8, 9]])
    np.testing.assert_array_equal(to_numpy(AverageViews(3)(vectors, training=True)), vectors)


@pytest.mark.once
def test_features_are_the_mean_over_views(tmp_path):
    plain = keras_gmlp.gMLP(input_shape=(8, 8, 3), **TINY)
    redraw_weights(plain)
    model = keras_gmlp.gMLP(input_shape=(16, 16, 3), zooms=ZOOMS, **TINY)
    report = transfer(plain, model)
    assert (report.resized, report.fresh) == ((), ())
    assert (find_zooms(model), token_grid(model)) == (ZOOMS, (2, 2))
    images = draw(16)
    views = to_numpy(ZoomedViews(ZOOMS)(images)).reshape(2, 3, 8, 8, 3)
    each = [to_numpy(plain(views[:, i])) for i in range(3)]
    logits = model.predict(images, verbose=0)
    np.testing.assert_allclose(logits, np.mean(each, axis=0), rtol=1e-4, atol=1e-5)
    in_training = to_numpy(keras.ops.stop_gradient(model(images, training=True)))
    np.testing.assert_allclose(in_training, each[0], rtol=1e-4, atol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    np.testing.assert_array_equal(to_numpy(loaded(images)), to_numpy(model(images)))
