"""The page gives Python's answers, shows them and reports errors."""

import json
import re
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from load_app import APPS
from pictures import encode, png_header, scene
from PIL import Image
from random_models import random_model
from web_page import (
    as_text,
    call,
    choose,
    give,
    open_page,
    read_answer,
    read_problem,
)

import keras_gmlp
from keras_gmlp.export import writing
from keras_gmlp.inference.card_update import update_card
from keras_gmlp.tasks.confidence import energies
from keras_gmlp.utils.card import write_card
from keras_gmlp.weights.loading import load

RANDOM = np.random.default_rng(0)
NAME = "gmlp_n4_32-cifar10"
SAVED = APPS.parent / "saved_models" / NAME
LOGITS = """
  const opened = await open(given[0]), rows = [];
  for (const file of given[1]) {
    rows.push(Array.from(await opened.logits(opened.prepare(await read(file)))));
  }
  return rows;"""

ENERGY = """
  const opened = await open("calibrated");
  const logits = await opened.logits(opened.prepare(await read(given)));
  const { temperature } = opened.confidence;
  return [confidence.energy(logits, temperature), confidence.isKnown(logits, opened.confidence)];"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An included model, a small one in three precisions, one without names, broken ones."""
    folder = tmp_path_factory.mktemp("models")
    (folder / NAME).mkdir()
    shutil.copy(SAVED / "model.tflite", folder / NAME)
    # It would reject some pictures.
    update_card(folder / NAME / "model.tflite", {"energy_threshold": None})
    saved, labels = folder / "small", [f"{name}_class" for name in "abcde"]
    calibration = np.random.default_rng(0).integers(0, 256, (20, 16, 16, 3), "uint8")
    names = ["tflite", "tflite_float32", "tflite_int8"]
    writing.export(random_model("gmlp"), saved, names, labels, {"preset": "small"}, calibration)
    whole = (saved / "model.tflite").read_bytes()
    for name, threshold in (("calibrated", 0.0), ("rejecting", -99.0), ("wrong_temperature", 0.0)):
        shutil.copy(saved / "model_float32.tflite", folder / f"{name}.tflite")
        entries = {"temperature": 0.7, "energy_threshold": threshold}
        update_card(folder / f"{name}.tflite", entries)
    update_card(folder / "wrong_temperature.tflite", {"temperature": -1})
    nameless = keras_gmlp.gMLP(8, 1, 16, input_shape=(8, 8, 3), patch_size=4, classes=3)
    writing.export(nameless, folder / "nameless", ["tflite"])
    (folder / "wrong_text.tflite").write_bytes(b"no model at all\n" * 99)
    (folder / "wrong_card.tflite").write_bytes(whole[:-1])
    flipped = bytearray((folder / "nameless" / "model.tflite").read_bytes())
    flipped[len(flipped) // 3] ^= 1
    (folder / "wrong_bit.tflite").write_bytes(flipped)
    two = [keras.Input((8, 8, 3), 2), keras.layers.Flatten(), keras.layers.Dense(3)]
    maps = [keras.Input((8, 8, 3), 1), keras.layers.Conv2D(2, 1)]
    for name, layers in (("wrong_batch", two), ("wrong_output", maps)):
        converter = tf.lite.TFLiteConverter.from_keras_model(keras.Sequential(layers))
        (folder / f"{name}.tflite").write_bytes(converter.convert())
    write_card(folder / "wrong_batch.tflite", nameless)
    return folder


@pytest.fixture
def page(opened):
    opened.set_viewport_size({"width": 1280, "height": 720})
    opened.select_option("#model", NAME)
    return opened


@pytest.fixture(scope="module")
def pictures():
    """PNG files of ten pictures in many sizes."""
    return [encode(scene(RANDOM, *RANDOM.integers(20, 100, 2))) for _ in range(10)]


@pytest.mark.parametrize(
    ("name", "file", "tolerance"),
    [
        # Runtimes round activations to 8 bits differently: the tolerance is half of the difference
        # between 8 bits and float32 in Python, whatever the model's scale.
        ("small", "small/model.tflite", None),
        ("small/model_float32", "small/model_float32.tflite", 1e-3),
        ("small/model_int8", "small/model_int8.tflite", 1e-3),
    ],
)
def test_logits_are_pythons(page, folder, pictures, name, file, tolerance):
    found = np.array(call(page, LOGITS, [name, [as_text(picture) for picture in pictures]]))
    classifier = load(folder / file)
    images = [classifier.read(picture)[None] for picture in pictures]
    expected = np.concatenate([classifier.logits(image) for image in images])
    if tolerance is None:
        whole = load(folder / "small" / "model_float32.tflite")
        exact = np.concatenate([whole.logits(image) for image in images])
        tolerance = np.abs(expected - exact).max() / 2
    np.testing.assert_array_equal(found.argmax(-1), np.argmax(expected, -1))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def test_answer_is_pythons(page, folder, pictures):
    page.select_option("#model", "calibrated")
    choose(page, pictures[0])
    classifier = load(folder / "calibrated.tflite")
    expected = classifier.answer(pictures[0])
    shown = read_answer(page)
    for (label, share), row in zip(shown, expected, strict=True):
        assert label == row["label"]
        assert share == pytest.approx(100 * row["score"], abs=0.06)
    assert page.locator("#answer").inner_text().startswith(shown[0][0])
    shown_times = r"[\d.]+ ms to read and scale, [\d.]+ ms to classify"
    assert re.search(shown_times, page.inner_text("#time"))
    energy = energies(classifier.logits(classifier.read(pictures[0])[None]), 0.7)[0]
    found = call(page, ENERGY, as_text(pictures[0]))
    assert found == [pytest.approx(energy, rel=1e-5), expected[0]["known"]]
    page.select_option("#model", "rejecting")
    page.get_by_text("Not one of the classes I know").wait_for()
    assert page.locator("#classes li").count() == 0


def test_list_shows_preset_and_accuracy(page):
    options = page.locator("#model option").all_inner_texts()
    found = json.loads((SAVED / "metrics.json").read_text())["test_accuracy"]
    assert f"gmlp_n4_32 · {100 * found:.1f} % · 1.0 MB" in options
    accuracy = f"Test accuracy of the original model on cifar10: {100 * found:.1f} %."
    page.get_by_text(accuracy).wait_for()
    assert "Classes: airplane, automobile, bird" in page.inner_text("#details")


def test_dropped_or_pasted(page, pictures):
    for event in ("drop", "paste"):
        give(page, event, pictures[:1])
        assert len(read_answer(page)) == 5
    give(page, "drop", pictures[:2])
    page.get_by_text("Received 2 files; the first is classified.").wait_for()


def test_camera(page):
    page.click("#open-camera")
    page.locator("#viewfinder").wait_for()
    track = page.evaluate_handle("viewfinder.srcObject.getTracks()[0]")
    page.click("#take")
    page.get_by_alt_text("Your picture: camera.png").wait_for()
    assert len(read_answer(page)) == 5
    assert track.evaluate("track => track.readyState") == "ended"
    page.click("#open-camera")
    page.locator("#viewfinder").wait_for()
    page.get_by_text("Ready for a picture.").wait_for()
    assert page.locator("#classes li").count() == 0  # they belonged to the picture before
    page.select_option("#model", index=1)
    page.get_by_text("Ready for a picture.").wait_for()
    page.click("#close-camera")
    assert page.evaluate("viewfinder.srcObject") is None
    assert page.locator("#preview").is_visible()
    assert len(read_answer(page)) == 5


BAD = {
    "empty.png": (b"", "the file is empty"),
    "huge.png": (encode(Image.new("1", (10_001, 10_000))), "10001 x 10000 pixels are more than"),
    "bomb.png": (png_header(60_000, 60_000), "pixels are more than|cannot read it"),
    "half.png": (encode(Image.effect_noise((64, 64), 90))[:2000], "cannot be decoded"),
}


def test_bad_pictures(page, pictures):
    for name, (content, reason) in BAD.items():
        choose(page, content, name)
        page.locator(f"#problem:text-matches('^{name}: ')").wait_for()
        assert re.search(reason, read_problem(page))
    choose(page, pictures[0])
    read_answer(page)
    assert page.inner_text("#problem") == ""


WRONG = {
    "wrong_text": "",
    "wrong_card": "class names",
    "wrong_bit": "digest",
    "wrong_temperature": "temperature",
    "wrong_batch": "batch",
    "wrong_output": "logits",
}


def test_broken_models(page, pictures):
    choose(page, pictures[0])
    for name, reason in WRONG.items():
        page.select_option("#model", name)
        page.locator(f"#problem:text-matches('^{name}: ')").wait_for()
        line = read_problem(page)
        assert re.match(rf"{name}: cannot be loaded \(.+\)\. Choose another model\.$", line)
        assert reason in line
        assert page.inner_text("#details") == ""
    page.select_option("#model", NAME)
    assert len(read_answer(page)) == 5
    assert page.inner_text("#problem") == ""


def test_without_threads(browser, address, pictures):
    script = "Object.defineProperty(globalThis, 'crossOriginIsolated', { value: false })"
    with open_page(browser, address, script) as page:
        page.select_option("#model", NAME)
        choose(page, pictures[0])
        assert len(read_answer(page)) == 5


def test_by_keyboard(page):
    page.reload()
    page.get_by_text("Ready for a picture").wait_for()
    page.locator("#open-camera").wait_for()
    reached = []
    for _ in range(3):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id"))
        outline = """() => {
          const at = document.activeElement.closest("label") ?? document.activeElement;
          return getComputedStyle(at).outlineStyle;
        }"""
        assert page.evaluate(outline) == "solid"
    assert reached == ["file", "open-camera", "model"]
    assert page.get_by_role("combobox", name="Model").count() == 1
    assert page.get_by_label("Choose a picture").count() == 1
    assert page.get_by_role("status").count() == 1


def test_only_image_models_have_no_tab_for_texts(page):
    page.evaluate("location.hash = 'tab=texts'")
    page.wait_for_timeout(200)
    assert page.is_visible("#pictures")
    assert not page.is_visible("#tabs")
