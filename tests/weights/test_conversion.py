"""Tests of published names: timm's models with random weights give the same logits here."""

import numpy as np
import pytest
from check_layer import to_numpy
from random_models import tiny
from refused import refused

from keras_gmlp import build, fold
from keras_gmlp.weights.conversion import links, load_arrays, to_arrays

PAIRS = {
    "gmlp_ti16_224": "gmlp_ti16_224",
    "mixer_s32_224": "mixer_s32_224",
    "resmlp_12_224": "resmlp_12_224",
    "vit_tiny_patch16_224": "vit_ti16_224",
    "deit_small_distilled_patch16_224": "deit_s16_distilled_224",
}


def redrawn(timm, name):
    """Returns the first blocks of a timm model with random weights, and its weights."""
    import torch

    model = timm.create_model(name).eval()
    model.blocks = model.blocks[:3]
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for path, weight in model.named_parameters():
            spread = weight[0].numel() ** -0.5 if weight.ndim > 1 else 0.25
            centre = 0.5 if weight.ndim == 1 and not path.endswith("bias") else 0.0
            weight.copy_(centre + spread * torch.randn(weight.shape, generator=generator))
    return model, {path: array.numpy() for path, array in model.state_dict().items()}


# Three blocks of each: that the presets have timm's number of blocks shows in their parameters.
@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_logits_equal_those_of_timm_in_both_directions(timm, name):
    import torch

    theirs, arrays = redrawn(timm, name)
    ours = build(PAIRS[name], mean=0.0, std=1.0, depth=3)
    load_arrays(ours, arrays, name)
    # Squares of 32 pixels at two brightness levels: pixel noise would give equal logits.
    squares = np.random.default_rng(0).uniform(0, 1, (2, 7, 7, 3)) * [[[[0.2]]], [[[1.0]]]]
    images = squares.repeat(32, axis=1).repeat(32, axis=2).astype("float32")
    with torch.no_grad():
        expected = theirs(torch.from_numpy(images.transpose(0, 3, 1, 2))).numpy()
    assert np.ptp(expected, axis=0).max() > 0.02  # logits differ between images by 200 tolerances
    np.testing.assert_allclose(to_numpy(ours(255 * images)), expected, rtol=1e-4, atol=1e-4)

    back = {path: torch.from_numpy(array) for path, array in to_arrays(ours).items()}
    again, _ = redrawn(timm, name)
    again.load_state_dict(back, strict=True)
    for path, array in again.state_dict().items():
        np.testing.assert_array_equal(array.numpy(), arrays[path])


def random_arrays(model, dialect):
    rng = np.random.default_rng(0)
    shapes = {name: array.shape for name, array in to_arrays(model, dialect).items()}
    return {name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}


ATTENTION = "Transformer/encoderblock_0/MultiHeadDotProductAttention_1"
GOOGLE_S = {
    "mixer": {"stem/kernel", "MixerBlock_1/token_mixing/Dense_0/kernel", "head/bias"},
    "vit": {"cls", "embedding/bias", f"{ATTENTION}/out/kernel"},
}


def test_each_dialect_converts_in_both_directions():
    for family, dialect in (
        ("gmlp", "timm"),
        ("mixer", "timm"),
        ("mixer", "flax"),
        ("resmlp", "timm"),
        ("resmlp", "release"),
        ("vit", "timm"),
        ("vit", "flax"),
        ("deit", "timm"),
        ("ff_only", "release"),
    ):
        model = tiny(family)
        assert {path for link in links(model, dialect) for path in link.ours} == {
            weight.path for weight in model.weights if "seed" not in weight.name
        }
        arrays = random_arrays(model, dialect)
        load_arrays(model, arrays)
        back = to_arrays(model, dialect)
        assert set(back) == set(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(back[name], array)
        if dialect == "flax":  # Google's names
            assert GOOGLE_S[family] <= arrays.keys()


def test_model_without_published_names_is_refused():
    for model in (
        tiny("amlp"),
        tiny(gating="none"),
        fold(tiny("resmlp")),
        tiny("eamlp"),
    ):
        with refused("no published names"):
            to_arrays(model)


QUERY, QKV = f"{ATTENTION}/query/kernel", "blocks.0.attn.qkv.weight"


def test_strict_in_both_directions_and_the_model_does_not_change():
    for family, dialect, change, message in (
        ("gmlp", "timm", lambda a: a.pop("norm.bias"), r"has no norm\.bias"),
        ("gmlp", "timm", lambda a: a.update(e=np.ones(3)), "has e "),
        ("gmlp", "timm", lambda a: a.update({"head.weight": np.ones((5, 8))}), r"\(5, 8\)"),
        # Four heads in place of two.
        ("vit", "flax", lambda a: a.update({QUERY: a[QUERY].reshape(8, 4, 2)}), r"\(8, 4, 2\)"),
        ("vit", "timm", lambda a: a.update({QKV: a[QKV].T}), r"\(8, 24\)"),
    ):
        model = tiny(family)
        before = model.get_weights()
        arrays = random_arrays(model, dialect)
        change(arrays)
        with refused(message, "file.safetensors"):
            load_arrays(model, arrays, "file.safetensors")
        for old, new in zip(before, model.get_weights(), strict=True):
            np.testing.assert_array_equal(old, new)


def test_release_of_feed_forward_only_has_its_positions_on_a_grid():
    model = tiny("ff_only")
    arrays = random_arrays(model, "release")
    grid, first = (arrays[f"pos_encoding.{name}"] for name in ("pos_embed", "cls_pos_embed"))
    assert (grid.shape, first.shape) == ((1, 8, 2, 2), (1, 1, 8))
    load_arrays(model, arrays)
    embedding = to_numpy(model.get_layer("position").embedding)
    np.testing.assert_array_equal(embedding[0, 0], first[0, 0])
    np.testing.assert_array_equal(embedding[0, 3], grid[0, :, 1, 0])  # second row, first column
