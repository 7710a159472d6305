import keras
import numpy as np
import pytest
from check_layer import draw, redraw_weights, to_numpy

from keras_gmlp.layers import GMLPBlock, SpatialProjection


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


@pytest.mark.once
@pytest.mark.parametrize(("toeplitz_weights", "attention_size"), [(False, 0), (True, 3)])
def test_padded_texts_equal_short_ones(toeplitz_weights, attention_size):
    layer = GMLPBlock(14, toeplitz=toeplitz_weights, attention_size=attention_size, max_tokens=9)
    inputs = keras.Input((None, 6))
    model = keras.Model(inputs, layer(inputs))
    redraw_weights(layer, stddev=0.3)
    x = draw(3, 9, 6)
    mask = np.broadcast_to(np.arange(9) < 4, (3, 9))
    np.testing.assert_allclose(
        to_numpy(layer(x, mask=mask))[:, :4], to_numpy(model(x[:, :4])), rtol=1e-6, atol=1e-6
    )
