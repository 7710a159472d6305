"""Weights by distance and attention of text models, as arrays and as pictures."""

import keras
import numpy as np
import pytest
from check_layer import to_numpy
from numpy_reference import softmax
from small_text import LENGTH, LINES, save_small_model, small_text_model

from keras_gmlp.analysis.plots import draw_distance_filters, draw_token_attention
from keras_gmlp.analysis.tokens import distance_filters, token_attention
from keras_gmlp.models.language_families import BERT, aMLP, gMLP
from keras_gmlp.models.structure import NotApplicableError

SIZES = {"dim": 8, "depth": 2, "hidden_dim": 16, "max_length": 5}


def test_toeplitz_weights_by_distance():
    model = gMLP(50, **SIZES)
    # Offset i - j of output i and input j from -4 to 4: the input at distance 4 comes first.
    model.get_layer("block_1").gate.spatial.offsets.assign(np.arange(9.0)[None])
    filters = distance_filters(model)
    assert list(filters) == ["block_0", "block_1"]
    np.testing.assert_array_equal(filters["block_1"], [np.arange(9.0)[::-1]])


def test_free_weights_have_the_mean_of_each_distance():
    model = gMLP(50, toeplitz=False, **SIZES)
    kernel = np.random.default_rng(0).normal(size=(1, 5, 5)).astype("float32")
    model.get_layer("block_0").gate.spatial.kernel.assign(kernel)
    (found,) = distance_filters(model)["block_0"]
    for distance in range(-4, 5):
        pairs = [kernel[0, i + distance, i] for i in range(5) if 0 <= i + distance < 5]
        assert found[4 + distance] == pytest.approx(np.mean(pairs), rel=1e-5)


def test_attention_is_the_one_of_the_block(tokenizer):
    model = small_text_model("text_classification", tokenizer, aMLP)
    ids = np.array(tokenizer.encode(LINES[0]).ids)
    maps = token_attention(model, ids)
    assert list(maps) == ["block_0", "block_1"]
    attention = model.get_layer("block_0").attention
    embedded = keras.Model(model.inputs[0], model.get_layer("block_0").input[0])(ids[None])
    x = to_numpy(model.get_layer("block_0").norm(embedded))[0]
    kernel, bias = (to_numpy(w) for w in attention.qkv.weights)
    query, key, _ = np.split(x @ kernel + bias, 3, axis=-1)
    scores = query @ key.T / np.sqrt(attention.head_size)
    np.testing.assert_allclose(maps["block_0"], softmax(scores), rtol=1e-4, atol=1e-6)


def test_models_without_gates_or_attention():
    with pytest.raises(NotApplicableError, match="aMLP and BERT have"):
        token_attention(gMLP(50, **SIZES), np.arange(3))
    bert = BERT(50, dim=8, depth=1, num_heads=2, max_length=5)
    with pytest.raises(NotApplicableError, match="gMLP and aMLP have"):
        distance_filters(bert)
    assert token_attention(bert, np.array([2, 7, 3]))["block_0"].sum(-1) == pytest.approx([1] * 3)


def test_pictures(tokenizer, tmp_path, saved_figures):
    model = small_text_model("text_classification", tokenizer, aMLP)
    draw_distance_filters(model, tmp_path / "filters.png", reach=3)
    lines = saved_figures[-1].axes[1].lines
    expected = distance_filters(model)["block_1"][0][LENGTH - 4 : LENGTH + 3]
    np.testing.assert_array_equal(lines[-1].get_ydata(), expected)
    np.testing.assert_array_equal(lines[-1].get_xdata(), [-3, -2, -1, 0, 1, 2, 3])
    draw_token_attention(model, tokenizer, "Who lives in Rome?", tmp_path / "attention.png")
    names = [label.get_text() for label in saved_figures[-1].axes[0].get_yticklabels()]
    assert names[0] == "[CLS]"
    assert "".join(names[1:-1]).replace("##", "") == "wholivesinrome?"


def test_program_draws_a_text_model(tokenizer, tmp_path, app):
    save_small_model(tmp_path / "model.keras", "masked_lm", tokenizer)
    code, out, notes = app("visualize", tmp_path)
    assert (code, out) == (0, f"{tmp_path / 'pictures' / 'filters.png'}\n")
    assert "skipped attention" in notes
    code, _, error = app("visualize", tmp_path, "--only", "explain")
    assert (code, "filters and attention" in error) == (1, True)
