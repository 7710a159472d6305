"""The command keras-gmlp: its list of programs, wrong names, and what a program imports early."""

import re
import subprocess
import sys

import pytest
from load_app import APPS

from keras_gmlp.programs import __main__ as command
from keras_gmlp.programs import list_programs
from keras_gmlp.programs.shared.messages import one_line
from keras_gmlp.utils.sources import DEFAULT_BACKBONE

# Prints the help of each program, and fails if one imports more than its usage requires.
HELP = """
import sys
from keras_gmlp.programs import list_programs, run
for name in list_programs():
    sys.argv[0] = f"{name}.py"
    try:
        run(name, ["--help"])
    except SystemExit as stopped:
        slow = {"keras", "tensorflow", "torch", "jax", "numpy", "PIL"} & set(sys.modules)
        if slow or stopped.code:
            sys.exit(f"{name}: imports {slow}, {stopped.code}")
"""


def run(*arguments):
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def ends(capsys, *arguments):
    """Returns the exit code and the output of a command that ends before a program begins."""
    with pytest.raises(SystemExit) as stopped:
        command.main(arguments)
    captured = capsys.readouterr()
    return stopped.value.code, captured.out + captured.err


@pytest.fixture(autouse=True)
def restored_name(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["keras-gmlp"])


def test_every_program_is_listed_and_has_a_file_in_apps(capsys):
    code, text = ends(capsys, "--help")
    assert code == 0
    assert "Classifies images or texts: prints the most probable" in text
    listed = {
        line.split()[0] for line in text.split("programs:\n")[1].split("\n\n")[0].splitlines()
    }
    assert listed == set(list_programs()) == {path.stem for path in APPS.glob("*.py")} - {"start"}


def test_wrong_usage_is_one_line(capsys):
    for arguments, reason in (
        (["trian"], "error: no program 'trian'. Did you mean train?\n"),
        (["shared"], "error: no program 'shared'. "),
        ([], "required: PROGRAM\n"),
        (["fill-mask", "--nothing"], "keras-gmlp fill_mask: error: unrecognized arguments"),
    ):
        code, text = ends(capsys, *arguments)
        assert (code, text.count("\n")) == (2, 1)
        assert reason in text


def test_help_and_advice_name_the_command(capsys):
    code, text = ends(capsys, "classify", "--help")
    assert code == 0
    assert text.startswith("usage: keras-gmlp classify ")
    assert "\n  keras-gmlp classify photos/ --top 1 " in text
    assert "apps/" not in text
    advice = ValueError("finish it with .venv/bin/python apps/train.py, pip install -e '.[onnx]'")
    assert one_line(advice) == "finish it with keras-gmlp train, pip install 'keras-gmlp[onnx]'"
    assert run(APPS / "classify.py", "--help").stdout.startswith("usage: classify.py ")


def test_help_of_each_program_teaches_and_imports_neither_a_backend_nor_numpy():
    done = run("-c", HELP)
    assert (done.returncode, done.stderr) == (0, "")
    texts = dict(re.findall(r"^usage: (\w+)\.py(.*?)(?=^usage: |\Z)", done.stdout, re.M | re.S))
    assert list(texts) == list(list_programs())
    for name, text in texts.items():
        assert text.count(f"apps/{name}.py") >= 2, name
        assert "examples" in text, name
        assert "exit codes: 0" in text, name
        assert (APPS / f"{name}.py").stat().st_mode & 0o100, name
    for name in ("check_data", "classify", "similar", "visualize"):
        assert f"included {DEFAULT_BACKBONE}" in " ".join(texts[name].split()), name


def test_file_in_apps_without_the_package_is_one_line(tmp_path):
    for name in ("start.py", "classify.py"):
        (tmp_path / name).write_text((APPS / name).read_text())
    done = run("-E", "-S", tmp_path / "classify.py", "photo.jpg")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("classify: No module named 'keras_gmlp'. Install: pip install ")
