import keras
import numpy as np
import pytest
from check_layer import (
    check_dropout,
    check_layer,
    check_stochastic_depth,
    check_tokens_mix_within_a_sample,
    redraw_weights,
    silence,
    to_numpy,
)
from numpy_reference import (
    external_attention,
    external_attention_block,
    external_attention_branch,
    feed_forward_branch,
)

from keras_gmlp.layers import ExternalAttention, ExternalAttentionBlock

MULTI_HEAD = {"num_heads": 4, "slots": 3, "expansion": 2}
SINGLE_HEAD = {"num_heads": 1, "slots": 3, "expansion": 1}
# A query's bias adds the same number to a slot's scores of all tokens: softmax takes it away.
WITHOUT_GRADIENT = ["query/bias"]
both_forms = pytest.mark.parametrize("form", [MULTI_HEAD, SINGLE_HEAD])


def tokens(*shape, scale=1.0):
    return (scale * np.random.normal(size=shape)).astype("float32")


@both_forms
def test_contract(form):
    check_layer(ExternalAttention, form, (8, 5, 6), without_gradient=WITHOUT_GRADIENT)


@both_forms
def test_block_contract(form):
    arguments = {"hidden_dim": 14, "stochastic_depth": 0.2, "dropout": 0.1, **form}
    check_layer(ExternalAttentionBlock, arguments, (8, 5, 6), without_gradient=WITHOUT_GRADIENT)


@both_forms
def test_numbers(form):
    layer = ExternalAttention(**form)
    inputs = tokens(8, 5, 6)
    layer.build(inputs.shape)
    expected = external_attention(inputs, redraw_weights(layer), form["num_heads"])
    np.testing.assert_allclose(to_numpy(layer(inputs)), expected, rtol=1e-5, atol=1e-5)


# At unit scale an epsilon of 1e-5 and one of 1e-6 agree to five digits; at 0.003 they do not.
@pytest.mark.parametrize("scale", [1.0, 0.003])
def test_block_numbers(scale):
    layer = ExternalAttentionBlock(14, **MULTI_HEAD)
    inputs = tokens(8, 5, 6, scale=scale)
    layer.build(inputs.shape)
    expected = external_attention_block(inputs, redraw_weights(layer), 4)
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


def test_tokens_mix_across_the_sequence_alone():
    layer = ExternalAttentionBlock(14, **MULTI_HEAD)
    inputs = tokens(8, 5, 6)
    layer.build(inputs.shape)
    redraw_weights(layer)
    check_tokens_mix_within_a_sample(layer, inputs)


def test_stochastic_depth_drops_each_branch_by_itself_and_rescales():
    layer = ExternalAttentionBlock(14, **MULTI_HEAD, stochastic_depth=0.3)
    inputs = tokens(1000, 5, 6)
    layer.build(inputs.shape)
    weights = redraw_weights(layer)
    branches = [
        lambda x: external_attention_branch(x, weights, 4),
        lambda x: feed_forward_branch(x, weights),
    ]
    check_stochastic_depth(layer, inputs, branches)


@pytest.mark.parametrize("silent", ["attention", "shrink"])
def test_dropout_drops_single_channels_of_each_branch_and_rescales_the_others(silent):
    layer = ExternalAttentionBlock(14, **MULTI_HEAD, dropout=0.3)
    inputs = tokens(1000, 5, 6)
    layer.build(inputs.shape)
    redraw_weights(layer)
    silence(getattr(layer, silent))
    check_dropout(layer, inputs)


@pytest.mark.parametrize("heads", [0, 5])
def test_heads_must_divide_the_expanded_channels(heads):
    with pytest.raises(ValueError, match=f"12 channels .* cannot be shared by num_heads={heads}"):
        ExternalAttention(heads, expansion=2)(keras.Input((5, 6)))
