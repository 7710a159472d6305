import json
from functools import partial

import keras
import numpy as np
import pytest
from check_layer import redraw_weights, to_numpy
from numpy_reference import dense, layer_norm, part, softmax
from PIL import Image
from random_models import pixels

from keras_gmlp import FeedForwardOnly, MLPMixer, ResMLP, ResNet, ViT, aMLP, fold, gMLP
from keras_gmlp.analysis.tokens import attention_maps, spatial_filters
from keras_gmlp.models.structure import NotApplicableError

TINY = {"dim": 8, "depth": 2, "input_shape": (8, 12, 3), "patch_size": 4, "classes": 3}


def image():
    return pixels(8, 12, 3)


AROUND_4 = np.array([[13, 12, 11], [8, 7, 6]])  # token 4 is at (1, 1), (y, x) at (1 - y, 1 - x)
SHIFTS = {"toeplitz": True, "heads": 2}
GATES = [  # rows of a kernel are input tokens, columns output tokens
    ({}, "kernel", (6, 6), {4: [[4, 10, 16], [22, 28, 34]]}),
    ({"class_token": True}, "kernel", (7, 7), {0: [[8, 15, 22], [29, 36, 43]]}),
    (SHIFTS, "offsets", (2, 3, 5), {4: AROUND_4, 6 + 4: AROUND_4 + 15}),
]


@pytest.mark.parametrize(("arguments", "weight", "shape", "expected"), GATES)
def test_filters_of_gmlp_compute_tokens_head_by_head(arguments, weight, shape, expected):
    model = gMLP(hidden_dim=12, **arguments, **TINY)
    values = np.arange(float(np.prod(shape))).reshape(shape)
    getattr(model.get_layer("block_1").gate.spatial, weight).assign(values)
    filters = spatial_filters(model)
    assert list(filters) == ["block_0", "block_1"]
    assert filters["block_1"].shape == (6 * arguments.get("heads", 1), 2, 3)
    for number, picture in expected.items():
        np.testing.assert_array_equal(filters["block_1"][number], picture)


def test_filters_of_the_other_families():
    for model, filters, kernel in (
        (MLPMixer(**TINY), 4, lambda b: b.token_mlp.expand.kernel),
        (ResMLP(**TINY), 6, lambda b: b.spatial.kernel),
        (fold(ResMLP(**TINY)), 6, lambda b: b.spatial.kernel),
        # Without the class token.
        (FeedForwardOnly(token_hidden_dim=5, **TINY), 5, lambda b: b.token_mlp.expand.kernel[1:]),
    ):
        result = spatial_filters(model)["block_0"]
        assert result.shape == (filters, 2, 3)
        expected = to_numpy(kernel(model.get_layer("block_0")))
        np.testing.assert_array_equal(result.reshape(filters, 6).T, expected)


def first_block(model, norm):
    """Redraws a model; returns its first block's weights in float64, and its normalized tokens."""
    redraw_weights(model)
    block = model.get_layer("block_0")
    weights = {w.path.split("/", 1)[1]: to_numpy(w).astype("float64") for w in block.weights}
    tokens = to_numpy(keras.Model(model.input, block.input)(image()[None]))
    return weights, layer_norm(tokens, weights, norm, epsilon=1e-6)


def test_vit_shows_the_attention_of_its_class_token():
    model = ViT(num_heads=2, distillation_token=True, **TINY)
    weights, x = first_block(model, "norm1")
    query, key = (
        np.einsum("bnd,dhk->bhnk", x, weights[f"attention/{name}/kernel"])
        + weights[f"attention/{name}/bias"][:, None]
        for name in ("query", "key")
    )
    scores = softmax(query @ np.swapaxes(key, -1, -2) / 2)  # heads of 4 channels
    expected = scores[0].mean(axis=0)[0, 2:].reshape(2, 3)  # two leading tokens
    maps = attention_maps(model, image())
    assert list(maps) == ["block_0", "block_1"]
    np.testing.assert_allclose(maps["block_0"], expected, rtol=1e-4, atol=1e-6)


def test_amlp_shows_the_average_attention_of_its_tokens():
    model = aMLP(hidden_dim=12, attention_size=3, **TINY)
    weights, x = first_block(model, "norm")
    query, key, _ = np.split(dense(x, part(weights, "attention"), "qkv"), 3, axis=-1)
    scores = softmax(query @ np.swapaxes(key, 1, 2) / 3**0.5)
    result = attention_maps(model, image())["block_0"]
    assert result.sum() == pytest.approx(1)
    np.testing.assert_allclose(result, scores[0].mean(axis=0).reshape(2, 3), rtol=1e-4, atol=1e-6)


def test_family_without_filters_or_attention():
    for function, model in (
        (spatial_filters, ViT(num_heads=2, **TINY)),
        (spatial_filters, ResNet(8)),
        (partial(attention_maps, image=image()), gMLP(hidden_dim=12, **TINY)),
    ):
        with pytest.raises(NotApplicableError):
            function(model)


@pytest.fixture
def run(tmp_path):
    """A run directory with an untrained ViT."""
    model = ViT(8, 1, 2, input_shape=(8, 8, 1), patch_size=4, classes=10, mean=0.5)
    redraw_weights(model)
    model.save(tmp_path / "model.keras")
    (tmp_path / "labels.txt").write_text("\n".join("0123456789"))
    (tmp_path / "recipe.json").write_text(json.dumps({"data": "digits"}))
    return tmp_path


def test_app_draws_what_applies(run, app):
    code, out, notes = app("visualize", run)
    assert code == 0
    assert out.split() == [
        str(run / "pictures" / f"{name}.png") for name in ("attention", "explain")
    ]
    assert "skipped filters" in notes
    with Image.open(run / "pictures" / "attention.png") as picture:
        assert np.asarray(picture.convert("L")).std() > 3  # not blank
