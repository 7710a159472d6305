"""The frame of all programs: exit codes, and errors on one line."""

import errno
import importlib
import os
import subprocess
import sys

import pytest
import tensorflow as tf
from load_app import APPS

from keras_gmlp.programs.shared.cli import guarded


def raising(error):
    def work(*_):
        raise error

    return work


def test_errors_for_the_user_are_one_line(capsys):
    missing = OSError(errno.ENOENT, "cannot\nopen", "runs/a")
    for error, code, text in (
        (ValueError("wrong\n  number\x1b[2J"), 1, "app: wrong number\\x1b[2J\n"),
        (MemoryError(), 1, "app: MemoryError\n"),
        (missing, 1, "app: [Errno 2] cannot open: 'runs/a'\n"),
        (tf.errors.OutOfRangeError(None, None, "File too\nlarge"), 1, "app: File too large\n"),
        (KeyboardInterrupt(), 130, "\napp: stopped.\n"),
        (KeyboardInterrupt("stopped; go on so."), 130, "\napp: stopped; go on so.\n"),
    ):
        assert guarded("app", raising(error)) == code
        assert capsys.readouterr().err == text
    with pytest.raises(KeyError):  # a bug, which keeps its traceback
        guarded("app", raising(KeyError("here")))


def test_missing_module_names_its_extra(capsys):
    for module, extra in (("tensorflow", "train"), ("jax", "jax")):
        error = ModuleNotFoundError(f"No module named {module!r}", name=f"{module}.numpy")
        assert guarded("app", raising(error)) == 1
        assert f"{error}. Install: pip install -e '.[{extra}]'\n" in capsys.readouterr().err


def run(program, **arguments):
    """A program of its own that begins with the console's parts; its code, output and errors."""
    source = "from keras_gmlp.programs.shared.cli import *\n" + program
    process = subprocess.Popen(
        [sys.executable, "-c", source],
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **arguments},
        env={**os.environ, "PYTHONUNBUFFERED": ""},  # as it is for users
    )
    if arguments.get("stdin"):  # the program waits for its end, and its output is closed before
        process.stdout.close()
        process.stdout = None
    output, error = process.communicate(timeout=90)
    return process.returncode, output, error


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no such device")
def test_output_that_cannot_be_written():
    with open("/dev/full", "w") as full:
        code, _, error = run("sys.exit(guarded('app', lambda: print('found') or 0))", stdout=full)
    assert (code, "No space left on device" in error, error.count("\n")) == (1, True, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="has no such signal of a closed pipe")
def test_closed_pipe():
    program = "sys.stdin.read()\nsys.exit(guarded('app', lambda: print('found') or 0))"
    assert run(program, stdin=subprocess.PIPE) == (1, None, "")


def test_ctrl_c_while_a_program_starts(monkeypatch, capsys):
    monkeypatch.syspath_prepend(APPS)
    monkeypatch.setattr("keras_gmlp.programs.run", raising(KeyboardInterrupt()))
    with pytest.raises(SystemExit) as stopped:
        importlib.import_module("start").start("__main__", "classify")
    assert (stopped.value.code, *capsys.readouterr()) == (130, "", "classify: stopped.\n")
