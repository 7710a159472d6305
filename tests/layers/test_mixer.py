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
    feed_forward_branch,
    feed_forward_only_block,
    feed_forward_only_branches,
    mixer_block,
    mixer_token_branch,
    token_mlp,
)

from keras_gmlp.layers import FeedForwardOnlyBlock, MixerBlock, TokenMLP

BLOCKS = [MixerBlock, FeedForwardOnlyBlock]
every_block = pytest.mark.parametrize("block", BLOCKS)
# At unit scale an epsilon of 1e-5 and one of 1e-6 agree to five digits; at 0.003 they do not.
every_scale = pytest.mark.parametrize("scale", [1.0, 0.003])


def tokens(*shape, scale=1.0):
    return (scale * np.random.normal(size=shape)).astype("float32")


def built(block, samples=8, scale=1.0, **arguments):
    """A block of 7 units over tokens and 14 over channels, its weights, and an input for it."""
    layer = block(7, 14, **arguments)
    inputs = tokens(samples, 5, 6, scale=scale)
    layer.build(inputs.shape)
    return layer, redraw_weights(layer), inputs


def branches(block, weights):
    if block is FeedForwardOnlyBlock:
        return feed_forward_only_branches(weights)
    return lambda x: mixer_token_branch(x, weights), lambda x: feed_forward_branch(x, weights)


def test_token_mlp_contract():
    check_layer(TokenMLP, {"hidden_dim": 7}, (8, 5, 6))


@every_block
def test_block_contract(block):
    arguments = {"token_hidden_dim": 7, "hidden_dim": 14, "stochastic_depth": 0.2, "dropout": 0.1}
    check_layer(block, arguments, (8, 5, 6))


def test_token_mlp_numbers():
    layer = TokenMLP(7)
    inputs = tokens(8, 5, 6)
    layer.build(inputs.shape)
    expected = token_mlp(inputs, redraw_weights(layer))
    np.testing.assert_allclose(to_numpy(layer(inputs)), expected, rtol=1e-5, atol=1e-5)


@every_scale
def test_mixer_block_numbers(scale):
    layer, weights, inputs = built(MixerBlock, scale=scale)
    expected = mixer_block(inputs, weights)
    np.testing.assert_allclose(to_numpy(layer(inputs)), expected, rtol=1e-5, atol=1e-5)


@every_scale
def test_feed_forward_only_block_numbers(scale):
    layer, weights, inputs = built(FeedForwardOnlyBlock, scale=scale)
    expected = feed_forward_only_block(inputs, weights)
    np.testing.assert_allclose(to_numpy(layer(inputs)), expected, rtol=1e-5, atol=1e-5)


def test_hidden_sizes_are_not_swapped():
    layer = MixerBlock(token_hidden_dim=7, hidden_dim=14)
    layer.build((8, 5, 6))
    assert layer.token_mlp.expand.kernel.shape == (5, 7)
    assert layer.expand.kernel.shape == (6, 14)


def test_norms_of_feed_forward_only_lie_along_channels_and_along_tokens():
    layer = FeedForwardOnlyBlock(7, 14)
    layer.build((8, 5, 6))
    assert (layer.norm1.gamma.shape, layer.norm2.gamma.shape) == ((6,), (5,))


@every_block
def test_tokens_mix_across_the_sequence_alone(block):
    layer, _, inputs = built(block)
    check_tokens_mix_within_a_sample(layer, inputs)


@every_block
def test_residuals_take_the_input_before_its_norm(block):
    layer, _, _ = built(block)
    silence(layer.token_mlp)
    silence(layer.shrink)
    inputs = 100.0 + tokens(8, 5, 6)
    np.testing.assert_array_equal(to_numpy(layer(inputs)), inputs)


@every_block
def test_stochastic_depth_drops_each_branch_by_itself_and_rescales(block):
    layer, weights, inputs = built(block, samples=1000, stochastic_depth=0.3)
    check_stochastic_depth(layer, inputs, branches(block, weights))


@every_block
@pytest.mark.parametrize("silent", ["token_mlp", "shrink"])
def test_dropout_drops_single_channels_of_each_branch_and_rescales_the_others(block, silent):
    layer, _, inputs = built(block, samples=1000, dropout=0.3)
    silence(getattr(layer, silent))
    check_dropout(layer, inputs)


@pytest.mark.parametrize("layer", [TokenMLP(7), MixerBlock(7, 14), FeedForwardOnlyBlock(7, 14)])
def test_number_of_tokens_must_be_fixed(layer):
    with pytest.raises(ValueError, match=r"must be fixed: .* received \(None, None, 6\)"):
        layer(keras.Input((None, 6)))
