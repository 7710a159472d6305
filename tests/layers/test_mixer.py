import keras
import numpy as np
import pytest
from check_layer import check_layer, redraw_weights, to_numpy
from numpy_reference import token_mlp

from keras_gmlp.layers import FeedForwardOnlyBlock, MixerBlock, TokenMLP


def test_token_mlp_contract():
    check_layer(TokenMLP, {"hidden_dim": 7}, (8, 5, 6))


def test_token_mlp_numbers():
    layer = TokenMLP(7)
    inputs = np.random.normal(size=(8, 5, 6)).astype("float32")
    layer.build(inputs.shape)
    expected = token_mlp(inputs, redraw_weights(layer))
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


def test_number_of_tokens_must_be_fixed():
    with pytest.raises(ValueError, match=r"must be fixed: .* received \(None, None, 6\)"):
        TokenMLP(7)(keras.Input((None, 6)))
