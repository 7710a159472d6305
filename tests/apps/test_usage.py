"""Wrong usage of each program: exit code 2 and one line, before anything is written."""

import json
import os
import subprocess
import sys

import pytest
from load_app import APPS

TRAIN = [
    (["--model", "gmlp_n4_23"], "Did you mean 'gmlp_n4_32'"),
    (["--recipe", "fast"], "quick"),
    (["--set", "mixpu=0.3"], "no such setting"),
    (["--set", "warmup=null"], "NUMBER"),
    (["--folds", "1"], "folds"),
    (["--freeze"], "--weights"),
    (["--weights", "runs/a/model.keras", "--out", "runs/a"], "is where the weights are"),
    (["--epochs", "many"], "invalid int"),
    (["--devices", "two"], "expected a number or all"),
    (["--devices", "2"], "several devices"),
    (["--model-parallel", "2"], "--backend jax"),
]
COMPARE = [
    (["gmlp_n4_23"], "Did you mean 'gmlp_n4_32'"),
    (["gmlp_n4_32", "--data", "./nowhere"], "no such folder"),
    (["gmlp_n4_32", "--fractions", "0"], "(0, 1]"),
    (["gmlp_n4_32", "--jobs", "0"], "jobs"),
    (["gmlp_n4_32", "--set", "seed=3"], "--seeds"),
    (["gmlp_nano", "--tasks", "sst2"], "--prepared"),
    (["gmlp_nano", "--prepared", "runs/text", "--fractions", "0.5"], "--fractions"),
    (["gmlp_nono", "--prepared", "runs/text"], "gmlp_nono"),
]
TEXT = ["--text", "a.txt", "--valid", "b.txt"]
TUNE = ["--task", "sst2", "--weights", "x"]
TRAIN_TEXT = [
    (["--task", "sst2"], "weights"),
    (["--text", "a.txt"], "--valid"),
    (TUNE, "x: no such"),
    (["--prepared", "x", "--label", "y"], "label"),
    (["--prepared", "x", "--cased"], "tokenizer"),
    ([*TEXT, "--data", "digits"], "different runs"),
    ([*TEXT, "--strip-accents", "--tokenizer", "x"], "leave them out"),
    ([*TUNE, "--set-model", "depth=4"], "set_model"),
    ([*TUNE, "--set", "stochastic_depth=0.1"], "stochastic_depth"),
]
SIMILAR = [
    (["--out", "a/sheet.png"], "another path"),
]
ROWS = [
    ("check_data", ["photos", "--min-images", "-1"], "at least 0"),
    ("classify", [], "give an image"),
    ("classify", ["a", "b", "--pair", "c"], "--pair"),
    ("evaluate", ["runs/none", "--data", "photos", "--split", "best"], "invalid choice"),
    ("evaluate", ["runs/none", "--data", "sst2", "--limit", "0"], "at least 1"),
    ("export", [".", "--no-check", "--formats", "tflite_int8"], "--no-check"),
    ("visualize", ["--only", "everything"], "invalid choice"),
    ("serve", ["--port", "65536"], "65535"),
    ("fill_mask", [], "give a text"),
    *(("train", *row) for row in TRAIN),
    *(("compare", *row) for row in COMPARE),
    *(("train", ["--precision", "float32", *given], why) for given, why in TRAIN_TEXT),
    *(("similar", ["query.png", "--data", "a", *given], why) for given, why in SIMILAR),
]


# Runs programs with wrong options in turn, and fails if one imports Keras or is content.
RUN = """
import json, sys
from keras_gmlp.programs import run
for name, arguments in json.loads(sys.argv[1]):
    try:
        code = run(name, arguments)
    except SystemExit as stopped:
        code = stopped.code
    slow = {"keras", "tensorflow", "torch", "jax"} & set(sys.modules)
    if slow or code != 2:
        sys.exit(f"{name} {arguments}: imports {slow}, {code}")
"""
# Of errors that Keras has to be imported for.
LATE = ("devices", "--backend jax")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert {path.name for path in tmp_path.iterdir()} == {"a"}


@pytest.mark.parametrize("name", dict.fromkeys(row[0] for row in ROWS))
def test_wrong_usage(name, app, folder):
    for arguments, reason in (row[1:] for row in ROWS if row[0] == name):
        code, output, error = app(name, *arguments)
        assert (code, output, error.count("\n")) == (2, "", 1), arguments
        assert reason in error


def test_wrong_usage_imports_no_backend(folder):
    rows = [row[:2] for row in ROWS if not any(words in row[2] for words in LATE)]
    command = [sys.executable, "-c", RUN, json.dumps(rows)]
    environment = {**os.environ, "PYTHONPATH": str(APPS.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.count("\n") == len(rows)
