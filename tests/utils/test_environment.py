"""The record of versions and hardware."""

import json
import os
import platform
from pathlib import Path

import keras
import pytest

from keras_gmlp.utils.environment import (
    accelerators,
    environment,
    installed_versions,
    processor,
    visible_gpus,
)


def test_record_names_what_runs_here():
    record = json.loads(json.dumps(environment()))
    assert record["backend"] == keras.backend.backend()
    assert record["python"] == platform.python_version()
    assert record["cores"] == os.cpu_count()
    assert record["versions"]["keras"] == keras.__version__
    assert record["processor"] == processor()
    assert record["devices"]


def test_versions_of_installed_packages_alone():
    assert installed_versions(["no-such-package-here"]) == {}
    found = installed_versions(["numpy", "no-such-package-here", "keras"])
    assert list(found) == ["numpy", "keras"]
    assert found["keras"] == keras.__version__


@pytest.mark.skipif(not os.path.exists("/proc/cpuinfo"), reason="only Linux lists it there")
def test_processor_is_that_of_the_system():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = {line.partition(":")[2].strip() for line in lines if line.startswith("model name")}
    assert processor() in (names or {platform.processor() or platform.machine()})


def test_accelerators_are_all_but_the_cpu_each_once():
    assert accelerators(["cpu"]) == []
    assert accelerators(["/physical_device:CPU:0", "/physical_device:GPU:0"]) == [
        "/physical_device:GPU:0"
    ]
    assert accelerators(["NVIDIA H100", "NVIDIA H100", "TPU v4"]) == ["NVIDIA H100", "TPU v4"]
    assert accelerators([]) == []


def test_chosen_gpus(monkeypatch):
    for chosen, expected in (("0,3", ["0", "3"]), ("", []), ("-1", []), ("a, 1", ["a", "1"])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
        assert visible_gpus() == expected


def test_gpus_of_the_driver(monkeypatch, tmp_path):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert visible_gpus() == []
    lists = tmp_path / "nvidia-smi"
    lists.write_text("#!/bin/sh\necho 'GPU 0: X (UUID: a)'\necho 'GPU 1: X (UUID: b)'\n")
    lists.chmod(0o755)
    assert visible_gpus() == ["0", "1"]
    lists.write_text("#!/bin/sh\nexit 9\n")
    assert visible_gpus() == []
