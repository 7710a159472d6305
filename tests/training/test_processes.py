"""Training in several processes: the weights are those of one, and a lost process ends the rest."""

import argparse
import csv
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import shades
from load_app import load_app
from PIL import Image

import keras_gmlp
from keras_gmlp import Recipe
from keras_gmlp.data.batches.host import ArrayBatches
from keras_gmlp.training import pipeline
from keras_gmlp.utils.files import read_json

on_jax = pytest.mark.skipif(keras.backend.backend() != "jax", reason="requires JAX")

APPS = Path(__file__).parents[2] / "apps"
# The ImageNet recipe on a stand-in, from packed images to the export.
TRAIN = [APPS / "train.py", "--backend", "jax", "--recipe", "imagenet", "--precision", "float32"]
TRAIN += ["--image-size", "16", "--set-model", "depth=1", "--set-model", "dim=16"]
TRAIN += ["--epochs", "3", "--batch-size", "80", "--set", "pipeline=host"]


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def start(command, folder, devices):
    """Starts a process on devices that XLA makes of a processor."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    environment = {**os.environ, "XLA_FLAGS": flags, "KERAS_BACKEND": "jax"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    with open(folder / f"{time.monotonic_ns()}.log", "w+") as output:
        process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    process.log = Path(output.name)
    return process


def finish(running, seconds=300):
    """Returns the exit codes and the outputs of processes; ends them after some seconds."""
    deadline = time.monotonic() + seconds
    try:
        for process in running:
            process.wait(max(0.1, deadline - time.monotonic()))
    finally:
        for process in running:
            process.kill()
            process.wait()
    return [process.returncode for process in running], [p.log.read_text() for p in running]


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A packed set of a hundred classes: JPEGs of one colour each."""
    place = tmp_path_factory.mktemp("stand_in")
    rng = np.random.default_rng(0)
    for number in range(100):
        folder = place / "photos" / f"n{number:08}"
        folder.mkdir(parents=True)
        picture = Image.new("RGB", (25, 20), tuple(rng.integers(0, 256, 3).tolist()))
        for name in "abcde":
            picture.save(folder / f"{name}.jpg")
    command = [place / "photos", "--out", place / "packed", "--size", "18"]
    assert load_app("pack").main([*map(str, command)]) == 0
    return place / "packed"


def start_apps(folder, data):
    """Starts `apps/train.py` in two processes."""
    place = ["--data", data, "--out", folder / "run", "--coordinator", f"127.0.0.1:{free_port()}"]
    command = [*TRAIN, *place, "--processes", 2, "--process"]
    return [start([*command, number], folder, 1) for number in (0, 1)]


def read_epochs(folder):
    """Returns the epochs in `history.csv`, complete lines alone."""
    path = folder / "history.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [int(row[0]) for row in rows if len(row) > 1]


@on_jax
@pytest.mark.slow
def test_weights_do_not_depend_on_the_processes(tmp_path, monkeypatch):
    command, port = [shades.__file__], free_port()
    running = [start([*command, port, 2, number], tmp_path, 2) for number in (0, 1)]
    monkeypatch.chdir(tmp_path)
    shades.train_on("one")
    shades.train_on("one-host", pipeline="host", epochs=1)
    codes, outputs = finish(running)
    assert codes == [0, 0], outputs
    for one, several in [("one", "stopped"), ("one-host", "shared")]:
        expected = shades.read_weights(tmp_path / one)
        for process in (0, 1):
            found = shades.read_weights(tmp_path / several, process)
            for a, b in zip(expected, found, strict=True):
                np.testing.assert_allclose(a, b, atol=1e-5)
        accuracies = [
            read_json(tmp_path / n / "metrics.json")["test_accuracy"] for n in (one, several)
        ]
        assert accuracies[0] == pytest.approx(accuracies[1], abs=1e-6)
    assert read_epochs(tmp_path / "stopped") == [0, 1, 2]
    assert all("different settings" in output for output in outputs)
    assert not (tmp_path / "other").exists()


@on_jax
@pytest.mark.slow
def test_lost_process_ends_the_other_and_the_run_resumes(tmp_path, packed):
    running, run = start_apps(tmp_path, packed), tmp_path / "run"
    deadline = time.monotonic() + 120
    while not read_epochs(run) and time.monotonic() < deadline and running[0].poll() is None:
        time.sleep(0.1)
    running[1].kill()
    codes, outputs = finish(running, seconds=120)
    assert codes == [1, -9], outputs
    assert re.search(r"^train: lost another process, .* the run resumes\.$", outputs[0], re.M)
    assert "Traceback" not in outputs[0]
    assert 0 < len(read_epochs(run)) < 3
    codes, outputs = finish(start_apps(tmp_path, packed))
    assert codes == [0, 0], outputs
    assert read_epochs(run) == [0, 1, 2]
    assert read_json(run / "metrics.json")["exports"]["tflite"]["accuracy"] >= 0
    assert "train: " not in outputs[1]


def test_errors_of_a_lost_connection():
    for text, lost in (
        ("UNKNOWN: Gloo AllGather failed: [external/gloo/pair.cc:547] Connection closed", True),
        ("photos/igloo/x.jpg: damaged or truncated image (broken)", False),
    ):
        options = argparse.Namespace(coordinator="host:1")
        expected = "lost another process" if lost else re.escape(text)
        with pytest.raises((RuntimeError, ValueError), match=expected):
            raise_within(load_app("processes").reporting(options), ValueError(text))


def raise_within(context, error):
    with context:
        raise error


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX can")
def test_other_backends_refuse(app):
    given = ("--coordinator", "127.0.0.1:1", "--processes", "2", "--process", "0")
    code, _, error = app("train", "--data", "digits", *given)
    assert (code, "JAX" in error) == (2, True)


def test_processes_compare_the_number_of_samples(tmp_path, monkeypatch):
    compared = []

    def compare(settings):
        compared.append(settings)
        raise InterruptedError

    monkeypatch.setattr("keras_gmlp.training.train.check_agreement", compare)
    model = keras_gmlp.gMLP(**shades.SHAPE, dim=8, depth=1, hidden_dim=8)
    with pytest.raises(InterruptedError):
        keras_gmlp.train(model, shades.make_data(), Recipe(), tmp_path)
    assert compared[0]["samples"] == 146


def test_batches_of_a_dataset_are_divided(monkeypatch):
    batches = ArrayBatches({"a": np.arange(12).reshape(6, 2)}, np.arange(6), batch_size=4)
    monkeypatch.setattr(pipeline, "find_process", lambda: (1, 2))
    task = SimpleNamespace(training_batches=lambda *_: batches, endless=False)
    recipe = SimpleNamespace(task=task, seed=0, epochs=1)
    made, _ = pipeline.make_batches(None, None, recipe, 4, 0)
    inputs, targets = made[0]
    np.testing.assert_array_equal(inputs["a"], [[4, 5], [6, 7]])
    np.testing.assert_array_equal(targets, [2, 3])
    assert made.num_batches == 2
