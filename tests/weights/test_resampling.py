"""Tests of weights over tokens at a new image size."""

import numpy as np
import pytest
from check_layer import redraw_weights, to_numpy
from PIL import Image
from random_models import tiny
from refused import refused

from keras_gmlp import fold
from keras_gmlp.weights.resampling import resample, transfer


@pytest.mark.parametrize(("old", "new"), [((4, 4), (6, 6)), ((6, 4), (3, 8)), ((4, 4), (4, 4))])
def test_resample_resizes_as_pillow_does(old, new):
    image = np.random.default_rng(0).normal(size=old).astype("float32")
    expected = Image.fromarray(image).resize(new[::-1], Image.Resampling.BICUBIC)
    resized = (resample(old, new) @ image.ravel()).reshape(new)
    np.testing.assert_allclose(resized, np.asarray(expected), atol=1e-5)


def pair(family, old, new, **sizes):
    """Returns a source with random weights for images of one shape, and a target for another."""
    if family == "folded":
        source, target = (fold(tiny("resmlp", shape)) for shape in (old, new))
    else:
        source, target = (tiny(family, shape, **sizes) for shape in (old, new))
    redraw_weights(source)
    return source, target


@pytest.mark.parametrize(("family", "name"), [("gmlp", "gate/spatial/bias"), ("folded", "shift")])
def test_what_is_added_to_the_tokens_is_interpolated(family, name):
    source, target = pair(family, (8, 8, 3), (12, 16, 3))
    report = transfer(source, target)
    assert f"block_1/{name}" in report.resized
    assert not report.fresh
    old, new = (
        next(to_numpy(weight) for weight in model.weights if weight.path == f"block_1/{name}")
        for model in (source, target)
    )
    expected = resample((2, 2), (3, 4)) @ old.reshape(4, -1)
    np.testing.assert_allclose(new.reshape(12, -1), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("family", ["gmlp", "amlp", "resmlp", "folded"])
@pytest.mark.parametrize(("old", "new"), [((8, 8, 3), (12, 16, 3)), ((12, 16, 3), (8, 8, 3))])
def test_what_filters_read_is_not_blurred(old, new, family):
    """Filters read the same from tokens interpolated to the larger grid, and least squares back.

    If E enlarges the grid, a kernel K over the smaller grid becomes L with `E' L = K E'`, and one
    over the larger grid becomes S with `S E' E = E' K E`.
    """
    source, target = pair(family, old, new)
    report = transfer(source, target)
    assert not report.fresh
    path = next(path for path in report.resized if path.endswith("spatial/kernel"))
    before, after = (
        next(to_numpy(weight) for weight in model.weights if weight.path == path)
        for model in (source, target)
    )
    small, large = sorted([(old[0] // 4, old[1] // 4), (new[0] // 4, new[1] // 4)])
    enlarge = resample(small, large)
    if old < new:
        np.testing.assert_allclose(enlarge.T @ after, before @ enlarge.T, rtol=1e-3, atol=1e-5)
    else:
        expected = enlarge.T @ before @ enlarge
        np.testing.assert_allclose(after @ enlarge.T @ enlarge, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("old", "new"), [((8, 8, 3), (12, 16, 3)), ((12, 16, 3), (8, 8, 3))])
def test_weights_of_offsets_keep_their_values(old, new):
    source, target = pair("gmlp", old, new, toeplitz=True, heads=2)
    redraw_weights(target)
    report = transfer(source, target)
    assert "block_0/gate/spatial/offsets" in report.resized
    before, after = (
        to_numpy(m.get_layer("block_0").gate.spatial.offsets) for m in (source, target)
    )
    reach = [min(sides) // 4 - 1 for sides in zip(old[:2], new[:2], strict=True)]
    for y, x in np.ndindex(2 * reach[0] + 1, 2 * reach[1] + 1):
        dy, dx = y - reach[0], x - reach[1]
        was = before[:, dy + old[0] // 4 - 1, dx + old[1] // 4 - 1]
        now = after[:, dy + new[0] // 4 - 1, dx + new[1] // 4 - 1]
        np.testing.assert_array_equal(now, was)
    grown = np.count_nonzero(after) / after.size
    assert grown == pytest.approx(min(1.0, before.size / after.size))


def test_class_and_distillation_token_keep_their_positions():
    source, target = pair("deit", (8, 8, 3), (16, 16, 3))
    transfer(source, target)
    old, new = (to_numpy(m.get_layer("position").embedding)[0] for m in (source, target))
    np.testing.assert_allclose(new[:2], old[:2], rtol=1e-6)
    np.testing.assert_allclose(new[2:], resample((2, 2), (4, 4)) @ old[2:], rtol=1e-4, atol=1e-6)


def test_class_token_of_feed_forward_only_keeps_its_weights():
    source, target = pair("ff_only", (8, 8, 3), (16, 16, 3))
    assert len(transfer(source, target).resized) == 1 + 2 * 5
    old, new = ({w.path: to_numpy(w) for w in model.weights} for model in (source, target))
    upsample = resample((2, 2), (4, 4))
    downsample = np.linalg.solve(upsample.T @ upsample, upsample.T)  # least squares
    writes = ("norm2/gamma", "norm2/beta", "token_mlp/shrink/bias", "token_mlp/shrink/kernel")
    matrices = {"token_mlp/expand/kernel": downsample.T, **dict.fromkeys(writes, upsample)}
    for part, matrix in matrices.items():
        before, after = (weights[f"block_1/{part}"] for weights in (old, new))
        if part.endswith("shrink/kernel"):
            before, after = before.T, after.T
        np.testing.assert_array_equal(after[0], before[0])
        np.testing.assert_allclose(after[1:], matrix @ before[1:], rtol=1e-4, atol=1e-6)


def test_other_architectures_are_refused_and_the_target_does_not_change():
    target = tiny()
    before = target.get_weights()
    with refused("mixer and gmlp have different"):
        transfer(tiny("mixer"), target)
    own = tiny(input_shape=(32, 32, 3), hidden_dim=14)
    with refused(r"block_0/expand/kernel has shape \(8, 14\)"):
        transfer(own, target)
    for old, new in zip(before, target.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("family", ["gmlp", "vit"])
def test_patches_that_grow_with_the_image_change_no_weight_but_the_stem_s(family):
    tokens = {"class_token": False} if family == "vit" else {}
    source = tiny(family, (16, 16, 3), **tokens)
    redraw_weights(source)
    target = tiny(family, (24, 24, 3), patch_size=6, **tokens)
    moved = transfer(source, target)
    assert (moved.resized, moved.fresh) == (("stem/projection/kernel",), ())
    # Each patch, enlarged separately, gives the same token as before.
    small, large = np.zeros((1, 16, 16, 3), "float32"), np.zeros((1, 24, 24, 3), "float32")
    rng = np.random.default_rng(0)
    for row, column, channel in np.ndindex(4, 4, 3):
        patch = rng.uniform(0, 255, (4, 4)).astype("float32")
        enlarged = np.asarray(Image.fromarray(patch).resize((6, 6), Image.BICUBIC))
        for image, pixels in ((small, patch), (large, enlarged)):
            side = len(pixels)
            rows = slice(row * side, row * side + side)
            image[0, rows, column * side : column * side + side, channel] = pixels
    np.testing.assert_allclose(to_numpy(target(large)), to_numpy(source(small)), atol=1e-3)
