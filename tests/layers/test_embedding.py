import keras
import numpy as np
import pytest
from check_layer import check_layer, redraw_weights, to_numpy
from numpy_reference import convolution, gelu, layer_norm, patch_embedding

from keras_gmlp.layers import ClassToken, ConvolutionalStem, PatchEmbedding, PositionEmbedding


@pytest.mark.parametrize(
    ("layer_class", "arguments", "input_shape"),
    [
        (PatchEmbedding, {"dim": 5, "patch_size": 2}, (3, 4, 6, 3)),
        (PatchEmbedding, {"dim": 5, "patch_size": 2, "patch_window": 4}, (3, 4, 6, 3)),
        (ConvolutionalStem, {"dim": 6, "patch_size": 4}, (3, 4, 8, 3)),
        (ClassToken, {}, (3, 4, 6)),
        (PositionEmbedding, {}, (3, 4, 6)),
        (PositionEmbedding, {"initializer": "zeros"}, (3, 4, 6)),
    ],
)
def test_contract(layer_class, arguments, input_shape):
    check_layer(layer_class, arguments, input_shape)


def test_patches_are_projected_row_by_row():
    layer = PatchEmbedding(5, patch_size=2)
    images = np.random.normal(size=(2, 4, 6, 3))
    layer.build(images.shape)
    weights = redraw_weights(layer)
    expected = patch_embedding(images, weights, patch_size=2)
    np.testing.assert_allclose(to_numpy(layer(images)), expected, rtol=1e-5, atol=1e-5)


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


@pytest.mark.parametrize("patch_window", [1, 5, 2])
def test_window_must_fit_the_patch(patch_window):
    with pytest.raises(ValueError, match="patch_window must be patch_size 4, or larger by an even"):
        PatchEmbedding(1, patch_size=4, patch_window=patch_window)


# At unit scale an epsilon of 1e-5 and one of 1e-6 agree to five digits; at 0.003 they do not.
@pytest.mark.parametrize("scale", [1.0, 0.003])
def test_stem_of_convolutions_halves_the_image_with_each(scale):
    layer = ConvolutionalStem(6, patch_size=4)
    images = (scale * np.random.normal(size=(2, 8, 12, 3))).astype("float32")
    layer.build(images.shape)
    weights = redraw_weights(layer)
    assert weights["convolution_0/kernel"].shape == (3, 3, 3, 3)
    x = convolution(images, weights["convolution_0/kernel"], weights["convolution_0/bias"], 2)
    x = gelu(layer_norm(x, weights, "norm_0", epsilon=1e-6))
    x = convolution(x, weights["convolution_1/kernel"], weights["convolution_1/bias"], 2)
    np.testing.assert_allclose(
        to_numpy(layer(images)), x.reshape(2, 2 * 3, 6), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("patch_size", [0, 1, 3, 12])
def test_stem_of_convolutions_needs_a_power_of_two(patch_size):
    with pytest.raises(ValueError, match=rf"must be 2, 4, 8, 16, \.\.\.; received {patch_size}"):
        ConvolutionalStem(6, patch_size)


def test_class_token_comes_first():
    layer = ClassToken()
    inputs = np.random.normal(size=(2, 3, 4)).astype("float32")
    layer.build(inputs.shape)
    np.testing.assert_array_equal(to_numpy(layer(inputs))[:, 0], np.zeros((2, 4)))
    token = redraw_weights(layer)["token"]
    outputs = to_numpy(layer(inputs))
    np.testing.assert_allclose(outputs[:, :1], np.tile(token, (2, 1, 1)), rtol=1e-6)
    np.testing.assert_array_equal(outputs[:, 1:], inputs)


def test_position_embedding_is_added_to_each_sample():
    layer = PositionEmbedding()
    inputs = np.random.normal(size=(2, 3, 4)).astype("float32")
    layer.build(inputs.shape)
    embedding = redraw_weights(layer)["embedding"]
    assert embedding.shape == (1, 3, 4)
    np.testing.assert_allclose(to_numpy(layer(inputs)), inputs + embedding, rtol=1e-5, atol=1e-6)


def test_position_embedding_starts_small_and_different_for_each_position():
    layer = PositionEmbedding()
    layer.build((1, 64, 64))
    embedding = to_numpy(layer.embedding)
    # A normal of stddev 0.02, cut at two of them, keeps 0.88 of its spread.
    assert embedding.std() == pytest.approx(0.0176, rel=0.05)
    assert np.abs(embedding).max() <= 0.04
    assert len(np.unique(embedding[0], axis=0)) == 64


@pytest.mark.parametrize("stem", [PatchEmbedding, ConvolutionalStem])
@pytest.mark.parametrize("shape", [(None, None, 3), (4, None, 3), (4, 4)])
def test_stems_need_images_of_a_fixed_size(stem, shape):
    with pytest.raises(ValueError, match=r"expects images of a fixed size.*received \(None, "):
        stem(5, patch_size=2)(keras.Input(shape))


@pytest.mark.parametrize("stem", [PatchEmbedding, ConvolutionalStem])
@pytest.mark.parametrize(("height", "width"), [(4, 5), (5, 4)])
def test_patches_must_divide_both_sides(stem, height, width):
    message = rf"cannot cut {height}x{width} pixels into patches of 2x2"
    with pytest.raises(ValueError, match=message):
        stem(5, patch_size=2)(keras.Input((height, width, 3)))


def test_position_embedding_needs_a_fixed_number_of_tokens():
    for shape, message in (
        ((None, 6), r"their number must be fixed.*received \(None, "),
        ((6,), "expected ndim=3, found ndim=2"),
        ((2, 3, 4), "expected ndim=3, found ndim=4"),
    ):
        with pytest.raises(ValueError, match=message):
            PositionEmbedding()(keras.Input(shape))
