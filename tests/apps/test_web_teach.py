"""The page's tab that learns classes from a visitor's pictures."""

import json
import shutil

import numpy as np
import pytest
from load_app import APPS
from pictures import encode
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from web_page import as_text, call, give, read_problem

from keras_gmlp.data.images.read_image import read_views
from keras_gmlp.inference.page_head import add_head
from keras_gmlp.utils.sources import DEFAULT_BACKBONE, FEATURES_FIRST, find_model
from keras_gmlp.weights.loading import load

SOURCE = find_model(DEFAULT_BACKBONE, FEATURES_FIRST)[0]
DIGITS = (4, 7)  # the model was trained on photographs
CLASSIFY = """
  const [learned, files] = given, opened = await open("small"), rows = [];
  for (const file of files) {
    rows.push(head.headLogits(learned, await opened.viewFeatures(await read(file), learned.parts)));
  }
  return rows;"""
FIT = """
  const learned = await head.fitHead(...given);
  return given[0].map((row) => head.headLogits(learned, [row]));"""


def pictures_of(digit):
    digits = load_digits()
    images = digits.images[digits.target == digit] * 255 / 16
    np.random.default_rng(0).shuffle(images)  # neighbours are of one writer
    return [encode(Image.fromarray(image.astype("uint8"))) for image in images]


@pytest.fixture(scope="module")
def pictures():
    """PNG files of two digits."""
    return [pictures_of(digit) for digit in DIGITS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    shutil.copy(SOURCE, folder / "small.tflite")
    return folder


@pytest.fixture
def page(opened):
    """Each test starts with two empty classes."""
    opened.reload()
    opened.locator("#teach-model option").first.wait_for(state="attached")
    opened.click("#tab-teach")
    return opened


def name_classes(page, *names):
    for number, name in enumerate(names):
        page.get_by_label("Name").nth(number).fill(name)


def add(page, number, files, name="picture.png"):
    """Adds files to a class, counted from 0."""
    files = [{"name": name, "mimeType": "image/png", "buffer": file} for file in files]
    page.locator(".files").nth(number).set_input_files(files)


def teach(page, pictures, count=10):
    """Teaches two classes by the first pictures of each."""
    name_classes(page, "four", "seven")
    for number, files in enumerate(pictures):
        add(page, number, files[:count])
    page.click("#learn")
    page.get_by_text("Knows four, seven. Try a picture.").wait_for()


def try_picture(page, file, name="picture.png"):
    page.set_input_files("#try", {"name": name, "mimeType": "image/png", "buffer": file})


def download(page, path):
    with page.expect_download() as downloading:
        page.click("#download")
    assert downloading.value.suggested_filename == "classifier.json"
    downloading.value.save_as(path)
    return json.loads(path.read_text())


def test_learns_two_digits_that_the_model_never_saw(page, pictures, tmp_path):
    teach(page, pictures)
    head = download(page, tmp_path / "classifier.json")
    assert head["labels"] == ["four", "seven"]
    assert head["parts"] == [[0.75, 0.5, 0.5], [0.5, 0.5, 0.5]]
    classifier = add_head(load(SOURCE), tmp_path / "classifier.json")
    others = [as_text(file) for files in pictures for file in files[10::9]]
    targets = [number for number, files in enumerate(pictures) for _ in files[10::9]]
    cat = encode(Image.open(APPS.parent / "docs" / "cat.jpg"))
    *logits, of_cat = np.array(call(page, CLASSIFY, [head, [*others, as_text(cat)]]))
    assert (np.argmax(logits, -1) == targets).mean() >= 0.9
    for file, found in ((pictures[0][10], logits[0]), (cat, of_cat)):
        expected = classifier.logits(read_views(file, classifier.image_shape, classifier.parts))
        np.testing.assert_allclose(found, expected.mean(0), atol=0.05)  # 8-bit runtimes round
    for number, name in enumerate(head["labels"]):
        try_picture(page, pictures[number][0], f"{name}.png")
        page.get_by_alt_text(f"Your picture: {name}.png").wait_for()
        assert page.inner_text("#teach-answer").startswith(f"{name}, ")


@pytest.mark.parametrize("classes", [2, 3])
def test_head_is_scikit_learns(page, classes):
    random = np.random.default_rng(0)
    targets = np.repeat(range(classes), (10, 7, 4)[:classes])
    features = random.normal(3, 2, (len(targets), 8)) + targets[:, None]
    features[:, 5] = 1  # the same in all pictures
    given = [features.tolist(), targets.tolist(), classes]
    logits = np.array(call(page, FIT, given))
    deviation = np.where(features.std(0), features.std(0), 1)
    rows = (features - features.mean(0)) / deviation / np.sqrt(features.shape[1])
    # Of two classes scikit-learn penalizes one vector, the difference of ours.
    strength = 20 if classes == 2 else 10
    expected = LogisticRegression(C=strength, tol=1e-8, max_iter=1000).fit(rows, targets)
    found = np.exp(logits - logits.max(-1, keepdims=True))
    found /= found.sum(-1, keepdims=True)
    np.testing.assert_allclose(found, expected.predict_proba(rows), atol=1e-4)
    np.testing.assert_array_equal(logits, call(page, FIT, given))


def test_downloaded_classifier_opens_again(page, pictures, tmp_path):
    teach(page, pictures, 3)
    saved = tmp_path / "classifier.json"
    head = download(page, saved)
    try_picture(page, pictures[0][9])
    page.locator("#teach-answer.found").wait_for()
    answer = page.inner_text("#teach-answer")
    page.reload()
    give(page, "drop", [saved.read_bytes()], name="mine.json")
    page.get_by_text("Knows four, seven. Try a picture.").wait_for()
    give(page, "drop", [pictures[0][9]])
    page.locator("#teach-answer.found").wait_for()
    assert page.inner_text("#teach-answer") == answer
    give(page, "drop", [json.dumps({**head, "parts": []}).encode()], name="mine.json")
    page.get_by_text(answer).wait_for(state="detached")  # of the whole picture only
    assert page.inner_text("#teach-answer").split(",")[0] == answer.split(",")[0]
    wrong = {
        "not on this server": {**head, "model_sha256": "0" * 64},
        "weights in a row": {**head, "weights": [[1, 2], [3, 4]]},
        "no classifier of this page": {**head, "parts": [[0, 0.5, 0.5]]},
    }
    for reason, changed in wrong.items():
        give(page, "drop", [json.dumps(changed).encode()], name="mine.json")
        page.get_by_text(reason).wait_for()
        assert read_problem(page, "#teach-problem").startswith("mine.json: ")


def test_what_is_missing_is_one_line(page, pictures):
    name_classes(page, "a", " a ")
    page.click("#learn")
    page.get_by_text("Two classes are named a").wait_for()
    name_classes(page, "a\u2028", "b")
    add(page, 0, pictures[0][:1])
    page.click("#learn")
    page.get_by_text("b has no pictures. Add some").wait_for()
    add(page, 1, [pictures[1][0], b"text"], "notes.txt")
    assert read_problem(page, "#teach-problem").startswith("Left out: notes.txt: ")
    assert page.get_by_text("1 picture", exact=True).count() == 2
    page.click("#learn")
    page.get_by_text("Knows a, b.").wait_for()
    assert page.inner_text("#teach-problem") == ""


def test_classes_and_pictures_come_and_go(page, pictures):
    assert not page.locator(".remove").first.is_visible()  # at least two classes
    for _ in range(8):
        page.click("#add-class")
    assert not page.is_visible("#add-class")
    for _ in range(8):
        page.locator(".remove").first.click()
    assert page.locator("legend").all_inner_texts() == ["Class 1", "Class 2"]
    give(page, "drop", pictures[0][:3], ".class:last-child .name")
    page.get_by_text("3 pictures").wait_for()
    page.get_by_label("Remove given.png").nth(1).click()
    page.get_by_text("2 pictures").wait_for()
    page.click("#tab-pictures")
    page.keyboard.press("ArrowRight")
    assert page.locator(".thumbnails img").count() == 2
    for width in (320, 1280):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_camera(page, pictures):
    page.locator(".film").first.click()
    page.locator("#teach-viewfinder").wait_for()
    track = page.locator("#teach-viewfinder").evaluate_handle("v => v.srcObject.getTracks()[0]")
    page.click("#teach-take")
    page.click("#teach-take")
    page.get_by_text("2 pictures").wait_for()
    assert track.evaluate("track => track.readyState") == "live"
    page.click("#tab-pictures")
    assert track.evaluate("track => track.readyState") == "ended"
    page.click("#tab-teach")
    assert not page.is_visible("#teach-viewfinder")
    name_classes(page, "screen", "digit")
    add(page, 1, pictures[0][:2])
    page.click("#learn")
    page.locator("#try-camera").click()
    page.click("#teach-take")
    page.get_by_alt_text("Your picture: camera.png").wait_for()
    assert page.inner_text("#teach-answer").startswith("screen, ")
