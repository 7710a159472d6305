import numpy as np
import pytest
from check_layer import redraw_weights, to_numpy

from keras_gmlp.layers import ClassToken, PatchEmbedding, PositionEmbedding


def test_token_order_by_hand():
    # Each pixel holds 10 * row + column; with a kernel of ones a token is the sum of its patch.
    layer = PatchEmbedding(1, patch_size=2)
    image = 10 * np.arange(4)[:, None] + np.arange(6)
    layer.build((1, 4, 6, 1))
    layer.projection.kernel.assign(np.ones((2, 2, 1, 1)))
    tokens = to_numpy(layer(image[None, :, :, None].astype("float32")))
    np.testing.assert_array_equal(tokens.ravel(), [22, 30, 38, 102, 110, 118])


def test_windows_overlap_and_zeros_lie_beyond():
    # A kernel of ones over 4 x 4 pixels, of which the patch is the middle.
    layer = PatchEmbedding(1, patch_size=2, patch_window=4)
    image = (10 * np.arange(4)[:, None] + np.arange(6)).astype("float32")
    layer.build((1, 4, 6, 1))
    layer.projection.kernel.assign(np.ones((4, 4, 1, 1)))
    padded = np.pad(image, 1)
    expected = [padded[r : r + 4, c : c + 4].sum() for r in (0, 2) for c in (0, 2, 4)]
    np.testing.assert_array_equal(to_numpy(layer(image[None, :, :, None])).ravel(), expected)


def test_class_token_comes_first():
    layer = ClassToken()
    inputs = np.random.normal(size=(2, 3, 4)).astype("float32")
    layer.build(inputs.shape)
    np.testing.assert_array_equal(to_numpy(layer(inputs))[:, 0], np.zeros((2, 4)))
    token = redraw_weights(layer)["token"]
    outputs = to_numpy(layer(inputs))
    np.testing.assert_allclose(outputs[:, :1], np.tile(token, (2, 1, 1)), rtol=1e-6)
    np.testing.assert_array_equal(outputs[:, 1:], inputs)


def test_position_embedding_starts_small_and_different_for_each_position():
    layer = PositionEmbedding()
    layer.build((1, 64, 64))
    embedding = to_numpy(layer.embedding)
    # A normal of stddev 0.02, cut at two of them, keeps 0.88 of its spread.
    assert embedding.std() == pytest.approx(0.0176, rel=0.05)
    assert np.abs(embedding).max() <= 0.04
    assert len(np.unique(embedding[0], axis=0)) == 64
