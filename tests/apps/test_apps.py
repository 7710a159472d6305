"""The programs as a user runs them: what they print, write and return."""

import json
import shutil

import numpy as np
import pytest
from load_app import ROOT, load_app
from pictures import write_noise
from PIL import Image

import keras_gmlp
from keras_gmlp.utils import sources
from keras_gmlp.weights import pretrained

CAT = ROOT / "docs" / "cat.jpg"
# 8 pixels, patch 4: four tokens.
QUICK = ["--data", "digits", "--image-size", "8", "--precision", "float32"]
QUICK += [f"--set-model={size}" for size in ("depth=1", "dim=32", "hidden_dim=64")]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A trained run's folder."""
    directory = tmp_path_factory.mktemp("run")
    assert load_app("train").main([*QUICK, "--epochs", "3", "--out", str(directory), "--json"]) == 0
    return directory


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "folder" / "picture.png"
    path.parent.mkdir()
    Image.fromarray(np.arange(300, dtype="uint8").reshape(10, 30)).save(path)
    return path


@pytest.mark.slow
def test_train_leaves_a_model_ready_to_ship(run):
    names = {path.name for path in run.iterdir()}
    assert names >= {"model.keras", "model.tflite", "labels.txt", "recipe.json", "metrics.json"}
    assert names >= {"history.csv", "curves.png", "README.md"}
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["epochs"] == 3
    assert abs(metrics["exports"]["tflite"]["accuracy"] - metrics["test_accuracy"]) < 0.02


def test_train_continues_from_weights(run, tmp_path, app):
    begun = ["--data", "digits", "--image-size", "8", "--precision", "float32", "--epochs", "1"]
    begun += ["--weights", run, "--freeze", "--no-export"]
    code, output, _ = app("train", *begun, "--out", tmp_path)
    assert code == 0
    assert "16 weights kept, 0 resized" in output
    start, further = (json.loads((path / "metrics.json").read_text()) for path in (run, tmp_path))
    assert further["accuracy_before"] == start["test_accuracy"]
    assert f"before {100 * start['test_accuracy']:.2f} % of the test images right" in output
    recipe = json.loads((tmp_path / "recipe.json").read_text())
    assert (recipe["recipe"], recipe["freeze"], recipe["preset"]) == (
        "finetune",
        True,
        "gmlp_n4_32",
    )


def test_classify_prints_bars_and_json_and_continues_after_bad_files(run, picture, app):
    code, output, _ = app("classify", picture, "--model", run, "--top", "3")
    name, first, *rest = output.splitlines()
    assert (code, name, "%" in first, len(rest)) == (0, str(picture), True, 2)
    bad = [picture.parents[1] / name for name in ("empty.png", "missing.png", "none")]
    bad[0].touch()
    bad[2].mkdir()
    code, output, errors = app("classify", *bad, picture.parent, "--model", run, "--json")
    answer = json.loads(output)
    assert (code, answer["file"], len(answer["predictions"])) == (1, str(picture), 5)
    for path, error in zip(bad, errors.splitlines(), strict=True):
        assert error.startswith(f"classify: {path}: ")
    _, output, _ = app("classify", CAT, "--json", "--top", "2")  # by the included model
    labels = {prediction["label"] for prediction in json.loads(output)["predictions"]}
    assert labels == {"tabby", "egyptian_cat"}


def test_classify_escapes_names_that_could_change_the_terminal(capsys):
    rows = [{"label": "cat\x1b[2J", "score": 0.75}, {"label": "a dog", "score": 0.25}]
    load_app("classify").show({"file": "gpj.\u202etac\n"}, rows, None)
    name, first, second = capsys.readouterr().out.splitlines()
    assert name == r"gpj.\u202etac\n"
    assert first.startswith(r"  cat\x1b[2J  75.0 % ")
    assert second.startswith("  a dog       25.0 % ")


def test_export_writes_and_checks(run, app):
    code, output, _ = app("export", run, "--formats", "tflite_float32", "--json")
    found = json.loads(output)
    assert (code, found["tflite_float32"]["accuracy"]) == (0, found["keras"]["accuracy"])
    assert (run / "model_float32.tflite").exists()


def test_export_without_data(tmp_path, app):
    model = keras_gmlp.build("gmlp_n4_32", input_shape=(8, 8, 1), classes=10, depth=1)
    model.save(tmp_path / "model.keras")
    options = [tmp_path, "--formats", "tflite_float32"]
    code, _, error = app("export", *options)
    assert (code, "give --data" in error) == (1, True)
    assert app("export", *options, "--no-check", "--json")[:2] == (0, "{}\n")
    assert (tmp_path / "model_float32.tflite").exists()


def test_missing_data_is_reported_before_weights_are_downloaded(tmp_path, monkeypatch, app):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pretrained, "load", None)  # or it would be called
    given = ["--weights", "hf://timm/none", "--data", "./photos/", "--out", "runs/a"]
    assert app("train", *given) == (1, "", "train: ./photos/: no such folder.\n")
    assert "no such folder" in app("check_data", "photos")[2]
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_says_what_resumes(tmp_path, monkeypatch, app):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("keras_gmlp.runs.run.train", interrupted)
    code, _, error = app("train", *QUICK, "--out", tmp_path / "run", "--restart")
    assert (code, "without --restart resumes the run" in error) == (130, True)


@pytest.fixture
def ask(app, tmp_path, monkeypatch):
    """Runs a program in an empty folder, with one included model, and returns its JSON."""
    monkeypatch.setattr(sources, "SHIPPED", tmp_path / "models")
    shutil.copytree(ROOT / "saved_models" / "gmlp_n4_32-cifar10", tmp_path / "models" / "short")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def ask(name, *arguments, codes=(0,)):
        code, output, errors = app(name, *arguments, "--json")
        assert (code in codes, errors) == (True, "")
        return json.loads(output)

    return ask


@pytest.fixture
def photos(tmp_path):
    """A folder with two classes of the model."""
    folder = write_noise(tmp_path / "photos", "png", 32, 32)
    for old, new in (("a", "cat"), ("b", "dog")):
        (folder / old).rename(folder / new)
    return str(folder)


def test_programs_take_included_models_by_name_and_write_into_their_folder(ask, photos, tmp_path):
    folder = tmp_path / "models" / "short"
    assert ask("classify", CAT, "--model", "short")["predictions"][0]["label"] == "cat"
    assert len(ask("similar", CAT, "--data", photos, "--model", "short")["similar"]) == 15
    report = ask("evaluate", "short", "short/model.keras", "--data", photos)
    assert [row["model"] for row in report["models"]] == ["short", "short/model.keras"]
    assert ask("convert", "short")["path"] == "runs/short/model.keras"
    found = ask("check_data", photos, "--model", "short", codes=(0, 1))
    assert found["accuracy"] is not None
    pictures = ask("visualize", "short", "--only", "explain", "--image", CAT)["pictures"]
    assert pictures == [str(folder / "pictures" / "explain.png")]
    assert ask("calibrate", "short", "--data", photos)["images"] == 20
    assert "calibration" in json.loads((folder / "metrics.json").read_text())


def test_default_backbone(ask, photos, tmp_path):
    def check(*more):
        out = tmp_path / "found"
        return ask("check_data", photos, "--out", out, *more, codes=(0, 1))["model"]

    assert check() is None  # colours and edges
    (tmp_path / "models" / "short").rename(tmp_path / "models" / sources.DEFAULT_BACKBONE)
    assert check() == sources.DEFAULT_BACKBONE
    assert check("--model", "none") is None
    pictures = ask("visualize", "--only", "explain", "--image", CAT)["pictures"]
    assert pictures == [f"runs/{sources.DEFAULT_BACKBONE}/pictures/explain.png"]
    assert len(ask("similar", CAT, "--data", photos)["similar"]) == 15
