import keras
import numpy as np
import pytest
from check_layer import redraw_weights, silence, to_numpy
from numpy_reference import feed_forward_branch

from keras_gmlp.layers import TransformerBlock


def test_feed_forward_norm_has_epsilon_1e_6():
    layer = TransformerBlock(num_heads=2, hidden_dim=14)
    inputs = (0.003 * np.random.normal(size=(8, 5, 6))).astype("float32")
    layer.build(inputs.shape)
    weights = redraw_weights(layer)
    silence(layer.attention)
    expected = inputs + feed_forward_branch(inputs, weights)
    np.testing.assert_allclose(to_numpy(layer(inputs)), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("heads", [0, 4])
def test_heads_must_divide_the_channels(heads):
    with pytest.raises(ValueError, match=f"6 channels cannot be shared by num_heads={heads}"):
        TransformerBlock(heads, hidden_dim=14)(keras.Input((5, 6)))


@pytest.fixture
def fusion(monkeypatch):
    """The user's settings of fused attention, in order."""
    settings = []
    for name in ("enable", "disable"):
        function = getattr(keras.config, f"{name}_flash_attention")
        monkeypatch.setattr(
            keras.config,
            f"{name}_flash_attention",
            lambda name=name, function=function: settings.append(name) or function(),
        )
    return settings


def fused(tokens):
    block = TransformerBlock(2, 8)
    block.build((None, tokens, 4))
    return block.attention._flash_attention


@pytest.mark.parametrize("tokens", [4, 5, None])
def test_attention_is_fused_in_jax_for_an_even_number_of_tokens_alone(tokens, fusion):
    off = keras.backend.backend() == "jax" and tokens != 4
    assert fused(tokens) is (False if off else None)
    assert fusion == (["disable", "enable"] if off else [])
    assert keras.config.is_flash_attention_enabled() is None
    keras.config.disable_flash_attention()
    try:
        assert fused(tokens) is False
        assert keras.config.is_flash_attention_enabled() is False
    finally:
        keras.config.enable_flash_attention()


def test_setting_is_restored_if_the_attention_cannot_be_created(monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("no attention")

    monkeypatch.setattr(keras.layers, "MultiHeadAttention", fail)
    with pytest.raises(RuntimeError, match="no attention"):
        fused(5)
    assert keras.config.is_flash_attention_enabled() is None
