"""How the programs end, whatever goes wrong."""

import errno
import os
import subprocess
import sys

import pytest
from load_app import APPS, load_app

console = load_app("console")


def raising(error):
    def work():
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ValueError("wrong\n  number"), 1, "app: wrong number\n"),
        (RuntimeError(), 1, "app: RuntimeError\n"),
        (
            PermissionError(errno.EACCES, "Permission denied", "runs/a"),
            1,
            "app: runs/a: permission denied; choose a place that you may use.\n",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            1,
            "app: no space left on device; free some space and give the same command again.\n",
        ),
        (OSError("Unable to open file"), 1, "app: Unable to open file\n"),
        (KeyboardInterrupt(), 130, "\napp: stopped.\n"),
        (KeyboardInterrupt("stopped; go on so."), 130, "\napp: stopped; go on so.\n"),
        (BrokenPipeError(), 1, "app: stopped; nobody reads the output any more.\n"),
    ],
)
def test_what_a_user_meets_is_one_line(error, code, text, capsys):
    assert console.guarded("app", raising(error)) == code
    assert capsys.readouterr().err == text


def test_own_exit_codes_pass():
    assert console.guarded("app", lambda: 7) == 7


def test_a_fault_of_the_program_is_no_users_mistake():
    with pytest.raises(KeyError):
        console.guarded("app", raising(KeyError("here")))


@pytest.mark.parametrize(
    ("module", "install"),
    [
        ("safetensors.numpy", "pip install -e '.[convert]'"),
        ("torch", "pip install -e '.[torch]'"),
        ("tensorflow", "pip install -e '.[train]'"),
        ("numpy", f"pip install -e {APPS.parent}"),
    ],
)
def test_missing_module_names_what_brings_it(module, install, monkeypatch, tmp_path):
    monkeypatch.setattr(console, "VENV", APPS.parent / "no .venv")
    error = ModuleNotFoundError(f"No module named {module!r}", name=module)
    assert console.missing(error) == f"No module named {module!r}. Install: {install}"
    monkeypatch.setattr(console, "VENV", tmp_path)  # there, and not the one at work
    assert console.missing(error).endswith(f"Run this with {tmp_path / 'bin' / 'python'}")


def run(program, **arguments):
    """A program of its own that begins with the console's parts."""
    source = f"import sys; sys.path.insert(0, {str(APPS)!r}); from console import *\n" + program
    return subprocess.Popen(
        [sys.executable, "-c", source], text=True, stderr=subprocess.PIPE, **arguments
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no such device")
def test_output_that_cannot_be_written():
    with open("/dev/full", "w") as full:
        process = run("sys.exit(guarded('app', lambda: print('found') or 0))", stdout=full)
        error = process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert error == (
        "app: no space left on device; free some space and give the same command again.\n"
    )


def test_reader_who_has_had_enough():
    program = "sys.exit(guarded('app', lambda: print('found') or 0, only_prints=True))"
    process = run(program, stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    process.stdin.close()
    assert (process.wait(timeout=60), error) == (0, "")


def test_ctrl_c_in_a_callback_of_the_garbage_collector_is_heard():
    program = """
import gc, signal, time
def callback(phase, info):
    gc.callbacks.remove(callback)
    signal.raise_signal(signal.SIGINT)
    time.sleep(0)  # here it is raised, and dropped
def work():
    gc.callbacks.append(callback)
    gc.collect()
    print("went on", flush=True)
    time.sleep(60)
sys.exit(guarded("app", work))
"""
    process = run(program, stdout=subprocess.PIPE)
    output, error = process.communicate(timeout=90)
    assert (process.returncode, output, error) == (130, "went on\n", "\napp: stopped.\n")


def test_quiet_hides_what_is_written_below_python():
    program = "with quiet(): os.write(2, b'note')\nos.write(2, b'error')"
    process = run(program, stdout=subprocess.DEVNULL)
    assert process.communicate(timeout=60)[1] == "error"
