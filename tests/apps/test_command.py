"""The command keras-gmlp: its programs, their help, and wrong usage before anything is written."""

import json
import os
import re
import subprocess
import sys

import pytest
from load_app import APPS

from keras_gmlp.programs import list_programs
from keras_gmlp.programs.shared.messages import one_line

TRAIN = [
    (["--model", "gmlp_n4_23"], "Did you mean 'gmlp_n4_32'"),
    (["--set", "mixpu=0.3"], "Did you mean 'mixup'"),
    (["--set", "warmup=null"], "NUMBER"),
    (["--weights", "runs/a/model.keras", "--out", "runs/a"], "is where the weights are"),
    (["--devices", "two"], "invalid devices"),
    (["--prepared", "x", "--cased"], "tokenizer"),
    (["--text", "a.txt"], "--valid"),
    (["--text", "a.txt", "--valid", "b.txt", "--cased", "--tokenizer", "x"], "leave them out"),
]
COMPARE = [
    (["gmlp_n4_32", "--data", "./nowhere"], "no such folder"),
    (["gmlp_n4_32", "--set", "seed=3"], "--seeds"),
    (["gmlp_nano", "--tasks", "sst2"], "--prepared"),
    (["gmlp_nano", "--prepared", "runs/text", "--fractions", "0.5"], "--fractions"),
]
ROWS = [
    ("check_data", ["photos", "--min-images", "few"], "invalid int"),
    ("classify", [], "give an image"),
    ("classify", ["a", "--modle=x"], "Did you mean --model?"),
    ("classify", ["a", "b", "--pair", "c"], "--pair"),
    ("evaluate", ["runs/none", "--data", "sst2", "--limit", "0"], "at least 1"),
    ("fill_mask", [], "give a text"),
    ("pack", ["photos", "--out", "packed", "--size", "0"], "HEIGHTxWIDTH"),
    ("similar", ["query.png", "--data", "a", "--out", "a/sheet.png"], "another path"),
    *(("train", [*given, "--precision", "float32"], reason) for given, reason in TRAIN),
    *(("compare", *row) for row in COMPARE),
]

# Prints the help of each program, then runs programs with wrong options in turn; fails if one is
# content, or imports a backend, or its help more than the usage requires.
RUN = """
import json, sys
from keras_gmlp.programs import list_programs, run
backends = {"keras", "tensorflow", "torch", "jax"}
helps = [(name, ["--help"], 0, backends | {"numpy", "PIL"}) for name in list_programs()]
for name, arguments, expected, slow in helps + json.loads(sys.argv[1]):
    sys.argv[0] = f"{name}.py"
    try:
        code = run(name, arguments)
    except SystemExit as stopped:
        code = stopped.code
    slow = set(slow or backends) & set(sys.modules)
    if slow or code != expected:
        sys.exit(f"{name} {arguments}: imports {slow}, {code}")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder that stays as it is."""
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["keras-gmlp"])
    yield tmp_path
    assert {path.name for path in tmp_path.iterdir()} == {"a"}


def test_help_teaches_and_neither_it_nor_wrong_usage_imports_a_backend():
    rows = [(*row[:2], 2, None) for row in ROWS]
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(rows)],
        env={**os.environ, "PYTHONPATH": str(APPS.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for (name, _, reason), error in zip(ROWS, done.stderr.splitlines(), strict=True):
        assert error.startswith(f"{name}.py: error: ")
        assert reason in error
    texts = dict(re.findall(r"^usage: (\w+)\.py(.*?)(?=^usage: |\Z)", done.stdout, re.M | re.S))
    assert list(texts) == list(list_programs())
    for name, text in texts.items():
        assert text.count(f"apps/{name}.py") >= 2, name
        assert "examples" in text, name
        assert "exit codes: 0" in text, name
        assert (APPS / f"{name}.py").stat().st_mode & 0o100, name


def test_every_program_is_listed_and_has_a_file_in_apps(app):
    _, text, _ = app("__main__", "--help")
    lines = text.split("programs:\n")[1].split("\n\n")[0].splitlines()
    listed = {line.split()[0] for line in lines}
    assert listed == set(list_programs()) == {path.stem for path in APPS.glob("*.py")} - {"start"}


def test_wrong_programs_are_one_line(app):
    for arguments, reason in (
        (["trian"], "error: no program 'trian'. Did you mean train?\n"),
        ([], "required: PROGRAM\n"),
        (["fill-mask", "--nothing"], "keras-gmlp fill_mask: error: unrecognized arguments"),
    ):
        code, _, error = app("__main__", *arguments)
        assert (code, reason in error, error.count("\n")) == (2, True, 1)


def test_help_and_advice_name_the_command(app):
    code, text, _ = app("__main__", "classify", "--help")
    assert code == 0
    assert text.startswith("usage: keras-gmlp classify ")
    assert "\n  keras-gmlp classify photos/ --top 1 " in text
    assert "apps/" not in text
    advice = ValueError("finish it with .venv/bin/python apps/train.py, pip install -e '.[onnx]'")
    assert one_line(advice) == "finish it with keras-gmlp train, pip install 'keras-gmlp[onnx]'"


def test_file_in_apps_without_the_package_is_one_line(tmp_path_factory):
    place = tmp_path_factory.mktemp("apps")
    for name in ("start.py", "classify.py"):
        (place / name).write_text((APPS / name).read_text())
    command = [sys.executable, "-E", "-S", str(place / "classify.py"), "photo.jpg"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("classify: No module named 'keras_gmlp'. Install: pip install ")
