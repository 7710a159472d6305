"""Evaluation of models that give any number of labels, and the program for it."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from read_table import read_table
from scipy.special import expit
from sklearn.metrics import average_precision_score

from keras_gmlp.evaluation.labelled import LabelledImages
from keras_gmlp.evaluation.scoring import evaluate
from keras_gmlp.programs.shared import cli
from keras_gmlp.tasks.classifier import Classifier
from keras_gmlp.tasks.confidence import Confidence
from keras_gmlp.tasks.label_scores import LabelPredictions

COLOURS = ("red", "green", "blue")
# Colours of six pictures, and their labels in the table, of which the last two are wrong.
PICTURES = [
    ((255, 0, 0), "red"),
    ((0, 255, 0), "green"),
    ((255, 255, 0), "red|green"),
    ((0, 0, 0), ""),
    ((200, 200, 0), "red"),
    ((0, 0, 150), "blue|green"),
]


def classifier(labels=COLOURS, thresholds=None, path="colours.tflite"):
    """Returns a classifier whose logits are the mean colours, at most 5 and at least -5."""
    columns = [COLOURS.index(label) if label in COLOURS else 0 for label in labels]

    def logits(images):
        return (images.mean((1, 2))[:, columns] / 25.5 - 5).astype("float32")

    thresholds = (0.5,) * len(labels) if thresholds is None else thresholds or None
    task = "multi_label_classification" if thresholds else "image_classification"
    confidence = Confidence(thresholds=thresholds)
    return Classifier(logits, (8, 8, 3), tuple(labels), Path(path), task, confidence=confidence)


@pytest.fixture
def table(tmp_path):
    rows = ["path,label"]
    for number, (colour, labels) in enumerate(PICTURES):
        Image.new("RGB", (8, 8), colour).save(tmp_path / f"{number}.png")
        rows.append(f"{number}.png,{labels}")
    (tmp_path / "colours.csv").write_text("\n".join(rows) + "\n")
    return tmp_path / "colours.csv"


def test_predictions_and_scores_by_hand(table):
    images = LabelledImages(table, "all")
    report, result = evaluate([classifier()], images)
    assert result.labels == images.labels == ("blue", "green", "red")
    assert [Path(name).name for name in result.names] == [f"{i}.png" for i in range(6)]
    truth = [[0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 0, 0], [0, 0, 1], [1, 1, 0]]
    given = [[0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 0, 0], [0, 1, 1], [1, 0, 0]]
    np.testing.assert_array_equal(result.truth, truth)
    np.testing.assert_array_equal(result.given, given)
    pixels = np.array([colour[::-1] for colour, _ in PICTURES])
    np.testing.assert_allclose(result.probabilities, expit(pixels / 25.5 - 5), atol=1e-6)
    # Of the sixth picture green is wrong by 1 - sigmoid(-5), of the fifth by sigmoid(2.84).
    assert [index for index, _ in result.errors] == [5, 4]
    said = [result.describe(index)[:2] for index, _ in result.errors]
    assert said == [("blue, green", "not green"), ("red", "green")]
    assert result.errors[1][1][0, 0].tolist() == [200, 200, 0]
    (scores,) = report["models"]
    assert scores["images"] == 6
    assert scores["exact_match"] == round(4 / 6, 6)
    green = scores["classes"][1]
    assert (green["label"], green["threshold"], green["images"]) == ("green", 0.5, 3)
    assert (green["precision"], green["recall"]) == (round(2 / 3, 6), round(2 / 3, 6))
    columns = zip(np.array(truth).T, result.probabilities.T, strict=True)
    expected = [average_precision_score(*column) for column in columns]
    found = [row["average_precision"] for row in scores["classes"]]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert scores["mean_average_precision"] == pytest.approx(np.mean(expected), abs=1e-6)
    assert scores["mean_f1"] == pytest.approx((1 + 2 / 3 + 1) / 3, abs=1e-6)


def test_calibration_error_compares_with_the_share_that_applies():
    truth = np.array([[1, 0], [0, 0], [1, 0], [1, 0]], bool)
    probabilities = np.array([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.9, 0.1]])
    result = LabelPredictions(("",) * 4, ("a", "b"), truth, probabilities, np.array([0.5, 0.5]))
    scores = result.score()
    assert scores["calibration_error"] == pytest.approx((0.15 + 0.1) / 2)  # 0.75 and 0 of a bin
    assert [row["label"] for row in scores["classes"]] == ["a"]  # "b" has no image


def test_labels_are_matched_by_name_and_thresholds_obeyed(table):
    images = LabelledImages(table, "all")
    models = [classifier(), classifier(("green", "cat", "red"), (0.97, 0.5, 0.5))]
    scores, first = evaluate(models, images)
    _, second = evaluate(models[::-1], images)
    assert first.labels == second.labels == ("green", "red")
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    assert first.given[4].tolist() == [True, True]
    assert second.given[4].tolist() == [False, True]
    assert scores["unknown_classes"] == ["blue"]
    assert [row["agreement"] for row in scores["models"]] == [1, round(11 / 12, 6)]
    assert scores["models"][1]["exact_match"] > scores["models"][0]["exact_match"]
    scores, result = evaluate([classifier(("cat", "green"))], images)  # one common label
    assert (result.labels, result.left_out) == (("green",), ("cat",))
    (green,) = scores["models"][0]["classes"]
    assert (green["images"], green["precision"], green["recall"]) == (3, 0.666667, 0.666667)
    assert (scores["unknown_classes"], scores["missing_classes"]) == (["blue", "red"], ["cat"])


def test_images_of_one_label_count_as_having_that_one(table, tmp_path):
    text = table.read_text().splitlines()
    (tmp_path / "single.csv").write_text("\n".join([*text[:3], text[6].replace("|green", "")]))
    _, result = evaluate([classifier()], tmp_path / "single.csv", "all")
    np.testing.assert_array_equal(result.truth, [[0, 0, 1], [0, 1, 0], [1, 0, 0]])


@pytest.fixture
def run(app, table, monkeypatch):
    """Runs the program on the table with classifiers that cost nothing to load."""
    models = {
        "colours": classifier(),
        "strict": classifier(thresholds=(0.99, 0.99, 0.99)),
        "single": classifier(thresholds=(), path="single.tflite"),
    }
    monkeypatch.setattr(cli, "load_model", models.__getitem__)
    return lambda *given: app("evaluate", "--data", table, "--split", "all", *given)


def test_program_prints_and_writes_the_report(run, tmp_path):
    code, out, _ = run("colours", "strict", "--out", tmp_path / "o")
    assert code == 0
    assert "exact match 66.67 %" in " ".join(out.split())
    assert out.count("strict") == 1
    names = {path.name for path in (tmp_path / "o").iterdir()}
    assert names == {"report.json", "predictions.csv", "errors.png", "reliability.png"}
    rows = read_table(tmp_path / "o" / "predictions.csv")
    found = [rows[4][key] for key in ("labels", "predictions", "correct")]
    assert found == ["red", "green|red", "0"]
    assert rows[3]["predictions"] == ""
    assert float(rows[0]["probability red"]) == pytest.approx(expit(5), abs=1e-6)
    _, out, _ = run("colours", "strict", "--json")
    report = json.loads(out)
    assert report["models"][0]["exact_match"] == round(4 / 6, 6)
    code, _, error = run("colours", "single")
    assert (code, "an image classifier" in error) == (1, True)
