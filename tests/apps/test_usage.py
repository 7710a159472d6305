"""Wrong usage of each program: exit code 2 and one line, before anything is written."""

import json
import os
import subprocess
import sys

import pytest
from load_app import APPS

TRAIN = [
    (["--model", "gmlp_n4_23"], "Did you mean 'gmlp_n4_32'"),
    (["--recipe", "fast"], "one of: quick, standard, long, finetune, resolution, imagenet"),
    (["--set", "mixpu=0.3"], "no such setting"),
    (["--set", "mixup=much"], "expected mixup=NUMBER"),
    (["--set", "warmup=null"], "expected warmup=NUMBER"),
    (["--set", "warmup=[0.1]"], "expected warmup=NUMBER"),
    (["--set", "resized_crop=all"], "expected resized_crop=[SMALLEST,LARGEST], or 0"),
    (["--set", "resized_crop=[1,2]"], "such as [0.08, 1]; received [1, 2]"),
    (["--seed", "-1"], "seed must be in"),
    (["--folds", "1"], "folds"),
    (["--set", "mixup=3"], "mixup must be a number in [0, 1]; received 3"),
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
]
COMPARE = [
    (["gmlp_n4_23"], "Did you mean 'gmlp_n4_32'"),
    (["gmlp_n4_32", "--recipe", "fast"], "Expected one of: quick"),
    (["gmlp_n4_32", "--data", "./nowhere"], "./nowhere: no such folder."),
    (["gmlp_n4_32", "--fractions", "0"], "must be in (0, 1]"),
    (["gmlp_n4_32", "--jobs", "0"], "jobs must be from 1 to the"),
    (["gmlp_n4_32", "--epochs", "0"], "at least 1"),
    (["gmlp_n4_32", "--seeds", "-1"], "seed must be in"),
    (["gmlp_n4_32", "--", "--set", "mixpu=1"], "no such setting"),
    (["gmlp_n4_32", "--", "--set", "seed=3"], "give seeds and epochs as --seeds"),
    (["gmlp_n4_32", "--", "--seed", "3"], "give what --seed says before --"),
    ([], "required: PRESET"),
    (["gmlp_nano", "--tasks", "sst2"], "--tasks requires --text"),
    (
        ["gmlp_nano", "--text", "runs/text", "--fractions", "0.5"],
        "--text takes neither --fractions",
    ),
    (["gmlp_nono", "--text", "runs/text"], "gmlp_nono"),
    (["gmlp_nano", "--text", "runs/text", "--recipe", "fast"], "quick"),
]
TEXT = ["--text", "a.txt", "--valid", "b.txt"]
TUNE = ["--task", "sst2", "--weights", "x"]
TRAIN_TEXT = [
    ([], "give --text FILE to pre-train, or --task NAME --weights RUN"),
    (["--task", "sst2"], "--task requires --weights"),
    (["--weights", "runs/x"], "--weights requires --task"),
    (["--text", "a.txt"], "--text requires --valid"),
    (["--prepared", "x", "--model", "gmlp_nona"], "Did you mean 'gmlp_nano'"),
    (TUNE, "x: no such folder; expected the folder of a run of apps/train_text.py"),
    (["--prepared", "x", "--label", "y"], "--patience require --task"),
    (["--prepared", "x", "--vocabulary-size", "500"], "prepared text has its tokenizer"),
    (["--prepared", "x", "--cased"], "prepared text has its tokenizer"),
    ([*TEXT, "--strip-accents", "--tokenizer", "x"], "are for a new tokenizer; leave them out"),
    ([*TUNE, "--set-model", "depth=4"], "--set-model is for pre-training"),
    ([*TUNE, "--set", "stochastic_depth=0.1"], "stochastic_depth is for pre-training"),
    ([*TUNE, "--dropout", "2"], "dropout must be in [0, 1)"),
    ([*TUNE, "--recipe", "fast"], "finetune"),
    (["--prepared", "x", "--recipe", "fast"], "quick"),
]
SIMILAR = [
    (["--top", "0"], "--top: must be at least 1; received 0"),
    (["--out", "sheet.jpg"], "--out must be a .png file; received 'sheet.jpg'"),
    (["--out", "a/sheet.png"], "a/sheet.png is in a; give --out a path outside"),
]
ROWS = [
    ("calibrate", ["--data", "photos"], "required: RUN"),
    ("calibrate", ["runs/none", "--reject", "1"], "at least 0 and below 1"),
    ("check_data", ["photos", "--min-images", "-1"], "at least 0; received -1"),
    ("classify", [], "required: IMAGE|FOLDER"),
    ("evaluate", ["runs/none", "--data", "photos", "--split", "best"], "invalid choice: 'best'"),
    ("evaluate_text", ["runs/none", "--data", "sst2", "--limit", "0"], "at least 1; received 0"),
    ("export", ["runs/none", "--formats", "tflight"], "invalid choice: 'tflight'"),
    ("export", [".", "--no-check", "--formats", "tflite_int8"], "leave out --no-check"),
    ("visualize", ["--only", "everything"], "invalid choice: 'everything'"),
    ("serve", ["--port", "65536"], "from 0 to 65535"),
    ("serve", ["--port", "x"], "invalid int"),
    ("serve", ["more"], "unrecognized"),
    ("fill_mask", [], "give a text"),
    ("classify_text", ["a", "b", "--pair", "c"], "--pair"),
    ("classify_text", ["a", "--top", "0"], "at least 1"),
    *(("train", *row) for row in TRAIN),
    *(("compare", *row) for row in COMPARE),
    *(("train_text", ["--precision", "float32", *given], why) for given, why in TRAIN_TEXT),
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
