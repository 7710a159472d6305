import keras
import numpy as np
import pytest
from check_layer import draw, redraw_weights, to_numpy
from numpy_reference import dense

from keras_gmlp.layers import (
    GMLPBlock,
    SegmentEmbedding,
    SpanHead,
    SpatialProjection,
    TextMean,
    TokenPositions,
)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("toeplitz_weights", [False, True])
def test_short_texts_use_the_first_rows_and_columns(toeplitz_weights, training):
    layer = SpatialProjection(toeplitz=toeplitz_weights, max_tokens=7)
    x = draw(2, 4, 3)
    layer.build((None, None, 3))
    redraw_weights(layer)
    w = to_numpy(layer.matrices())[0].T
    b = to_numpy(layer.bias)[0]
    expected = np.einsum("ij,bjc->bic", w[:4, :4], x) + b[:4, None]
    outputs = to_numpy(layer(x, training=training))
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("attention_size", [0, 3])
@pytest.mark.parametrize("toeplitz_weights", [False, True])
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


def test_positions_by_hand():
    layer = TokenPositions(4)
    x = draw(2, 3, 5)
    layer.build(x.shape)
    table = redraw_weights(layer)["embedding"][0]
    np.testing.assert_allclose(to_numpy(layer(x)), x + table[:3], rtol=1e-6, atol=1e-6)
    with pytest.raises(ValueError, match="takes at most max_tokens=4 tokens; received 5"):
        layer(draw(2, 5, 5))
    inputs = keras.Input((None, 5))
    model = keras.Model(inputs, layer(inputs))
    with pytest.raises(ValueError, match="takes at most max_tokens=4 tokens; received 5"):
        model(draw(2, 5, 5))


def test_segments_by_hand():
    layer = SegmentEmbedding(separator=3)
    ids = np.array([[2, 9, 3, 8, 3, 0], [2, 9, 8, 8, 8, 3]])
    x = draw(2, 6, 4)
    layer.build(x.shape, ids.shape)
    table = redraw_weights(layer)["embedding"]
    expected = x + table[np.array([[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0]])]
    np.testing.assert_allclose(to_numpy(layer(x, ids)), expected, rtol=1e-6, atol=1e-6)


def test_spans_lie_in_the_text_or_at_its_beginning():
    layer = SpanHead(separator=3)
    ids = np.array([[2, 9, 3, 8, 7, 3, 0, 0]])
    x = draw(1, 8, 4)
    layer.build(x.shape, ids.shape)
    weights = redraw_weights(layer)
    expected = dense(x, weights, "dense")[0].T
    logits = to_numpy(layer(x, ids))[0]
    allowed = [0, 3, 4]
    np.testing.assert_allclose(logits[:, allowed], expected[:, allowed], rtol=1e-5, atol=1e-5)
    assert (np.delete(logits, allowed, axis=1) < -1e4).all()


def test_mean_of_texts_by_hand():
    x, ids = draw(3, 4, 5), np.array([[2, 9, 3, 0], [2, 7, 8, 3], [0, 0, 0, 0]])
    found = to_numpy(TextMean()(x, ids))
    np.testing.assert_allclose(found[0], x[0, :3].mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], x[1].mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[2], np.zeros(5))  # no text at all
