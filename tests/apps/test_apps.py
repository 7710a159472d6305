"""The programs as a user runs them: what they print, write and return."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from load_app import load_app
from PIL import Image

import keras_gmlp
from keras_gmlp.tasks.confidence import Answer
from keras_gmlp.weights import pretrained

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
    path = tmp_path / "picture.png"
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


def test_train_again_is_complete_and_other_settings_fail_in_one_line(run, app):
    code, output, _ = app("train", *QUICK, "--epochs", "3", "--out", run)
    assert (code, "complete already" in output) == (0, True)
    code, _, error = app("train", *QUICK, "--epochs", "4", "--out", run)
    assert (code, error.count("\n")) == (1, 1)
    assert "epochs 3 there, 4 here" in error


def test_train_continues_from_weights(run, tmp_path, app):
    begun = ["--data", "digits", "--image-size", "12", "--precision", "float32", "--epochs", "1"]
    begun += ["--weights", run, "--freeze", "--no-export"]
    code, output, _ = app("train", *begun, "--out", tmp_path)
    assert code == 0
    assert "14 weights kept, 2 resized" in output  # a kernel and a bias
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    before = 100 * metrics["accuracy_before"]
    assert f"before {before:.2f} % of the test images right" in output
    recipe = json.loads((tmp_path / "recipe.json").read_text())
    assert (recipe["recipe"], recipe["freeze"]) == ("finetune", True)
    assert (recipe["preset"], recipe["weights"]) == ("gmlp_n4_32", str(run))


def test_classify_prints_bars_and_json_of_files_and_folders(run, picture, app):
    code, output, _ = app("classify", picture, "--model", run, "--top", "3")
    name, first, *rest = output.splitlines()
    assert (code, name, "%" in first, len(rest)) == (0, str(picture), True, 2)
    Image.new("L", (4, 4)).save(picture.parent / "second.jpg")
    code, output, _ = app("classify", picture.parent, "--model", run, "--json")
    answer, other = map(json.loads, output.splitlines())
    assert (code, answer["file"], len(answer["predictions"])) == (0, str(picture), 5)
    assert other["file"].endswith("second.jpg")


def test_classify_escapes_names_that_could_change_the_terminal(capsys):
    model = SimpleNamespace(labels=("cat\x1b[2J", "a_dog"), thresholds=None)
    answer = Answer([("cat\x1b[2J", 0.75), ("a dog", 0.25)], None, [0, 1])
    load_app("classify").show("gpj.\u202etac\n", answer, model, False)
    name, first, second = capsys.readouterr().out.splitlines()
    assert name == r"gpj.\u202etac\n"
    assert first.startswith(r"  cat\x1b[2J  75.0 % ")
    assert second.startswith("  a dog       25.0 % ")


def test_classify_continues_after_bad_files(run, picture, tmp_path, app):
    (tmp_path / "none").mkdir()
    bad = [tmp_path / name for name in ("empty.png", "missing.png", "none")]
    bad[0].touch()
    code, output, errors = app("classify", *bad, picture, "--model", run, "--json")
    assert (code, json.loads(output)["file"]) == (1, str(picture))
    for path, error in zip(bad, errors.splitlines(), strict=True):
        assert error.startswith(f"classify: {path}: ")


def test_export_writes_and_checks(run, app):
    formats = ["tflite_float32", "tflite_int8"]
    code, output, _ = app("export", run, "--formats", *formats, "--json")
    found = json.loads(output)
    assert (code, found["tflite_int8"]["top1_agreement"] > 0.9) == (0, True)
    assert found["tflite_float32"]["max_logit_difference"] < 1e-3
    assert found["tflite_float32"]["accuracy"] == found["keras"]["accuracy"]
    assert (run / "model_int8.tflite").exists()


def test_export_without_data(tmp_path, app):
    model = keras_gmlp.build("gmlp_n4_32", input_shape=(8, 8, 1), classes=10, depth=1)
    model.save(tmp_path / "model.keras")
    options = [tmp_path, "--formats", "tflite_float32"]
    code, _, error = app("export", *options)
    assert code == 1
    assert "its data are unknown; give --data" in error
    assert app("export", *options, "--no-check", "--json")[:2] == (0, "{}\n")
    assert (tmp_path / "model_float32.tflite").exists()


def test_missing_data_is_reported_before_weights_are_downloaded(tmp_path, monkeypatch, app):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pretrained, "load", None)  # or it would be called
    given = ["--weights", "hf-hub:timm/none", "--data", "./photos/", "--out", "runs/a"]
    assert app("train", *given) == (1, "", "train: ./photos/: no such folder.\n")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_says_what_resumes(tmp_path, monkeypatch, app):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("keras_gmlp.runs.run.train", interrupted)
    code, _, error = app("train", *QUICK, "--out", tmp_path / "run", "--restart")
    assert code == 130
    assert "without --restart resumes the run" in error
