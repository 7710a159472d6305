from functools import partial

import keras
import numpy as np
import pytest
from check_layer import (
    POLICIES,
    check_dropout,
    check_layer,
    check_stochastic_depth,
    check_tokens_mix_within_a_sample,
    redraw_weights,
    silence,
    to_numpy,
)
from numpy_reference import attention_branch, feed_forward_branch, transformer_block

from keras_gmlp.layers import TransformerBlock


def tokens(*shape, scale=1.0):
    return (scale * np.random.normal(size=shape)).astype("float32")


def test_contract():
    # JAX's attention has no float16 on a CPU: "F16_F16_F32 is not supported by dot_general".
    no_float16 = keras.backend.backend() == "jax"
    check_layer(
        TransformerBlock,
        {"num_heads": 2, "hidden_dim": 14, "stochastic_depth": 0.2, "dropout": 0.1},
        (8, 5, 6),
        # A key's bias adds the same number to all scores of a query: softmax takes it away.
        without_gradient=["attention/key/bias"],
        policies=[p for p in POLICIES if not (no_float16 and p == "mixed_float16")],
    )


# At unit scale an epsilon of 1e-5 and one of 1e-6 agree to five digits; at 0.003 they do not.
@pytest.mark.parametrize("scale", [1.0, 0.003])
def test_numbers(scale):
    layer = TransformerBlock(num_heads=2, hidden_dim=14)
    inputs = tokens(8, 5, 6, scale=scale)
    layer.build(inputs.shape)
    expected = transformer_block(inputs, redraw_weights(layer))
    np.testing.assert_allclose(to_numpy(layer(inputs)), expected, rtol=1e-5, atol=1e-5)


def test_feed_forward_norm_has_epsilon_1e_6():
    layer = TransformerBlock(num_heads=2, hidden_dim=14)
    inputs = tokens(8, 5, 6, scale=0.003)
    layer.build(inputs.shape)
    weights = redraw_weights(layer)
    silence(layer.attention)
    expected = inputs + feed_forward_branch(inputs, weights)
    np.testing.assert_allclose(to_numpy(layer(inputs)), expected, rtol=1e-5, atol=1e-5)


def test_each_branch_has_its_own_norm():
    layer = TransformerBlock(num_heads=2, hidden_dim=14)
    inputs = tokens(8, 5, 6)
    layer.build(inputs.shape)
    redraw_weights(layer)
    silence(layer.shrink)
    attended = to_numpy(layer(inputs))
    silence(layer.norm2)
    np.testing.assert_array_equal(to_numpy(layer(inputs)), attended)
    silence(layer.norm1)
    assert np.abs(to_numpy(layer(inputs)) - attended).max() > 1e-3


def test_tokens_mix_across_the_sequence_alone():
    layer = TransformerBlock(num_heads=2, hidden_dim=14)
    inputs = tokens(8, 5, 6)
    layer.build(inputs.shape)
    redraw_weights(layer)
    check_tokens_mix_within_a_sample(layer, inputs)


def test_residuals_take_the_input_before_its_norm():
    layer = TransformerBlock(num_heads=2, hidden_dim=14)
    inputs = 100.0 + tokens(8, 5, 6)
    layer.build(inputs.shape)
    silence(layer.attention)
    silence(layer.shrink)
    np.testing.assert_array_equal(to_numpy(layer(inputs)), inputs)


def test_stochastic_depth_drops_each_branch_by_itself_and_rescales():
    layer = TransformerBlock(num_heads=2, hidden_dim=14, stochastic_depth=0.3)
    inputs = tokens(1000, 5, 6)
    layer.build(inputs.shape)
    weights = redraw_weights(layer)
    branches = [attention_branch, feed_forward_branch]
    check_stochastic_depth(layer, inputs, [partial(b, weights=weights) for b in branches])


@pytest.mark.parametrize("silent", ["attention", "shrink"])
def test_dropout_drops_single_channels_of_each_branch_and_rescales_the_others(silent):
    layer = TransformerBlock(num_heads=2, hidden_dim=14, dropout=0.3)
    inputs = tokens(1000, 5, 6)
    layer.build(inputs.shape)
    redraw_weights(layer)
    silence(getattr(layer, silent))
    check_dropout(layer, inputs)


def test_no_sample_is_dropped_at_inference():
    layer = TransformerBlock(num_heads=2, hidden_dim=14, stochastic_depth=0.5, dropout=0.5)
    inputs = tokens(8, 5, 6)
    layer.build(inputs.shape)
    expected = transformer_block(inputs, redraw_weights(layer))
    np.testing.assert_allclose(to_numpy(layer(inputs)), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("heads", [0, 4])
def test_heads_must_divide_the_channels(heads):
    with pytest.raises(ValueError, match=f"6 channels cannot be shared by num_heads={heads}"):
        TransformerBlock(heads, hidden_dim=14)(keras.Input((5, 6)))


def test_attention_is_not_fused_in_jax_and_the_user_s_setting_stays():
    fused = False if keras.backend.backend() == "jax" else None
    assert attention_of_a_block()._flash_attention is fused
    assert keras.config.is_flash_attention_enabled() is None
    keras.config.disable_flash_attention()
    try:
        assert attention_of_a_block()._flash_attention is False
        assert keras.config.is_flash_attention_enabled() is False
    finally:
        keras.config.enable_flash_attention()


def test_attention_to_an_even_number_of_tokens_may_be_fused(monkeypatch):
    def refuse():
        raise AssertionError("the global setting changed")

    with monkeypatch.context() as patch:
        patch.setattr(keras.config, "disable_flash_attention", refuse)
        patch.setattr(keras.config, "enable_flash_attention", refuse)
        assert attention_of_a_block(tokens=4)._flash_attention is None
    keras.config.disable_flash_attention()
    try:
        assert attention_of_a_block(tokens=4)._flash_attention is False
    finally:
        keras.config.enable_flash_attention()


def test_attention_to_an_unknown_number_of_tokens_is_not_fused_in_jax():
    fused = False if keras.backend.backend() == "jax" else None
    assert attention_of_a_block(tokens=None)._flash_attention is fused


def test_setting_is_restored_if_the_attention_cannot_be_created(monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("no attention")

    monkeypatch.setattr(keras.layers, "MultiHeadAttention", fail)
    with pytest.raises(RuntimeError, match="no attention"):
        attention_of_a_block()
    assert keras.config.is_flash_attention_enabled() is None


def attention_of_a_block(tokens=5):
    block = TransformerBlock(2, 8)
    block.build((None, tokens, 4))
    return block.attention
