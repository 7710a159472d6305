"""The programs as a user runs them: what they print, write and return."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from load_app import APPS, load_app
from PIL import Image

import keras_gmlp
from keras_gmlp.export.formats import FORMATS
from keras_gmlp.training import train
from keras_gmlp.weights import pretrained

# 8 pixels, patch 4: four tokens, a second an epoch.
QUICK = ["--data", "digits", "--image-size", "8", "--precision", "float32"]


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


def test_train_again_is_complete(run, capsys):
    assert load_app("train").main([*QUICK, "--epochs", "3", "--out", str(run)]) == 0
    assert "complete already" in capsys.readouterr().out


def test_train_with_other_settings_fails_in_one_line(run, capsys):
    assert load_app("train").main([*QUICK, "--epochs", "4", "--out", str(run)]) == 1
    error = capsys.readouterr().err
    assert "epochs 3 there, 4 here" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--model", "gmlp_n4_23"], "Did you mean 'gmlp_n4_32'"),
        (
            ["--recipe", "fast"],
            "one of: quick, standard, long, finetune, resolution, imagenet",
        ),
        (["--set", "mixpu=0.3"], "no such setting"),
        (["--set", "mixup=much"], "expected mixup=NUMBER"),
        (["--set", "warmup=null"], "expected warmup=NUMBER"),
        (["--set", "warmup=[0.1]"], "expected warmup=NUMBER"),
        (["--set", "resized_crop=all"], "expected resized_crop=[SMALLEST,LARGEST], or 0"),
        (["--set", "resized_crop=[1,2]"], "such as [0.08, 1]; received [1, 2]"),
        (["--seed", "-1"], "seed must be in"),
        (["--set", "mixup=3"], "must be in [0, 1]"),
        (["--epochs", "0"], "at least 1"),
        (["--freeze"], "give --weights"),
        (["--set", "freeze=1"], "give --weights"),
        (["--weights", "runs/a/", "--out", "runs/a"], "is where the weights are"),
        (["--weights", "runs/a/model.keras", "--out", "runs/a"], "is where the weights are"),
        (["--epochs", "many"], "invalid int"),
        (["--devices", "two"], "expected a number or all; received 'two'"),
        (["--checkpoint-minutes", "0"], "expected a number above 0; received '0'"),
        (["--devices", "2"], "several devices require the JAX backend"),
        (["--model-parallel", "2"], "--backend jax"),
    ],
)
def test_train_wrong_usage(arguments, reason, capsys):
    with pytest.raises(SystemExit) as caught:
        load_app("train").main(arguments)
    assert caught.value.code == 2
    assert reason in capsys.readouterr().err


def test_train_on_a_folder_that_is_not_there(tmp_path, capsys):
    assert load_app("train").main(["--data", "./nowhere/", "--out", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "./nowhere/" in error
    assert error.count("\n") == 1


def test_train_continues_from_weights(run, tmp_path, capsys):
    begun = ["--data", "digits", "--image-size", "12", "--precision", "float32", "--epochs", "1"]
    begun += ["--weights", str(run), "--backend", "tensorflow"]
    assert load_app("train").main([*begun, "--freeze", "--out", str(tmp_path), "--no-export"]) == 0
    out = capsys.readouterr().out
    assert "62 weights kept, 14 resized" in out  # a kernel and a bias in each of 7 blocks
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert f"before {100 * metrics['accuracy_before']:.2f} % of the test images right" in out
    recipe = json.loads((tmp_path / "recipe.json").read_text())
    assert (recipe["recipe"], recipe["freeze"]) == ("finetune", True)
    assert (recipe["preset"], recipe["weights"]) == ("gmlp_n4_32", str(run))


def test_classify_prints_bars_and_json(run, picture, capsys):
    assert load_app("classify").main([str(picture), "--model", str(run), "--top", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(picture)
    assert len(lines) == 4
    assert "%" in lines[1]
    assert load_app("classify").main([str(picture), "--model", str(run), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["file"] == str(picture)
    assert len(answer["predictions"]) == 5


def test_classify_escapes_names_that_could_change_the_terminal(capsys):
    pairs = [("cat\x1b[2J", 0.75), ("dog", 0.25)]
    predictions = [{"label": label, "probability": value} for label, value in pairs]
    load_app("classify").show("gpj.\u202etac\n", predictions, False)
    name, first, second = capsys.readouterr().out.splitlines()
    assert name == r"gpj.\u202etac\n"
    assert first.startswith(r"  cat\x1b[2J  75.0 % ")
    assert second.startswith("  dog         25.0 % ")


def test_classify_continues_after_a_bad_file(run, picture, tmp_path, capsys):
    (tmp_path / "empty.png").touch()
    (tmp_path / "none").mkdir()
    paths = [tmp_path / "empty.png", tmp_path / "missing.png", tmp_path / "none", picture]
    assert load_app("classify").main([*map(str, paths), "--model", str(run), "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["file"] == str(picture)
    errors = captured.err.splitlines()
    assert len(errors) == 3
    for path, error in zip(paths, errors, strict=False):
        assert error.startswith(f"classify: {path}: ")


def test_classify_continues_after_an_image_too_large_for_the_memory(
    run, picture, monkeypatch, capsys
):
    from keras_gmlp.tasks import classifier

    read = classifier.read_image

    def read_small(path, *arguments, **options):
        if path.name == "large.png":
            raise MemoryError(f"{path}: not enough memory.")
        return read(path, *arguments, **options)

    monkeypatch.setattr(classifier, "read_image", read_small)
    paths = [str(picture.with_name("large.png")), str(picture)]
    Path(paths[0]).touch()
    assert load_app("classify").main([*paths, "--model", str(run), "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["file"] == paths[1]
    assert captured.err == f"classify: {paths[0]}: not enough memory; close other programs.\n"


def test_classify_takes_a_folder(run, picture, capsys):
    Image.new("L", (4, 4)).save(picture.parent / "second.jpg")
    assert load_app("classify").main([str(picture.parent), "--model", str(run), "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="has no such signal of a closed pipe")
def test_classify_into_a_pipe_that_is_closed(picture):
    command = [sys.executable, str(APPS / "classify.py"), *[str(picture)] * 3]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.wait() == 0
    assert process.stderr.read() == b""
    process.stderr.close()


def test_classify_without_model_or_images(tmp_path, picture, capsys):
    assert load_app("classify").main([str(picture), "--model", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(SystemExit) as caught:
        load_app("classify").main([])
    assert caught.value.code == 2


def test_export_writes_and_checks(run, capsys):
    assert load_app("export").main([str(run), "--formats", "tflite_float32", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tflite_float32"]["max_logit_difference"] < 1e-3
    assert found["tflite_float32"]["accuracy"] == found["keras"]["accuracy"]
    batch = ["--formats", "tflite_int8", "--batch", "8", "--json"]
    assert load_app("export").main([str(run), *batch]) == 0
    assert json.loads(capsys.readouterr().out)["tflite_int8_batch8"]["top1_agreement"] > 0.9
    assert (run / "model_int8_batch8.tflite").exists()
    assert tuple(FORMATS) == load_app("export").FORMATS


def test_export_without_data(tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        load_app("export").main([str(tmp_path), "--no-check", "--formats", "tflite_int8"])
    assert caught.value.code == 2
    assert (
        "tflite_int8 requires data for its calibration; leave out --no-check"
        in capsys.readouterr().err
    )
    model = keras_gmlp.build("gmlp_n4_32", input_shape=(8, 8, 1), classes=10, depth=1)
    model.save(tmp_path / "model.keras")
    options = [str(tmp_path), "--formats", "tflite_float32"]
    assert load_app("export").main(options) == 1
    error = capsys.readouterr().err
    assert error.endswith(
        "model.keras: the data set for the checks is unknown; give --data or --no-check.\n"
    )
    assert load_app("export").main([*options, "--no-check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {}
    assert (tmp_path / "model_float32.tflite").exists()


@pytest.mark.parametrize(
    ("app", "options"), [("export", []), ("visualize", []), ("evaluate_sizes", ["--sizes", "48"])]
)
def test_what_is_no_run_is_named_as_it_was_given(app, options, tmp_path, capsys):
    (tmp_path / "file").touch()
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "recipe.json").write_text("{}")
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "metrics.json").write_text("{}")
    for given, reason in (
        (tmp_path / "none", "no such folder"),
        (tmp_path / "v1.5", "no such folder"),
        (tmp_path / "file", "expected "),
        (tmp_path / "gone", "the model.keras of this run is missing; train it again with"),
        (tmp_path / "begun", "this run is not complete; finish it with apps/train.py."),
        (tmp_path, "no model.keras in this folder; expected the folder of a run of apps/train.py."),
    ):
        assert load_app(app).main([str(given), *options]) == 1
        error = capsys.readouterr().err
        assert error.startswith(f"{app}: {given}: ")
        assert reason in error
        assert error.count("\n") == 1


def test_missing_data_is_reported_before_weights_are_downloaded(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pretrained, "load", None)  # or it would be called
    assert load_app("train").main(["--weights", "hf-hub:timm/none", "--data", "photos/"]) == 1
    assert capsys.readouterr().err == "train: photos/: no such folder.\n"
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_before_the_first_epoch_promises_nothing(tmp_path, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "train", interrupted)
    arguments = [*QUICK, "--out", str(tmp_path / "run")]
    assert load_app("train").main(arguments) == 130
    assert "no epoch was finished. The same command starts again" in capsys.readouterr().err
    (tmp_path / "run" / "checkpoint").mkdir(parents=True)
    (tmp_path / "run" / "checkpoint" / ".7.000001.weights.h5").touch()  # half written
    assert load_app("train").main(arguments) == 130
    assert "no epoch was finished." in capsys.readouterr().err
    (tmp_path / "run" / "checkpoint" / "000001.weights.h5").touch()
    assert load_app("train").main(arguments) == 130
    assert "keeps the last checkpoint. The same command resumes the run" in capsys.readouterr().err
    monkeypatch.setattr("keras_gmlp.data.load", interrupted)
    assert load_app("train").main([*arguments, "--restart"]) == 130
    assert f"{tmp_path / 'run'} is unchanged." in capsys.readouterr().err


def test_mistake_leaves_no_empty_folders(tmp_path):
    arguments = ["--data", "missing/", "--out", str(tmp_path / "runs" / "a")]
    assert load_app("train").main(arguments) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["train", "classify", "export", "calibrate"])
def test_help_teaches(name, capsys):
    with pytest.raises(SystemExit) as caught:
        load_app(name).main(["--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert "examples:" in text
    assert "exit codes:" in text


@pytest.mark.slow
def test_run_survives_sigkill(tmp_path):
    """SIGKILL in the middle of an epoch, then the same command."""
    command = [sys.executable, str(APPS / "train.py"), *QUICK, "--epochs", "2", "--no-export"]
    command += ["--out", str(tmp_path), "--backend", "torch", "--set", "optimizer=adamw"]
    # Small, and so many steps that the kill meets one.
    command += ["--fraction", "0.5", "--set", "batch_size=16"]
    command += ["--set-model", "depth=1", "--set-model", "dim=16"]
    history = tmp_path / "history.csv"

    def rows():
        lines = history.read_text().splitlines()[1:] if history.exists() else []
        return [line.split(",")[0] for line in lines]

    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while len(rows()) < 1 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.1)  # into the second epoch
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "metrics.json").exists()
    subprocess.run(command, check=True, capture_output=True)
    assert rows() == ["0", "1"]
    assert json.loads((tmp_path / "metrics.json").read_text())["epochs"] == 2


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("own", "expected MODULE:CLASS"),
        ("nowhere:Own", "no module nowhere, neither in this folder nor installed"),
        ("own:Other", "the module has no Other"),
        ("own:number", "expected a subclass of keras.callbacks.Callback"),
    ],
)
def test_callback_that_cannot_be(name, reason, tmp_path, monkeypatch, capsys):
    (tmp_path / "own.py").write_text("number = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own", raising=False)
    with pytest.raises(SystemExit) as stopped:
        load_app("train").main(["--callback", name, "--out", str(tmp_path / "run")])
    assert stopped.value.code == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_callbacks_of_the_user_are_found_in_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "own_logger.py").write_text(
        "import keras\n\n\nclass Logger(keras.callbacks.Callback):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    options = load_app("train").parse(["--callback", "own_logger:Logger"])[1]
    (callback,) = load_app("callback_options").make_callbacks(options)
    assert type(callback).__name__ == "Logger"
    assert str(tmp_path) not in sys.path
