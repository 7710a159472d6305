"""The page runs both signatures of a file with features, and draws its class maps."""

import numpy as np
import pytest
from colours import LABELS, colour_model
from pictures import encode
from PIL import Image
from web_page import call, choose

from keras_gmlp.analysis.explanation import class_maps
from keras_gmlp.export.writing import export
from keras_gmlp.inference.card_update import update_card
from keras_gmlp.inference.similarity import make_embedder
from keras_gmlp.weights.loading import load

RUN = """
  const opened = await open("model_features"), data = given;
  const found = [await opened.logits({ data }), await opened.features({ data })];
  return [...found, await opened.maps({ data })].map((values) => Array.from(values));"""
CANVAS = """(canvas) => {
  const context = canvas.getContext("2d");
  return Array.from(context.getImageData(0, 0, canvas.width, canvas.height).data);
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model with features, and it with thresholds for several labels."""
    folder = tmp_path_factory.mktemp("models")
    export(colour_model(), folder, ["features"], LABELS)
    export(colour_model(), folder / "several", ["tflite"], [f"pure_{name}" for name in LABELS])
    update_card(folder / "several" / "model.tflite", {"thresholds": [0.8, 0.8, 0.8]})
    return folder


@pytest.fixture
def page(opened):
    opened.reload()
    opened.locator("select option").first.wait_for(state="attached")
    return opened


def draw(*colours):
    """Returns the bytes of a picture of 8 x 8 pixels in columns of colours."""
    row = np.repeat(np.array(colours, "uint8"), 8 // len(colours), axis=0)
    return encode(Image.fromarray(np.stack([row] * 8)))


def test_both_signatures_give_pythons_answers(page, folder):
    images = np.random.default_rng(0).integers(0, 256, (1, 8, 8, 3), "uint8")
    logits, features, maps = call(page, RUN, images.ravel().tolist())
    classifier = load(folder / "model_features.tflite")
    np.testing.assert_allclose(logits, classifier.logits(images)[0], atol=1e-4)
    np.testing.assert_allclose(features, make_embedder(classifier)(images)[0], atol=1e-4)
    model = colour_model()
    maps = np.reshape(maps, (2, 2, 3))
    expected = np.moveaxis(class_maps(model, images[0], range(3)), 0, -1)
    np.testing.assert_allclose(maps, expected, atol=1e-4)
    bias = np.asarray(model.get_layer("head").bias)
    np.testing.assert_allclose(maps.mean(axis=(0, 1)) + bias, logits, atol=1e-4)


def test_map_is_laid_over_the_picture(page, folder):
    page.select_option("#model", "model_features")
    choose(page, draw((255, 0, 0), (0, 0, 255)))
    page.locator("#answer.found").wait_for()
    names = page.locator("#classes .label").all_inner_texts()
    options = page.locator("#map option").all_inner_texts()
    assert options == ["The model's input", *(f"What speaks for {name}" for name in names)]
    assert page.locator("#legend").is_hidden()
    before = np.reshape(page.locator("#input").evaluate(CANVAS), (8, 8, 4))
    page.locator("#map").focus()
    page.select_option("#map", label="What speaks for red")
    page.locator("#legend").wait_for()
    shown = np.reshape(page.locator("#input").evaluate(CANVAS), (8, 8, 4))
    image = np.repeat([[(255, 0, 0)] * 4 + [(0, 0, 255)] * 4], 8, axis=0).astype("uint8")
    maps = class_maps(colour_model(), image, range(3))
    share = maps[0] / np.abs(maps).max()
    ends = np.where(share[..., None] < 0, (178, 24, 43), (33, 102, 172))
    colours = 247 + np.abs(share[..., None]) * (ends - 247)
    expected = 0.4 * 85 + 0.6 * colours.repeat(4, axis=0).repeat(4, axis=1)
    np.testing.assert_allclose(shown[..., :3], expected, atol=1.5)
    assert page.locator("#input").get_attribute("aria-label").startswith("What speaks for red")
    page.select_option("#map", "-1")
    page.locator("#legend").wait_for(state="hidden")
    np.testing.assert_array_equal(
        np.reshape(page.locator("#input").evaluate(CANVAS), (8, 8, 4)), before
    )
    page.select_option("#model", "several")
    page.locator("#answer.found").wait_for()
    assert page.locator("#maps").is_hidden()  # its file has no maps


def test_labels_that_apply_are_marked(page, folder):
    classifier = load(folder / "several" / "model.tflite")
    page.select_option("#model", "several")
    for number, colours in enumerate([((255, 0, 0),), ((255, 0, 0), (0, 0, 255)), ((0, 0, 0),)]):
        picture = draw(*colours)
        choose(page, picture, f"{number}.png")
        page.locator(f"#preview[alt$='{number}.png']").wait_for()
        page.locator("#answer.found").wait_for()
        expected = classifier.classify(picture)
        shares = page.locator("#classes .percent").all_inner_texts()
        assert shares == [f"{100 * probability:.1f} %" for _, probability in expected]
        found = classifier.find_labels(picture)
        assert page.locator("#classes .applies .label").all_inner_texts() == [n for n, _ in found]
        texts = [f"{label}, {100 * probability:.1f} %" for label, probability in found]
        assert page.inner_text("#answer") == ("; ".join(texts) or "No label applies")
