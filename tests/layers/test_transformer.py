import keras
import pytest

from keras_gmlp.layers import TransformerBlock


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
def test_attention_is_fused_in_jax_only_for_an_even_number_of_tokens(tokens, fusion):
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
