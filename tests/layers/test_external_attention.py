import keras
import numpy as np
import pytest
from check_layer import check_layer, redraw_weights, to_numpy
from numpy_reference import external_attention

from keras_gmlp.layers import ExternalAttention

MULTI_HEAD = {"num_heads": 4, "slots": 3, "expansion": 2}
SINGLE_HEAD = {"num_heads": 1, "slots": 3, "expansion": 1}
both_forms = pytest.mark.parametrize("form", [MULTI_HEAD, SINGLE_HEAD])


@both_forms
def test_contract(form):
    # A query's bias adds the same number to a slot's scores of all tokens: softmax takes it away.
    check_layer(ExternalAttention, form, (8, 5, 6), without_gradient=["query/bias"])


@both_forms
def test_numbers(form):
    layer = ExternalAttention(**form)
    inputs = np.random.normal(size=(8, 5, 6)).astype("float32")
    layer.build(inputs.shape)
    expected = external_attention(inputs, redraw_weights(layer), form["num_heads"])
    np.testing.assert_allclose(to_numpy(layer(inputs)), expected, rtol=1e-5, atol=1e-5)


def test_double_normalization_by_hand():
    layer = ExternalAttention(1, slots=2, expansion=1)
    scores = np.log([[[[1.0, 1.0]], [[3.0, 1.0]]]])  # two tokens, one head, two slots
    # Over the tokens 1/4, 3/4 and 1/2, 1/2; then over the slots.
    expected = [[[[1 / 3, 2 / 3]], [[3 / 5, 2 / 5]]]]
    np.testing.assert_allclose(to_numpy(layer.attend(scores)), expected, rtol=1e-5)


def test_heads_share_one_pair_of_memories():
    layer = ExternalAttention(**MULTI_HEAD)
    layer.build((8, 5, 6))
    assert layer.keys.kernel.shape == layer.values.kernel.shape[::-1] == (3, 3)


@pytest.mark.parametrize("heads", [0, 5])
def test_heads_must_divide_the_expanded_channels(heads):
    with pytest.raises(ValueError, match=f"12 channels .* cannot be shared by num_heads={heads}"):
        ExternalAttention(heads, expansion=2)(keras.Input((5, 6)))
