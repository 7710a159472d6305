from keras_gmlp.layers import FeedForwardOnlyBlock, MixerBlock


def test_hidden_sizes_are_not_swapped():
    layer = MixerBlock(token_hidden_dim=7, hidden_dim=14)
    layer.build((8, 5, 6))
    assert layer.token_mlp.expand.kernel.shape == (5, 7)
    assert layer.expand.kernel.shape == (6, 14)


def test_norms_of_feed_forward_only_lie_along_channels_and_along_tokens():
    layer = FeedForwardOnlyBlock(7, 14)
    layer.build((8, 5, 6))
    assert (layer.norm1.gamma.shape, layer.norm2.gamma.shape) == ((6,), (5,))
