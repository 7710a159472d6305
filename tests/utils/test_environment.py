"""The record of versions and hardware; modules on another backend, in a process of their own."""

import json
import os
import platform
from pathlib import Path

import keras
from refused import refused

from keras_gmlp.utils.environment import accelerators, environment, installed_versions, run_on


def test_record_names_what_runs_here():
    record = json.loads(json.dumps(environment()))
    assert record["backend"] == keras.backend.backend()
    assert record["python"] == platform.python_version()
    assert record["cores"] == os.cpu_count()
    assert record["versions"]["keras"] == keras.__version__
    info = Path("/proc/cpuinfo")
    names = info.read_text() if info.exists() else ""
    assert record["processor"] in (names + platform.processor() + platform.machine())
    assert record["devices"]
    assert list(installed_versions(["numpy", "no-such-package-here"])) == ["numpy"]
    assert accelerators(["cpu"]) == accelerators(["/device:CPU:0"]) == []
    assert accelerators(["NVIDIA H100", "NVIDIA H100", "TPU v4"]) == ["NVIDIA H100", "TPU v4"]


PROGRAM = """
import json, os, sys
if sys.argv[1:] == ["fail"]:
    sys.exit("first line\\nno such model")
print(json.dumps([os.environ["KERAS_BACKEND"], os.environ["KERAS_TORCH_DEVICE"], sys.argv[1:]]))
"""


def test_module_gets_the_backend_and_its_arguments(tmp_path, monkeypatch):
    (tmp_path / "program_of_a_test.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    # A library in the working folder does not run.
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "json.py").write_text("raise SystemExit('a stranger')")
    monkeypatch.chdir(tmp_path / "folder")
    found = json.loads(run_on("jax", "program_of_a_test", tmp_path, 3))
    assert found == ["jax", "cpu", [str(tmp_path), "3"]]
    with refused("no such model", "Keras on jax", RuntimeError):
        run_on("jax", "program_of_a_test", "fail")
