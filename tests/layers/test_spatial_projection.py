import numpy as np
import pytest
import scipy.linalg
from check_layer import draw, redraw_weights, to_numpy
from keras import ops

from keras_gmlp.layers import SpatialProjection
from keras_gmlp.layers.spatial_projection import toeplitz_matrices

FORMS = [
    {"heads": 2},
    {"toeplitz": True},
    {"heads": 2, "toeplitz": True},
    {"heads": 3, "toeplitz": True, "grid": (3, 4)},
]


@pytest.mark.once
def test_sequence_weights_are_a_toeplitz_matrix():
    offsets = draw(3, 9)
    matrices = to_numpy(toeplitz_matrices(ops.convert_to_tensor(offsets)))
    for matrix, w in zip(matrices, offsets, strict=True):
        # W[i, j] = w[i - j]: the first column holds offsets 0, 1, ..., the first row 0, -1, ...
        np.testing.assert_array_equal(matrix.T, scipy.linalg.toeplitz(w[4:], w[4::-1]))


@pytest.mark.once
def test_grid_weights_follow_the_offset_between_two_places():
    rows, columns = 3, 4
    offsets = draw(2, 2 * rows - 1, 2 * columns - 1)
    matrices = to_numpy(toeplitz_matrices(ops.convert_to_tensor(offsets)))
    assert matrices.shape == (2, 12, 12)
    for head, i, j in np.ndindex(2, 12, 12):
        (yi, xi), (yj, xj) = divmod(i, columns), divmod(j, columns)
        expected = offsets[head, yi - yj + rows - 1, xi - xj + columns - 1]
        assert matrices[head, j, i] == expected


@pytest.mark.parametrize("arguments", FORMS)
def test_numbers(arguments):
    layer = SpatialProjection(**arguments)
    inputs = draw(2, 12, 6)
    layer.build(inputs.shape)
    weights = redraw_weights(layer)
    w = to_numpy(layer.matrices()).astype("float64")
    size = 6 // layer.heads
    expected = np.concatenate(
        [
            np.einsum("ji,bjc->bic", w[h], inputs[:, :, h * size : (h + 1) * size])
            + weights["bias"][h][:, None]
            for h in range(layer.heads)
        ],
        axis=-1,
    )
    for training in (False, True):  # two forms
        outputs = to_numpy(layer(inputs, training=training))
        np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("toeplitz_weights", [False, True])
def test_short_texts_use_the_first_rows_and_columns(toeplitz_weights):
    layer = SpatialProjection(toeplitz=toeplitz_weights, max_tokens=7)
    x = draw(2, 4, 3)
    layer.build((None, None, 3))
    redraw_weights(layer)
    w = to_numpy(layer.matrices())[0].T
    b = to_numpy(layer.bias)[0]
    expected = np.einsum("ij,bjc->bic", w[:4, :4], x) + b[:4, None]
    for training in (False, True):
        outputs = to_numpy(layer(x, training=training))
        np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-5)
