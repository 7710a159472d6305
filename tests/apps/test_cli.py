"""Exit codes and errors of the programs."""

import errno
import os
import re
import struct
import subprocess
import sys

import pytest
import tensorflow as tf
from load_app import APPS
from PIL import Image

from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.programs.shared import cli as console
from keras_gmlp.programs.shared import messages
from keras_gmlp.programs.shared.parser import Parser


def raising(error):
    def work():
        raise error

    return work


def test_errors_for_the_user_are_one_line(capsys):
    for error, code, text in (
        (ValueError("wrong\n  number"), 1, "app: wrong number\n"),
        (ValueError("a\x1b[2J\u202eb"), 1, "app: a\\x1b[2J\\u202eb\n"),
        (MemoryError(), 1, "app: out of memory; close other programs.\n"),
        (MemoryError("a: too little."), 1, "app: a: too little; close other programs.\n"),
        (RuntimeError(), 1, "app: RuntimeError\n"),
        (
            PermissionError(errno.EACCES, "Permission denied", "runs/a"),
            1,
            "app: runs/a: permission denied; choose a path that you can access.\n",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            1,
            "app: no space left on device; free some space and give the same command again.\n",
        ),
        (OSError("Unable to open file"), 1, "app: Unable to open file\n"),
        (OSError(errno.ENOENT, "cannot open\n'/Data/X.h5'"), 1, "app: cannot open '/Data/X.h5'.\n"),
        (ImportError("cannot import name 'a'"), 1, "app: cannot import name 'a'\n"),
        (tf.errors.OutOfRangeError(None, None, "File too\nlarge"), 1, "app: File too large\n"),
        (KeyboardInterrupt(), 130, "\napp: stopped.\n"),
        (KeyboardInterrupt("stopped; go on so."), 130, "\napp: stopped; go on so.\n"),
        (BrokenPipeError(), 1, "app: stopped; the output was closed.\n"),
    ):
        assert console.guarded("app", raising(error)) == code
        assert capsys.readouterr().err == text


def test_wrong_usage_is_one_line(capsys):
    parser = Parser(prog="app.py", description="Works.\nOn lines.")
    assert "Works.\nOn lines." in parser.format_help()
    with pytest.raises(SystemExit) as stopped:
        parser.error("expected\n  a number.")
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "app.py: error: expected a number.\n"
    with pytest.raises(SystemExit):
        parser.error("unrecognized arguments: .")
    assert capsys.readouterr().err == "app.py: error: unrecognized arguments: .\n"


OPTIONS = """\
names NAME+  what to read
--count N:count=3  how often
--kind one|two  which of
    the two
--file PATH!  a file
--again N*  may be repeated
[either]
--yes  this
--no  or that
[]
--backend
"""


def test_options_in_a_text():
    parser = Parser(prog="app.py")
    parser.add_options(OPTIONS, again={"type": int})
    found = parser.parse_args(["a", "b", "--file", "x", "--again", "1", "--again", "2", "--yes"])
    assert vars(found) == {
        "names": ["a", "b"],
        "count": 3,
        "kind": None,
        "file": "x",
        "again": [1, 2],
        "yes": True,
        "no": False,
        "backend": None,
    }
    text = " ".join(parser.format_help().split())
    assert "--count N how often; default: 3" in text
    assert "--kind {one,two} which of the two" in text
    for given in (["a"], ["--file", "x"], ["a", "--file", "x", "--yes", "--no"]):
        with pytest.raises(SystemExit):
            parser.parse_args(given)
    with pytest.raises(ValueError, match="--bad A B: expected METAVAR:type=default"):
        parser.add_options("--bad A B  a help")


def test_exit_code_of_the_work_is_kept():
    assert console.guarded("app", lambda: 7) == 7


def test_bugs_keep_their_traceback():
    with pytest.raises(KeyError):
        console.guarded("app", raising(KeyError("here")))


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("safetensors.numpy", "[convert]"),
        ("torch", "[torch]"),
        ("tensorflow", "[train]"),
        ("numpy", ""),
    ],
)
def test_missing_module_names_its_extra(module, extra, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(messages, "VENV", APPS.parent / "no .venv")
    error = ModuleNotFoundError(f"No module named {module!r}", name=module)
    advice = f'No module named {module!r}. Install: pip install -e "{APPS.parent}{extra}"'
    assert console.guarded("app", raising(error)) == 1
    assert capsys.readouterr().err == f"app: {advice}\n"
    monkeypatch.setattr(messages, "VENV", tmp_path)  # there, and not the one at work
    assert messages.missing(error).startswith(f"{advice}, or run this with {tmp_path}")
    monkeypatch.setattr(messages, "ROOT", tmp_path)  # a wheel's
    assert f'. Install: pip install "keras-gmlp{extra}"' in messages.missing(error)


def run(program, *options, **arguments):
    """A program of its own that begins with the console's parts."""
    source = "from keras_gmlp.programs.shared.cli import *\n" + program
    return subprocess.Popen(
        [sys.executable, *options, "-c", source],
        text=True,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": ""},  # as it is for users
        **arguments,
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


@pytest.mark.skipif(sys.platform == "win32", reason="has no such signal of a closed pipe")
def test_closed_pipe():
    for arguments, code, error in (
        ("lambda: print('found') or 0, only_prints=True", 0, ""),
        ("lambda: print('found') or 1, only_prints=True", 1, ""),  # an image failed before
        ("lambda: print('found') or 0", 1, "app: stopped; the output was closed.\n"),
    ):
        # It waits for its input to end, so that the pipe is closed before it prints.
        program = f"sys.stdin.read()\nsys.exit(guarded('app', {arguments}))"
        with run(program, stdout=subprocess.PIPE, stdin=subprocess.PIPE) as process:
            process.stdout.close()
            process.stdin.close()
            assert process.stderr.read() == error
        assert process.returncode == code


def test_program_without_output_streams(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert console.guarded("app", lambda: print("found") or 7) == 7
    assert console.guarded("app", raising(ValueError("wrong"))) == 1
    sys.stdout.close()
    sys.stderr.close()


def test_traceback_for_developers():
    with run("guarded('app', lambda: int('x'))", "-X", "dev", stdout=subprocess.DEVNULL) as process:
        assert "Traceback" in process.stderr.read()


@pytest.mark.parametrize("rest", ["time.sleep(60)", "return 0"])
def test_ctrl_c_in_a_callback_of_the_garbage_collector_is_repeated(rest):
    program = f"""
import gc, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job begins without it
def callback(phase, info):
    gc.callbacks.remove(callback)
    signal.raise_signal(signal.SIGINT)
    time.sleep(0)  # here it is raised, and dropped
def work():
    gc.callbacks.append(callback)
    gc.collect()
    print("went on", flush=True)
    {rest}
sys.exit(guarded("app", work))
"""
    process = run(program, stdout=subprocess.PIPE)
    output, error = process.communicate(timeout=90)
    assert (process.returncode, output, error) == (130, "went on\n", "\napp: stopped.\n")


def test_ctrl_c_while_a_program_starts():
    code = """import sys
sys.path[:0] = [sys.argv[1] + "/apps", sys.argv[1]]
import start, keras_gmlp.programs
def run(name):
    raise KeyboardInterrupt
keras_gmlp.programs.run = run
start.start("__main__", "classify")"""
    given = [sys.executable, "-c", code, str(APPS.parent)]
    done = subprocess.run(given, capture_output=True, text=True, timeout=90, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "classify: stopped.\n")


def test_damaged_tiff_is_one_line(tmp_path, capfd, caplog):
    """libtiff writes notes to standard error, and Pillow logs some."""
    Image.effect_noise((64, 64), 99).save(tmp_path / "a.tif", compression="tiff_lzw")
    content = bytearray((tmp_path / "a.tif").read_bytes())
    content[8:72] = b"U" * 64  # the first codes
    (tmp_path / "a.tif").write_bytes(content)
    Image.new("RGB", (8, 8)).save(tmp_path / "b.tif")
    content = bytearray((tmp_path / "b.tif").read_bytes())
    place = content.index(struct.pack("<HHI", 277, 3, 1)) + 8  # samples per pixel
    content[place : place + 2] = b"\xff\xff"
    (tmp_path / "b.tif").write_bytes(content)
    for name, reason in (("a.tif", "damaged or truncated"), ("b.tif", "not an image")):
        path = tmp_path / name
        assert console.guarded("app", lambda path=path: read_image(path, (8, 8, 1))) == 1
        assert re.fullmatch(rf"app: {re.escape(str(path))}: {reason}.*\n", capfd.readouterr().err)
    assert not caplog.records


def test_quiet_hides_output_of_native_code():
    program = "with quiet(): os.write(2, b'note')\nos.write(2, b'error')"
    process = run(program, stdout=subprocess.DEVNULL)
    assert process.communicate(timeout=60)[1] == "error"


def test_tensorflow_is_imported_without_its_notes():
    pytest.importorskip("tensorflow")
    program = "from keras_gmlp.programs.shared.cli import import_tensorflow; import_tensorflow()"
    for level in (None, "2"):
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": level}
        if level is None:
            del environment["TF_CPP_MIN_LOG_LEVEL"]
        command = [sys.executable, "-c", program]
        result = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert (result.returncode, result.stderr) == (0, b"")
