"""Evaluation of models on folders and data sets, and the program for it."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from colours import LABELS, colour_model
from load_app import APPS, load_app
from PIL import Image
from read_table import read_table

from keras_gmlp import data
from keras_gmlp.data.validation import divide_training
from keras_gmlp.evaluation import images as evaluation
from keras_gmlp.evaluation import labelled
from keras_gmlp.evaluation.images import evaluate, report
from keras_gmlp.evaluation.labelled import LabelledImages
from keras_gmlp.export.formats import export
from keras_gmlp.tasks.classifier import Classifier
from keras_gmlp.tasks.scores import Predictions
from keras_gmlp.utils import environment as optional
from keras_gmlp.utils.card import write_card

HUES = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "grey": (90, 90, 90)}


def classifier(labels=LABELS, shape=(8, 8, 3), path="colours.tflite", **preparation):
    """Returns a classifier whose logits are the mean colours, in any order of classes."""
    order = [["red", "green", "blue"].index(label) if label in LABELS else 0 for label in labels]

    def logits(images):
        means = images.mean((1, 2)).repeat(3 // images.shape[-1], axis=-1)[:, order] / 50
        known = [label in LABELS for label in labels]
        return np.where(known, means, -9).astype("float32")

    return Classifier(logits, shape, tuple(labels), Path(path), preparation)


def save(path, *colours):
    """Writes a square picture with equal columns of some colours."""
    path.parent.mkdir(parents=True, exist_ok=True)
    row = np.repeat(np.array([HUES[colour] for colour in colours], "uint8"), 8, axis=0)
    Image.fromarray(np.tile(row, (len(row), 1, 1))).save(path)


@pytest.fixture
def photos(tmp_path):
    """Six pictures of each colour; of red, one is green, one mostly blue. Sorted: blue first."""
    root = tmp_path / "photos"
    for colour in LABELS:
        for i in range(4):
            save(root / colour / f"{i}.png", colour)
    save(root / "red" / "4.png", "green")
    save(root / "red" / "5.png", "blue", "red", "blue")
    for colour in ("green", "blue"):
        save(root / colour / "4.png", colour)
        save(root / colour / "5.png", colour)
    return root


@pytest.fixture
def app(monkeypatch):
    """The program, with classifiers that cost nothing to load."""
    module = load_app("evaluate")
    models = {
        "colours": classifier(),
        "reversed": classifier(LABELS[::-1]),
        "two": classifier(("blue", "red")),
        "more": classifier((*LABELS, "grey")),
        "none": classifier(("cat", "dog")),
    }
    monkeypatch.setattr(module.cli, "load_classifier", models.__getitem__)
    return module


def test_classes_are_matched_by_name(photos):
    images = LabelledImages(photos, "all")
    assert images.labels == ("blue", "green", "red")
    results, errors = zip(*evaluate([classifier(), classifier(LABELS[::-1])], images), strict=True)
    scores = report(["one", "other"], results, images)
    one, other = scores["models"]
    assert one["accuracy"] == other["accuracy"] == pytest.approx(16 / 18, abs=1e-6)
    assert one["balanced_accuracy"] == pytest.approx((4 / 6 + 2) / 3, abs=1e-6)
    assert (one["agreement"], other["agreement"]) == (1, 1)
    assert {"label": "red", "prediction": "green", "images": 1} in one["confusion"]
    wrong = [results[0].names[index] for index, _ in errors[0]]
    assert wrong == [str(photos / "red" / "4.png"), str(photos / "red" / "5.png")]  # worst first
    np.testing.assert_array_equal(errors[0][0][1], np.full((8, 8, 3), HUES["green"]))


def test_predictions_by_hand(photos):
    ((result, _),) = evaluate([classifier()], LabelledImages(photos, "all"))
    exponential = np.exp(255 / 50)
    right, wrong = exponential / (exponential + 2), 1 / (exponential + 2)
    place = result.names.index(str(photos / "red" / "0.png"))
    assert result.probabilities[place] == pytest.approx(right)
    assert result.log_likelihoods[place] == pytest.approx(np.log(right))
    place = result.names.index(str(photos / "red" / "4.png"))
    assert result.probabilities[place] == pytest.approx(right)
    assert result.log_likelihoods[place] == pytest.approx(np.log(wrong))
    assert result.ranks[place] == 1  # blue is as probable as red


def test_images_that_are_left_out_leave_the_others_in_place(photos, monkeypatch):
    ((whole, _),) = evaluate([classifier()], LabelledImages(photos, "all"))
    monkeypatch.setattr(labelled, "BATCH", 4)
    monkeypatch.setattr(evaluation, "WORST", 1)
    seen, model = [], classifier(("red", "green"))
    spy = dataclasses.replace(model, logits=lambda x: seen.append(len(x)) or model.logits(x))
    ((parts, errors),) = evaluate([spy], LabelledImages(photos, "all"))
    assert max(seen) <= 4
    assert list(parts.names) == [name for name in whole.names if "blue" not in Path(name).parts]
    wrong = [name for name, right in zip(parts.names, parts.correct, strict=True) if not right]
    assert wrong == [parts.names[index] for index, _ in errors] == [str(photos / "red" / "4.png")]


def test_card_decides_how_files_are_cut(tmp_path):
    for i in range(5):
        save(tmp_path / "red" / f"{i}.png", "green", "red", "green")
        save(tmp_path / "green" / f"{i}.png", "green")
    wide, narrow = classifier(), classifier(crop=0.25)
    found = [
        evaluate([model], LabelledImages(tmp_path, "all"))[0][0].correct.mean()
        for model in (wide, narrow)
    ]
    assert found == [0.5, 1.0]
    with pytest.raises(ValueError, match=r"crop 0.25, which requires image files; received digits"):
        evaluate([classifier("0123", (8, 8, 1), crop=0.25)], LabelledImages("digits"))


def test_card_decides_how_data_sets_are_fitted():
    padded = classifier(tuple("0123456789"), (8, 16, 1), fit="pad")
    images, _ = next(LabelledImages("digits").batches(padded))
    expected, _ = data.arrays(data.load("digits", (8, 16), fit="pad"))
    np.testing.assert_array_equal(images, expected[: len(images)])


@pytest.mark.parametrize("part", ["train", "all"])
def test_data_set_by_name(part):
    digits = data.load("digits")
    parts = ["test", "train"] if part == "all" else [part]
    expected = [digits.labels[i] for name in parts for i in data.arrays(digits, name)[1]]
    images = LabelledImages("digits", part)
    assert (len(images), images.total) == (len(expected), 1797)
    ((result, _),) = evaluate([classifier(tuple("9876543210"), (8, 8, 1))], images)
    assert [result.classes[i] for i in result.labels] == expected
    assert result.names[0] == f"{parts[0]}/0"


def test_folders_of_both_parts(tmp_path):
    for part, count in (("train", 3), ("test", 2)):
        for colour in ("red", "blue"):
            for i in range(count):
                save(tmp_path / part / colour / f"{i}.png", colour)
    found = {part: len(LabelledImages(tmp_path, part)) for part in ("test", "train", "all")}
    assert found == {"test": 4, "train": 6, "all": 10}
    with pytest.raises(ValueError, match="one of test, train, validation, all; received 'val'"):
        LabelledImages(tmp_path, "val")


def test_formats_agree(tmp_path, photos):
    model = colour_model()
    model.save(tmp_path / "model.keras")
    write_card(tmp_path / "model.keras", model, LABELS)
    export(model, tmp_path, ["tflite", "saved_model"], LABELS)
    paths = [str(tmp_path / name) for name in ("model.keras", "model.tflite", "saved_model")]
    out = tmp_path / "report"
    given = [*paths, "--data", str(photos), "--split", "all", "--out", str(out)]
    assert load_app("evaluate").main(given) == 0
    rows = json.loads((out / "report.json").read_text())["models"]
    assert [row["model"] for row in rows] == paths
    assert {row["agreement"] for row in rows} == {1.0}
    assert {row["accuracy"] for row in rows} == {round(16 / 18, 6)}
    for row in rows:
        assert row["log_likelihood"] == pytest.approx(rows[0]["log_likelihood"], abs=0.02)
        assert row["latency_ms"] > 0
    for name in ("confusion", "errors", "reliability"):
        with Image.open(out / f"{name}.png") as picture:
            assert np.asarray(picture.convert("L")).std() > 3  # not blank
    table = read_table(out / "predictions.csv")
    assert len(table) == 18
    assert table[-1]["path"] == str(photos / "red" / "5.png")
    assert [table[-1][key] for key in ("label", "prediction", "correct")] == ["red", "blue", "0"]
    assert 0.5 < float(table[-1]["probability"]) <= 1


def test_program_prints_the_report(app, photos, capsys):
    given = ["--data", str(photos), "--split", "all"]
    assert app.main(["colours", "reversed", *given]) == 0
    out = capsys.readouterr().out
    assert "images            18 of 18 (--split all)" in out
    assert "accuracy           88.89 %" in out
    red, one, other = (
        [line for line in out.splitlines() if line.startswith(f"{name} ")][-1]
        for name in ("red", "colours", "reversed")
    )
    assert red.split() == ["red", "100.00", "%", "66.67", "%", "80.00", "%", "6"]
    assert one.split()[1::2][:4] == other.split()[1::2][:4]
    assert "100.00 %" in other


def test_program_prints_json_and_writes_a_table(app, photos, tmp_path, capsys):
    table = tmp_path / "new" / "table.csv"
    given = ["--data", str(photos), "--json", "--csv", str(table)]
    assert app.main(["colours", *given]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["images"], found["models"][0]["accuracy"]) == (3, round(2 / 3, 6))
    assert found["unknown_classes"] == found["missing_classes"] == []
    rows = read_table(table)
    assert [row["path"] for row in rows] == [str(photos / c / "4.png") for c in sorted(LABELS)]
    assert [row["correct"] for row in rows] == ["1", "1", "0"]


def test_of_many_classes_the_program_lists_the_worst(app, photos, capsys, monkeypatch):
    monkeypatch.setattr(app, "SHOWN", 1)
    assert app.main(["colours", "--data", str(photos), "--split", "all"]) == 0
    title, *rows = capsys.readouterr().out.split("\n\n")[1].splitlines()
    assert title.split()[:3] == ["1", "lowest", "F1"]
    assert [row.split()[0] for row in rows] == ["red"]


def test_table_keeps_the_bytes_of_names(tmp_path):
    one = np.ones(1, int)
    name = os.fsdecode(b'a, "\xff".png')
    result = Predictions((name,), ("cat", "dog"), one, one, one / 2, -one, one)
    evaluation.write_predictions(tmp_path / "table.csv", result)
    head, row = (tmp_path / "table.csv").read_bytes().splitlines()
    assert head == b"path,label,prediction,probability,correct"
    assert row == b'"a, ""\xff"".png",dog,dog,0.500000,1'


def test_classes_without_a_partner_are_named(app, photos, capsys):
    assert app.main(["more", "two", "--data", str(photos), "--split", "all"]) == 0
    out = capsys.readouterr().out
    assert "images            12 of 18" in out
    assert "unknown classes   green (images left out)" in out
    assert "missing classes   green, grey (no images)" in out


@pytest.mark.parametrize(
    ("models", "change", "reason"),
    [
        (["none"], None, "knows none of its classes; received blue, green, red; expected cat, dog"),
        (["colours"], "damage", "green/4.png: not an image"),
        (["colours"], "few", "no class has 5 images, of which the fifth is a test image. Evaluate"),
        (["colours"], "empty", "green: no image in this folder"),
        (["two"], "green", "of the 1 images in --split test, none has a class that all"),
    ],
)
def test_failures_are_one_line(app, photos, capsys, models, change, reason):
    if change == "damage":
        (photos / "green" / "4.png").write_bytes(b"no image")
    elif change:
        for path in photos.glob("green/*" if change == "empty" else "*/[45].png"):
            if path.parent.name != change:
                path.unlink()
    assert app.main([*models, "--data", str(photos)]) == 1
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert reason in error


def test_missing_data_and_useless_paths(app, photos, tmp_path, capsys):
    assert app.main(["colours", "--data", "./nowhere"]) == 1
    assert "./nowhere: no such folder" in capsys.readouterr().err
    given = ["colours", "--data", str(photos)]
    (tmp_path / "folder.csv").mkdir()
    for name in ("colours.keras", "photo.png", "folder.csv", "history.csv"):
        with pytest.raises(SystemExit, match="2"):
            app.main([*given, "--csv", str(tmp_path / name)])
        assert "--csv must be a .csv file, no history.csv" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert app.main([*given, "--out", str(tmp_path / "file")]) == 1
    assert "expected a folder or a new path" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        app.main(["colours"])


def test_missing_scikit_learn_is_reported_before_the_work(app, photos, capsys, monkeypatch):
    monkeypatch.setattr(optional, "is_installed", lambda package: False)
    assert app.main(["none", "--data", str(photos)]) == 1
    assert "evaluation requires sklearn; install it" in capsys.readouterr().err


def test_tflite_file_requires_no_keras(tmp_path):
    for label, colour in (("cat", "grey"), ("frog", "green")):
        for i in range(2):
            save(tmp_path / label / f"{i}.png", colour)
    model = APPS.parent / "saved_models" / "gmlp_n4_32-cifar10"
    given = [str(model), "--data", str(tmp_path), "--split", "all", "--json"]
    program = (
        f"import sys; sys.path.append({str(APPS.parent)!r});"
        "from keras_gmlp.programs import evaluate;"
        f"code = evaluate.main({given!r});"
        "sys.exit([m for m in ('keras', 'tensorflow', 'jax', 'torch') if m in sys.modules] or code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["images"] == 4


def test_a_run_is_evaluated_by_the_groups_of_its_training(
    app, photos, tmp_path, monkeypatch, capsys
):
    (run := tmp_path / "colours").mkdir()
    monkeypatch.setattr(app.cli, "load_classifier", lambda model: classifier())
    groups = r"/(?=[0-2]\.png)|$"  # two of nine images
    (run / "recipe.json").write_text(json.dumps({"data": str(photos), "groups": groups}))
    assert app.main([str(run), "--data", str(photos), "--json"]) == 0
    held_out = LabelledImages(photos, "test", groups=groups)
    assert json.loads(capsys.readouterr().out)["images"] == len(held_out) == 9
    (run / "recipe.json").write_text(json.dumps({"data": "elsewhere", "groups": groups}))
    assert app.main([str(run), "--data", str(photos), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["images"] == 3  # every fifth of a class


@pytest.mark.parametrize(
    ("folder", "parts"),
    [
        (True, {"fraction": 0.9, "validation": 0.4}),
        (False, {"fraction": 1.0, "folds": 3, "fold": 1, "validation": 0.4}),
    ],
)
def test_a_run_is_evaluated_on_the_images_that_it_trained_on(
    app, photos, tmp_path, monkeypatch, folder, parts
):
    digits = "digits", tuple("0123456789"), (8, 8, 1)
    name, labels, shape = (photos, LABELS, (8, 8, 3)) if folder else digits
    (run := tmp_path / "run").mkdir()
    monkeypatch.setattr(app.cli, "load_classifier", lambda model: classifier(labels, shape))
    (run / "recipe.json").write_text(json.dumps({"data": str(name), "folds": None, **parts}))
    divided = divide_training(data.load(name, (8, 8)), **parts)
    for split in ("train", "validation"):
        images = getattr(divided, split)
        table = tmp_path / f"{split}.csv"
        arguments = [str(run), "--data", str(name), "--split", split, "--csv", str(table)]
        assert app.main(arguments) == 0
        found = read_table(table)
        assert len(found) == len(images)
        if folder:
            assert sorted(row["path"] for row in found) == sorted(map(os.fsdecode, images.paths))
        else:
            expected = [labels[i] for i in images.read_labels()]
            assert [row["label"] for row in found] == expected
