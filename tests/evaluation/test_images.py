"""Evaluation of models on folders and data sets, and the program for it."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from colours import LABELS, save_colour_model
from PIL import Image
from read_table import read_table

from keras_gmlp import data
from keras_gmlp.data.validation import divide_training
from keras_gmlp.evaluation import labelled
from keras_gmlp.evaluation.labelled import LabelledImages
from keras_gmlp.evaluation.scoring import evaluate
from keras_gmlp.export.writing import export
from keras_gmlp.programs import evaluate as program
from keras_gmlp.programs.shared import cli
from keras_gmlp.tasks import image_classification
from keras_gmlp.tasks.classifier import Classifier
from keras_gmlp.utils import environment as optional

HUES = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "grey": (90, 90, 90)}


def classifier(labels=LABELS, shape=(8, 8, 3), path="colours.tflite", **preparation):
    """Returns a classifier whose logits are the mean colours, in any order of classes."""
    order = [["red", "green", "blue"].index(label) if label in LABELS else 0 for label in labels]

    def logits(images):
        means = images.mean((1, 2)).repeat(3 // images.shape[-1], axis=-1)[:, order] / 50
        known = [label in LABELS for label in labels]
        return np.where(known, means, -9).astype("float32")

    return Classifier(logits, shape, tuple(labels), Path(path), "image_classification", preparation)


def save(path, *colours):
    """Writes a square picture with equal columns of some colours."""
    path.parent.mkdir(parents=True, exist_ok=True)
    row = np.repeat(np.array([HUES[colour] for colour in colours], "uint8"), 8, axis=0)
    Image.fromarray(np.tile(row, (len(row), 1, 1))).save(path)


@pytest.fixture
def photos(tmp_path):
    """Six pictures of each colour; of red, one is green, one mostly blue. Sorted: blue first."""
    for colour in LABELS:
        for i in range(6):
            save(tmp_path / "photos" / colour / f"{i}.png", colour)
    save(tmp_path / "photos" / "red" / "4.png", "green")
    save(tmp_path / "photos" / "red" / "5.png", "blue", "red", "blue")
    return tmp_path / "photos"


MODELS = {
    "colours": classifier(),
    "reversed": classifier(LABELS[::-1]),
    "two": classifier(("blue", "red")),
    "more": classifier((*LABELS, "grey")),
    "none": classifier(("cat", "dog")),
}


@pytest.fixture
def run(app, monkeypatch):
    """Runs the program with classifiers that cost nothing to load, by name or one for all."""

    def run(*arguments, model=None):
        load = MODELS.__getitem__ if model is None else lambda name: model
        monkeypatch.setattr(cli, "load_model", load)
        return app("evaluate", *arguments)

    return run


def test_classes_are_matched_by_name(photos):
    images = LabelledImages(photos, "all")
    assert images.labels == ("blue", "green", "red")
    scores, result = evaluate([MODELS["colours"], MODELS["reversed"]], images)
    one, other = scores["models"]
    assert one["accuracy"] == other["accuracy"] == pytest.approx(16 / 18, abs=1e-6)
    assert one["balanced_accuracy"] == pytest.approx((4 / 6 + 2) / 3, abs=1e-6)
    assert (one["agreement"], other["agreement"]) == (1, 1)
    assert {"label": "red", "prediction": "green", "images": 1} in one["confusion"]
    wrong = [result.names[index] for index, _ in result.errors]
    assert wrong == [str(photos / "red" / "4.png"), str(photos / "red" / "5.png")]  # worst first
    np.testing.assert_array_equal(result.errors[0][1], np.full((8, 8, 3), HUES["green"]))


def test_predictions_by_hand_and_images_that_are_left_out(photos, monkeypatch):
    _, whole = evaluate([classifier()], LabelledImages(photos, "all"))
    exponential = np.exp(255 / 50)
    right, wrong = exponential / (exponential + 2), 1 / (exponential + 2)
    for name, likelihood in (("0.png", right), ("4.png", wrong)):
        place = whole.names.index(str(photos / "red" / name))
        assert whole.probabilities[place] == pytest.approx(right)
        assert whole.log_likelihoods[place] == pytest.approx(np.log(likelihood))
    assert whole.ranks[place] == 1  # blue is as probable as red
    monkeypatch.setattr(labelled, "BATCH", 4)
    monkeypatch.setattr(image_classification, "WORST", 1)
    seen, model = [], classifier(("red", "green"))
    spy = dataclasses.replace(model, logits=lambda x: seen.append(len(x)) or model.logits(x))
    _, parts = evaluate([spy], LabelledImages(photos, "all"))
    assert max(seen) <= 4
    assert list(parts.names) == [name for name in whole.names if "blue" not in Path(name).parts]
    wrong = [name for name, right in zip(parts.names, parts.correct, strict=True) if not right]
    assert (
        wrong
        == [parts.names[index] for index, _ in parts.errors]
        == [str(photos / "red" / "4.png")]
    )


def test_card_decides_how_images_are_cut_and_fitted(tmp_path):
    for i in range(5):
        save(tmp_path / "red" / f"{i}.png", "green", "red", "green")
        save(tmp_path / "green" / f"{i}.png", "green")
    images, found = LabelledImages(tmp_path, "all"), []
    for model in (classifier(), classifier(crop=0.25)):
        found.append(evaluate([model], images)[1].correct.mean())
    assert found == [0.5, 1.0]
    with pytest.raises(ValueError, match="crop"):
        evaluate([classifier("0123", (8, 8, 1), crop=0.25)], LabelledImages("digits"))
    padded = classifier(tuple("0123456789"), (8, 16, 1), fit="pad")
    images, _ = next(LabelledImages("digits").batches(padded))
    expected, _ = data.load("digits", (8, 16), fit="pad").test.arrays()
    np.testing.assert_array_equal(images, expected[: len(images)])


def test_data_set_by_name():
    digits, parts = data.load("digits"), ["train", "test"]
    expected = [digits.labels[i] for name in parts for i in getattr(digits, name).labels]
    images = LabelledImages("digits", "all")
    assert len(images) == len(expected) == 1797
    _, result = evaluate([classifier(tuple("9876543210"), (8, 8, 1))], images)
    assert [result.classes[i] for i in result.labels] == expected
    assert result.names[0] == f"{parts[0]}/0"


def test_formats_agree(tmp_path, photos, app):
    model = save_colour_model(tmp_path)
    export(model, tmp_path, ["tflite"], LABELS)
    paths = [str(tmp_path / name) for name in ("model.keras", "model.tflite")]
    out = tmp_path / "report"
    assert app("evaluate", *paths, "--data", photos, "--split", "all", "--out", out)[0] == 0
    rows = json.loads((out / "report.json").read_text())["models"]
    assert {row["agreement"] for row in rows} == {1.0}
    assert {row["accuracy"] for row in rows} == {round(16 / 18, 6)}
    for row in rows:
        assert row["log_likelihood"] == pytest.approx(rows[0]["log_likelihood"], abs=0.02)
    assert {path.stem for path in out.glob("*.png")} == {"confusion", "errors", "reliability"}
    table = read_table(out / "predictions.csv")
    assert len(table) == 18
    assert table[-1]["path"] == str(photos / "red" / "5.png")
    assert [table[-1][key] for key in ("label", "prediction", "correct")] == ["red", "blue", "0"]
    assert 0.5 < float(table[-1]["probability"]) <= 1


def test_program_prints_the_report(run, photos):
    given = ["--data", photos, "--split", "all"]
    code, out, _ = run("colours", "reversed", *given)
    assert code == 0
    out = " ".join(out.split())
    assert "accuracy 88.89 %" in out
    assert "red 100.00 % 66.67 % 80.00 % 6" in out
    _, out, _ = run("more", "two", *given)
    out = " ".join(out.split())
    assert "images 12 of 18" in out
    assert "unknown classes green (left out)" in out
    assert "missing classes green, grey" in out


def test_failures_are_one_line(run, photos):
    for label in ("blue", "red"):
        for path in (photos / label).glob("[45].png"):
            path.unlink()
    reasons = {"none": "none of its classes", "two": "none has a class", "colours": "green/4.png"}
    for model, reason in reasons.items():
        if model == "colours":
            (photos / "green" / "4.png").write_bytes(b"no image")
        code, out, error = run(model, "--data", photos)
        note, line = error.splitlines()
        assert (code, out, "every fifth" in note) == (1, "", True)
        assert reason in line


def test_a_package_that_lacks_is_named_before_the_work(run, photos, monkeypatch):
    monkeypatch.setattr(optional, "is_installed", lambda package: False)
    code, _, error = run("none", "--data", photos)
    assert (code, "sklearn" in error) == (1, True), error


def test_a_run_on_a_set_by_name_is_evaluated_on_the_images_that_it_trained_on(tmp_path):
    parts, labels = {"folds": 3, "fold": 1, "validation": 0.4}, tuple("0123456789")
    (tmp_path / "recipe.json").write_text(json.dumps({"data": "digits", "fraction": 1.0, **parts}))
    divided = divide_training(data.load("digits"), **parts)
    for split in ("train", "validation"):
        options = program.main.parse([str(tmp_path), "--data", "digits", "--split", split])
        _, found = evaluate([classifier(labels, (8, 8, 1))], program.choose_images(options))
        expected = [labels[i] for i in getattr(divided, split).labels]
        assert [found.classes[i] for i in found.labels] == expected
