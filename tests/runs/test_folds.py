"""Cross-validation: folds of the training images, their runs and the summary."""

import dataclasses
import json
import os
import statistics

import numpy as np
import pytest
from load_app import load_app
from PIL import Image

from keras_gmlp import data
from keras_gmlp.data import ImageData, Samples
from keras_gmlp.data.images.samples import from_pixels
from keras_gmlp.data.validation import make_folds


def numbered(labels):
    """Images whose pixels are their number."""
    images = np.arange(len(labels), dtype="uint8")[:, None, None, None] * np.ones((1, 2, 2, 1))
    return from_pixels(images.astype("uint8"), labels)


def test_each_image_is_tested_once_and_each_class_in_every_fold():
    labels = np.array([0] * 12 + [1] * 6 + [2] * 3)
    whole = ImageData("numbers", ("a", "b", "c"), (2, 2, 1), numbered(labels), numbered([0]))
    tested = []
    for fold in make_folds(whole, 3):
        (train, kept), (test, cut) = fold.train.arrays(), fold.test.arrays()
        assert np.bincount(cut).tolist() == [4, 2, 1]
        assert sorted([*train[:, 0, 0, 0], *test[:, 0, 0, 0]]) == list(range(21))
        np.testing.assert_array_equal(labels[train[:, 0, 0, 0]], kept)
        tested.extend(test[:, 0, 0, 0])
    assert sorted(tested) == list(range(21))
    with pytest.warns(UserWarning, match="only 3 members"):
        assert len(make_folds(whole, 4)) == 4
    with pytest.raises(ValueError, match="n_splits"):
        make_folds(whole, 1)


def test_a_group_stays_in_one_fold(tmp_path):
    for label in "ab":
        (tmp_path / label).mkdir()
        for i in range(24):
            Image.new("RGB", (4, 4)).save(tmp_path / label / f"{label}{i // 4}_{i}.png")
    patients = r"[ab]\d"
    whole = data.load(tmp_path, (4, 4), groups=patients)

    def groups(split):
        return {os.path.basename(path)[:2] for path in split.paths}

    folds = make_folds(whole, 2, patients)
    for fold in folds:
        assert groups(fold.train).isdisjoint(groups(fold.test))
        assert {name[:1] for name in groups(fold.test)} == {b"a", b"b"}
    assert sum(len(fold.test) for fold in folds) == len(whole.train)
    with pytest.raises(ValueError, match="groups"):
        make_folds(whole, 11, patients)


def forbid(places):
    raise AssertionError("the test images are read")


def test_runs_on_folds_resume_and_read_no_test_image(tmp_path, monkeypatch, capsys):
    def load(*arguments, original=data.load):
        digits = original(*arguments)
        test = Samples(digits.test.labels, digits.image_shape, forbid)
        return dataclasses.replace(digits, test=test)

    monkeypatch.setattr(data, "load", load)
    program = load_app("train")
    arguments = ["--image-size", "8", "--fraction", "0.1", "--epochs", "1", "--folds", "2"]
    arguments += ["--precision", "float32", "--set-model", "depth=1", "--out", str(tmp_path)]
    assert program.main([*arguments, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "folds.json").read_text()).items() <= summary.items()
    accuracies = summary["accuracies"]
    assert summary["accuracy_mean"] == pytest.approx(statistics.mean(accuracies), abs=1e-6)
    deviation = abs(accuracies[0] - accuracies[1]) / 2**0.5
    assert summary["accuracy_deviation"] == pytest.approx(deviation, abs=1e-6)
    recipe = json.loads((tmp_path / "fold-2" / "recipe.json").read_text())
    assert (recipe["folds"], recipe["fold"]) == (2, 2)
    card = (tmp_path / "fold-2" / "README.md").read_text("utf-8")
    assert "On fold 2 of 2, left out from the training images of `digits`;" in card
    assert "--folds 2" in card

    (tmp_path / "fold-2" / "metrics.json").write_text(
        json.dumps({"test_accuracy": 0.0, "epochs": 1, "parameters": 1})
    )
    assert program.main(arguments) == 0  # complete runs are loaded
    text = capsys.readouterr().out
    assert text.count("this run is complete already") == 2
    assert f"fold  1  {100 * accuracies[0]:6.2f} %\nfold  2    0.00 %\nmean " in text
    assert not list(tmp_path.glob("fold-*/model.tflite"))
