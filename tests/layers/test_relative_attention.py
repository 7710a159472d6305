import keras
import numpy as np
import pytest
from check_layer import draw, redraw_weights, to_numpy
from numpy_reference import softmax

from keras_gmlp.layers import RelativeAttention, RelativePositionBias, TransformerBlock
from keras_gmlp.layers.relative_attention import relative_buckets

every_content = pytest.mark.parametrize("content", [True, False])


def relative_attention(x, weights, heads, content, mask=None):
    """Attention of T5 in loops over heads and pairs of tokens."""
    _, n, dim = x.shape
    size = dim // heads

    def project(name):
        y = x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]
        return y.reshape(len(x), n, heads, size)

    value = project("value")
    scores = np.zeros((len(x), heads, n, n))
    for query in range(n):
        for key in range(n):
            bucket = int(relative_buckets(key - query))
            scores[:, :, query, key] = weights["relative/position_bias"][bucket]
    if content:
        scores += np.einsum("bqhs,bkhs->bhqk", project("query"), project("key")) / np.sqrt(size)
    if mask is not None:
        scores = np.where(mask[:, None, None, :], scores, -1e9)
    mixed = np.einsum("bhqk,bkhs->bqhs", softmax(scores), value).reshape(len(x), n, dim)
    return mixed @ weights["output/kernel"] + weights["output/bias"]


@pytest.mark.once
def test_bias_contract():
    layer = RelativePositionBias(3, buckets=8, max_distance=6)
    restored = RelativePositionBias.from_config(layer.get_config())
    assert restored.get_config() == layer.get_config()
    assert layer.compute_output_shape((None, 5, 4)) == (3, 5, 5)


@every_content
def test_numbers(content):
    layer = RelativeAttention(2, content)
    inputs = draw(4, 7, 6)
    layer.build(inputs.shape)
    weights = redraw_weights(layer)
    mask = np.arange(7) < np.array([1, 3, 6, 7])[:, None]
    for m in (None, mask):
        expected = relative_attention(inputs, weights, 2, content, m)
        outputs = to_numpy(layer(inputs, mask=m))
        np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.once
def test_buckets_equal_those_of_t5():
    offsets = np.arange(-512, 513)
    for distance, starts in (  # of each bucket, by T5Attention of transformers 5.23
        (128, [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]),
        (64, [0, 1, 2, 3, 4, 8, 16, 32]),
    ):
        half = len(starts)
        expected = np.searchsorted(starts, np.abs(offsets), "right") - 1 + half * (offsets > 0)
        np.testing.assert_array_equal(relative_buckets(offsets, 2 * half, distance), expected)


def test_a_block_takes_texts_of_any_length():
    layer = TransformerBlock(2, 8, relative=True, max_tokens=9)
    inputs = keras.Input((None, 6))
    model = keras.Model(inputs, layer(inputs))
    redraw_weights(layer)
    x = draw(3, 9, 6)
    short = to_numpy(model(x[:, :4]))
    mask = np.broadcast_to(np.arange(9) < 4, (3, 9))
    padded = to_numpy(layer(x, mask=mask))[:, :4]
    np.testing.assert_allclose(short, padded, rtol=1e-5, atol=1e-5)
    for width in (4, 7):  # compiled, and for the second time with an unknown number of tokens
        compiled = model.predict(x[:, :width], verbose=0)
        np.testing.assert_allclose(compiled, to_numpy(model(x[:, :width])), rtol=1e-5, atol=1e-5)
