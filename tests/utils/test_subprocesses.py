"""A module on another backend, in a process of its own."""

import json

import pytest

from keras_gmlp.utils.environment import run_on

PROGRAM = """
import json, os, sys
if sys.argv[1:] == ["fail"]:
    sys.exit("first line\\nno such model")
if sys.argv[1:] == ["crash"]:
    os.abort()
if sys.argv[1:] == ["fill"]:
    raise OSError(28, "No space left on device", "a/model.onnx")
print(json.dumps([os.environ["KERAS_BACKEND"], os.environ["KERAS_TORCH_DEVICE"], sys.argv[1:]]))
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "program_of_a_test.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "program_of_a_test"


@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_module_gets_the_backend_and_its_arguments(module, backend, tmp_path):
    found = json.loads(run_on(backend, module, tmp_path, 3))
    assert found == [backend, "cpu", [str(tmp_path), "3"]]


def test_library_in_the_working_folder_does_not_run(module, tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "json.py").write_text("raise SystemExit('a stranger')")
    monkeypatch.chdir(tmp_path / "folder")
    assert json.loads(run_on("torch", module))[0] == "torch"


def test_failure_is_the_last_line_of_its_log(module):
    with pytest.raises(RuntimeError, match=r"^Keras on jax: no such model$"):
        run_on("jax", module, "fail")


def test_full_disk_is_an_error_of_the_system(module):
    with pytest.raises(OSError, match="No space left on device") as caught:
        run_on("torch", module, "fill")
    assert (caught.value.errno, caught.value.filename) == (28, "a/model.onnx")


def test_crash_names_the_signal(module):
    with pytest.raises(RuntimeError, match=r"^Keras on torch: ended by SIGABRT$"):
        run_on("torch", module, "crash")


def test_missing_module_is_named():
    with pytest.raises(RuntimeError, match="No module named no_such_module_here"):
        run_on("torch", "no_such_module_here")
