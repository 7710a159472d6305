"""The program that evaluates a model at other image sizes."""

import json

import keras
import pytest
from load_app import load_app

import keras_gmlp
from keras_gmlp.weights.pretrained import Pretrained

DIGITS = tuple("0123456789")


def save_run(directory, preset, labels=DIGITS, **arguments):
    """Leaves in a folder what training leaves there, with a model whose head is random."""
    arguments = {"input_shape": (8, 8, 1), "classes": 10, **arguments}
    model = keras_gmlp.build(preset, **arguments)
    head = model.get_layer("head").kernel
    head.assign(keras.random.normal(head.shape, seed=0))
    run = Pretrained(model, preset, labels, {}, "here", arguments=arguments)
    run.save(directory / "model.keras")
    (directory / "labels.txt").write_text("\n".join(labels))
    (directory / "recipe.json").write_text(json.dumps({"data": "digits"}))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    save_run(directory, "gmlp_n4_32", depth=1)
    return directory


def test_each_size_is_a_row(run, capsys):
    given = [str(run), "--sizes", "12", "16", "--images", "50"]
    assert load_app("evaluate_sizes").main([*given, "--json"]) == 0
    own, middle, large = json.loads(capsys.readouterr().out)
    assert set(own) == {"pixels", "resampled"}  # nothing to resize
    assert [row["pixels"] for row in (own, middle, large)] == [8, 12, 16]
    assert [row["patch_window"] for row in (middle, large)] == [6, 8]
    assert [row["patch_size"] for row in (middle, large)] == [6, 8]
    assert all(0 <= large[kind] <= 1 for kind in ("patch", "window", "resampled", "fresh"))
    assert load_app("evaluate_sizes").main([str(run), "--sizes", "12", "12", "--images", "50"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["pixels", "patch", "window", "resampled", "fresh"]
    assert lines[1].split() == ["8", "-", "-", f"{100 * own['resampled']:.2f}", "%", "-"]
    shown = [f"{100 * middle[kind]:.2f}" for kind in ("patch", "window", "resampled", "fresh")]
    assert lines[2].replace("%", "").split() == ["12", *shown]
    assert len(lines) == 3  # a size given twice is measured once


@pytest.mark.parametrize(
    ("preset", "arguments", "kinds"),
    [
        ("resnet_56_32", {"depth": 8}, {"resampled"}),
        ("mixer_n4_32", {"depth": 1, "patch_window": 6}, {"resampled", "window", "fresh"}),
    ],
)
def test_models_without_patches_and_with_wide_windows(tmp_path, capsys, preset, arguments, kinds):
    save_run(tmp_path, preset, **arguments)
    given = [str(tmp_path), "--sizes", "16", "--images", "20", "--json"]
    assert load_app("evaluate_sizes").main(given) == 0
    row = json.loads(capsys.readouterr().out)[1]
    assert set(row) - {"pixels", "patch_window"} == kinds
    assert row.get("patch_window", 12) == 12


def test_sizes_are_checked_before_any_is_measured(run, capsys):
    assert load_app("evaluate_sizes").main([str(run), "--sizes", "12", "18"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "expected sides that are multiples of 4" in captured.err


def test_oblong_model_is_refused(tmp_path, capsys):
    save_run(tmp_path, "gmlp_n4_32", input_shape=(8, 16, 1), depth=1)
    assert load_app("evaluate_sizes").main([str(tmp_path), "--sizes", "16"]) == 1
    assert "expected a model for square images; received one for 8x16" in capsys.readouterr().err


def test_model_of_other_classes_is_refused(tmp_path, capsys):
    save_run(tmp_path, "gmlp_n4_32", labels=tuple("abcdefghij"), depth=1)
    assert load_app("evaluate_sizes").main([str(tmp_path), "--sizes", "16", "--images", "20"]) == 1
    assert "the model's classes differ from those of digits" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sizes", "code", "reason"), [("10", 1, "patch"), ("0", 2, "must be at least 1")]
)
def test_wrong_sizes_are_refused(run, capsys, sizes, code, reason):
    try:
        found = load_app("evaluate_sizes").main([str(run), "--sizes", sizes])
    except SystemExit as stopped:
        found = stopped.code
    assert found == code
    assert reason in capsys.readouterr().err
