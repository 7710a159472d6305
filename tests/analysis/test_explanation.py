"""Class maps, exact and by the gradient."""

import keras
import numpy as np
import pytest
from check_layer import redraw_weights, to_numpy
from PIL import Image
from random_models import pixels

from keras_gmlp import MLPMixer, ResMLP, ResNet, ViT, gMLP
from keras_gmlp.analysis.explanation import class_maps, has_exact_maps
from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.models.structure import NotApplicableError
from keras_gmlp.utils.card import write_card
from keras_gmlp.weights import transfer

TINY = {"dim": 8, "depth": 2, "input_shape": (8, 12, 3), "patch_size": 4, "classes": 3}
CLASSES = [2, 0, 1]


def image(shape=(8, 12, 3)):
    return pixels(*shape)


@pytest.mark.once
def test_map_plus_bias_is_the_logit():
    for model in (
        MLPMixer(stem="convolutions", **TINY),
        ResMLP(**TINY),  # its last norm is an Affine
        gMLP(hidden_dim=12, pooling="attention", **TINY),
        ResNet(8, 4, input_shape=(8, 12, 3), classes=3),
    ):
        redraw_weights(model)
        maps = class_maps(model, image(), CLASSES)
        assert has_exact_maps(model)
        assert maps.shape == (3, 2, 3)
        assert maps.std(axis=(1, 2)).min() > 1e-3  # the tokens differ
        logits = to_numpy(model(image()[None]))[0]
        found = maps.mean(axis=(1, 2)) + to_numpy(model.get_layer("head").bias)[CLASSES]
        np.testing.assert_allclose(found, logits[CLASSES], atol=1e-5)


@pytest.mark.once
def test_maps_of_a_model_with_zooms_show_the_whole_image():
    plain = gMLP(hidden_dim=12, **{**TINY, "input_shape": (4, 8, 3)})
    redraw_weights(plain)
    model = gMLP(hidden_dim=12, zooms=(1, 0.5), **{**TINY, "input_shape": (8, 16, 3)})
    transfer(plain, model)
    picture = image((8, 16, 3)).astype("float32")
    whole = picture.reshape(4, 2, 8, 2, 3).mean((1, 3))
    found, expected = class_maps(model, picture, CLASSES), class_maps(plain, whole, CLASSES)
    assert not has_exact_maps(model)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(NotApplicableError, match="no head"):
        class_maps(gMLP(hidden_dim=12, include_top=False, **TINY), image(), [0])


@pytest.mark.once
def test_values_are_at_the_places_of_their_tokens():
    model = MLPMixer(**TINY)
    redraw_weights(model)
    for i in range(2):  # blocks that mix no tokens
        shrink = model.get_layer(f"block_{i}").token_mlp.shrink
        shrink.kernel.assign(0 * to_numpy(shrink.kernel))
    changed = image()
    changed[4:, :4] = 255 - changed[4:, :4]
    before, after = (class_maps(model, x, [1])[0] for x in (image(), changed))
    np.testing.assert_array_equal(np.argwhere(np.abs(after - before) > 1e-4), [[1, 0]])


def test_gradient_is_the_difference_quotient():
    model = ViT(num_heads=2, distillation_token=True, **TINY)
    redraw_weights(model)
    assert not has_exact_maps(model)
    found = class_maps(model, image(), CLASSES)
    assert found.shape == (3, 2, 3)
    block, leading, step = model.get_layer("block_1"), 2, 1e-2
    tokens = to_numpy(keras.Model(model.input, block.input)(image()[None]))
    moved = np.repeat(tokens, 12, axis=0)
    for token in range(6):
        away = tokens[0, leading + token] - tokens[0, leading:].mean(axis=0)
        moved[token, leading + token] += step * away
        moved[6 + token, leading + token] -= step * away
    logits = to_numpy(keras.Model(block.input, model.output)(moved)).astype("float64")
    expected = 6 * (logits[:6] - logits[6:]) / (2 * step)
    expected = expected.T[CLASSES].reshape(3, 2, 3)
    assert expected.std() > 0.01
    np.testing.assert_allclose(found, expected, rtol=0.01, atol=0.01 * expected.std())


@pytest.fixture
def run(tmp_path):
    """A run directory with an untrained gMLP, and an image."""
    model = gMLP(hidden_dim=12, **TINY)
    redraw_weights(model)
    model.save(tmp_path / "model.keras")
    (tmp_path / "labels.txt").write_text("cat\ndog\nowl\n")
    Image.fromarray(image((40, 60, 3))).save(tmp_path / "image.png")
    return tmp_path


@pytest.fixture
def explain(run, app, saved_figures):
    """A function that explains the image and returns the titles of its maps."""

    def explain(*arguments):
        code, _, errors = app("visualize", run, "--only", "explain", *arguments, *given(run))
        assert code == 0, errors
        return [axes.get_title() for axes in saved_figures[-1].axes if axes.get_title()][1:]

    return explain


def given(run):
    return "--image", run / "image.png"


@pytest.mark.once
@pytest.mark.parametrize(("arguments", "drawn"), [(["--top", "9"], 3), (["--class", "owl"], 1)])
def test_app_draws_the_chosen_classes(run, explain, arguments, drawn):
    titles = explain(*arguments)
    assert len(titles) == drawn
    percents = [int(title.split()[1]) for title in titles]
    assert percents == sorted(percents, reverse=True)
    if "--class" in arguments:
        assert titles[0].startswith("owl ")
    with Image.open(run / "pictures" / "explain.png") as picture:
        assert np.asarray(picture.convert("L")).std() > 3  # not blank


def decide(run, **metadata):
    """Writes entries about probabilities into the card of the run's model."""
    model = keras.saving.load_model(run / "model.keras", compile=False)
    model.save(run / "model.keras")  # without a card
    write_card(run / "model.keras", model, ["cat", "dog", "owl"], metadata)
    return model


@pytest.mark.once
def test_app_explains_the_labels_that_apply(run, app, explain):
    model = decide(run)
    logits = to_numpy(model(read_image(run / "image.png", (8, 12, 3))[None]))[0]
    shares = 1 / (1 + np.exp(-logits.astype("float64")))
    for lowest, drawn in ((1, 2), (2, 1), (3, 1)):  # how many labels do not apply
        least = np.append(np.sort(shares), 1)[lowest] - 1e-6
        decide(run, thresholds=[least] * 3)
        order = np.argsort(-shares)[:drawn]
        names = np.array(["cat", "dog", "owl"])[order]
        expected = [f"{n} {100 * shares[i]:.0f} %" for n, i in zip(names, order, strict=True)]
        assert explain() == expected
    code, out, _ = app("visualize", run, *given(run))
    assert code == 0
    assert out.split() == [str(run / "pictures" / f"{n}.png") for n in ("filters", "explain")]
