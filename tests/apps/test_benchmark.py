"""The program that measures how fast models run: one small run of all, and what goes wrong."""

import csv
import dataclasses
import json
import os
import signal
from pathlib import Path

import pytest
from fake_worker import MODEL
from load_app import load_app

from keras_gmlp import gMLP
from keras_gmlp.benchmark import files
from keras_gmlp.benchmark.report import COLUMNS
from keras_gmlp.utils import progress


def test_default_model_is_found_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (default,) = load_app("benchmark").main.parse([]).models
    assert (Path(default) / "model.keras").exists()


def test_no_candidate_is_a_failure(tmp_path, monkeypatch, app):
    model = dataclasses.replace(MODEL, errors={"tflite": "no luck"})
    monkeypatch.setattr(files, "prepare", lambda *given: model)
    given = ["gmlp_n4_32", "--only", "tflite", "--quick", "--threads", "1", "--out", tmp_path]
    code, output, _ = app("benchmark", *given)
    assert (code, "- `tflite`, threads 1: failed: no luck" in output) == (1, True)
    assert not (tmp_path / "benchmark.png").exists()


def test_model_that_cannot_be_loaded(tmp_path, monkeypatch, app):
    (tmp_path / "model.keras").touch()
    monkeypatch.setattr(files, "run_python", lambda *_: ("", "cannot be loaded"))
    code, _, error = app("benchmark", tmp_path, "--quick", "--only", "tflite")
    assert (code, error.splitlines()[-1]) == (1, f"benchmark: {tmp_path}: cannot be loaded")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A folder with a model of four tokens."""
    directory = tmp_path_factory.mktemp("small")
    model = gMLP(16, 2, 32, input_shape=(8, 8, 3), patch_size=4, classes=10)
    model.save(directory / "model.keras")
    (directory / "metrics.json").write_text(json.dumps({"flops": 30_000}))
    return directory


@pytest.mark.slow
def test_end_to_end(run, tmp_path, app):
    arguments = [run, "--quick", "--threads", "1", "--batch", "4", "1", "--out", tmp_path]
    only = ["--only", "tflite", "keras-torch", "timm"]
    code, output, notes = app("benchmark", *arguments, *only, "--json")
    printed = json.loads(output)
    assert (code, "round 3 of 3, left" in notes) == (0, True)
    with open(tmp_path / "benchmark.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == len(printed)
    measured = [row for row in printed if row["status"] == "measured"]
    for row in measured:
        assert 0 < row["first_quartile"] <= row["milliseconds"] <= row["third_quartile"]
        assert row["ratio"] >= 1
        assert row["cold_start_seconds"] > 0
        assert row["batch"] == "" or row["logit_difference"] < 0.1
    for batch in (1, 4):
        ratios = {r["candidate"]: r["ratio"] for r in measured if r["batch"] == batch}
        assert set(ratios) == {"tflite", "keras-torch"}
        assert min(ratios.values()) == 1
    failed = [row for row in printed if row["status"] != "measured"]
    assert [(row["candidate"], row["status"]) for row in failed] == [
        ("timm", f"failed: timm has no model like {run.name}")
    ]
    assert (tmp_path / "benchmark.md").read_text().count("Not measured:") == 1
    assert (tmp_path / "benchmark.png").exists()
    assert not (run / "model.tflite").exists()  # a run's folder is left as it was


def test_ctrl_c_ends_all_workers(tmp_path, monkeypatch, capsys):
    app, children = load_app("benchmark"), []

    class Interrupting(progress.StatusLine):
        def show(self, text):
            if "round 2 of" in text:
                children.extend(children_of(os.getpid()))
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(progress, "StatusLine", Interrupting)
    monkeypatch.setattr(files, "prepare", lambda *given: MODEL)
    before = children_of(os.getpid())
    arguments = ["gmlp_n4_32", "--only", "tflite", "--threads", "1"]
    # What was started in the background ignores it.
    found = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert app.main([*arguments, "--out", str(tmp_path / "out")]) == 130
    finally:
        signal.signal(signal.SIGINT, found)
    assert capsys.readouterr().err == "\nbenchmark: stopped.\n"
    assert len(children) >= len(before) + 2  # matrix products
    assert children_of(os.getpid()) == before
    assert not list((tmp_path / "out").iterdir())


def children_of(pid):
    listing = Path(f"/proc/{pid}/task/{pid}/children")
    if not listing.exists():
        pytest.skip("this system does not list children")
    return listing.read_text().split()
