"""The program that evaluates a model at other image sizes."""

import json

import keras
import pytest

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


def test_each_size_is_a_row(run, app):
    code, output, _ = app("evaluate_sizes", run, "--sizes", 12, 16, "--images", 50, "--json")
    own, middle, large = json.loads(output)
    assert (code, set(own)) == (0, {"pixels", "resampled"})  # nothing to resize
    assert [row["pixels"] for row in (own, middle, large)] == [8, 12, 16]
    assert [row["patch_window"] for row in (middle, large)] == [6, 8]
    assert [row["patch_size"] for row in (middle, large)] == [6, 8]
    assert all(0 <= large[kind] <= 1 for kind in ("patch", "window", "resampled", "fresh"))
    lines = app("evaluate_sizes", run, "--sizes", 12, 12, "--images", 50)[1].splitlines()
    assert lines[0].split() == ["pixels", "patch", "window", "resampled", "fresh"]
    assert lines[1].split() == ["8", "-", "-", f"{100 * own['resampled']:.2f}", "%", "-"]
    shown = [f"{100 * middle[kind]:.2f}" for kind in ("patch", "window", "resampled", "fresh")]
    assert lines[2].replace("%", "").split() == ["12", *shown]
    assert len(lines) == 3  # a size given twice is measured once


def test_models_without_patches_and_with_wide_windows(tmp_path, app):
    for preset, arguments, kinds in (
        ("resnet_56_32", {"depth": 8}, {"resampled"}),
        ("mixer_n4_32", {"depth": 1, "patch_window": 6}, {"resampled", "window", "fresh"}),
    ):
        save_run(tmp_path, preset, **arguments)
        given = [tmp_path, "--sizes", 16, "--images", 20, "--json"]
        row = json.loads(app("evaluate_sizes", *given)[1])[1]
        assert set(row) - {"pixels", "patch_window"} == kinds
        assert row.get("patch_window", 12) == 12


def test_what_cannot_be_measured_is_refused(tmp_path, app):
    for arguments, sizes, code, reason in (
        ({}, [12, 18], 1, "expected sides that are multiples of 4"),
        ({}, [10], 1, "patch"),
        ({}, [0], 2, "must be at least 1"),
        ({"input_shape": (8, 16, 1)}, [16], 1, "a model for square images; received one for 8x16"),
        ({"labels": tuple("abcdefghij")}, [16], 1, "model's classes differ from those of digits"),
    ):
        save_run(tmp_path, "gmlp_n4_32", depth=1, **arguments)
        found, output, error = app("evaluate_sizes", tmp_path, "--images", 20, "--sizes", *sizes)
        assert (found, output.count("%")) == (code, 0)  # before any is measured
        assert reason in error
