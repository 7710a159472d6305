"""Training on several devices and in several processes: the weights are those of one device.

A lost process ends the others, and the run resumes.
"""

import dataclasses
import json
import os
import re
import socket
import subprocess
import sys
from types import SimpleNamespace

import keras
import numpy as np
import one_of_two
import pytest
from load_app import load_app
from own_images import write_folder
from read_table import read_table
from tiny_run import RECIPE, make_data, tiny_model

import keras_gmlp
from keras_gmlp.data.batches.host import array_batches
from keras_gmlp.training import pipeline
from keras_gmlp.training.devices import use_devices

on_jax = pytest.mark.skipif(keras.backend.backend() != "jax", reason="requires JAX")

# 72 training images, three batches, and 21 test images, which four devices cannot divide.
TRAIN = ["--backend", "jax", "--model", "amlp_n4_32", "--weights", "none", "--no-export"]
TRAIN += ["--epochs", "3", "--batch-size", "24", "--image-size", "8", "--precision", "float32"]
for setting in ("dim=16", "depth=2", "hidden_dim=32", "attention_size=8"):
    TRAIN += ["--set-model", setting]
for setting in ("mixup=0.3", "cutmix=0.3", "stochastic_depth=0.2", "ema=0.2"):
    TRAIN += ["--set", setting]


def start(folder, *arguments):
    """Starts a process with two devices, whose output goes to a file."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    path = os.pathsep.join(filter(None, sys.path))
    with open(folder / f"{arguments[1]}.log", "w") as log:
        return subprocess.Popen(
            [sys.executable, one_of_two.__file__, *arguments],
            cwd=folder,
            env={**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": path},
            stdout=log,
            stderr=subprocess.STDOUT,
        )


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folder of runs, and the exit codes and outputs of two processes that trained there.

    The lost run began in two processes, resumed there, and after the loss on eight devices.
    """
    folder = tmp_path_factory.mktemp("runs")
    train = [*TRAIN, "--data", write_folder(folder / "photos", train=24, test=7)]
    host, device = (["--set", f"pipeline={name}", "--out"] for name in ("host", "device"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    running = [start(folder, port, process, *train) for process in "01"]
    main = load_app("train").main
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        try:
            assert main([*train, *device, "device-1"]) == 0
            assert main([*train, *host, "host-1"]) == 0
            assert main([*train, *host, "host-3", "--devices", "3"]) == 0
            codes = [process.wait(300) for process in running]
        finally:
            for process in running:
                process.kill()
                process.wait()
        outputs = [(folder / f"{process}.log").read_text() for process in "01"]
        assert codes == [1, -9], outputs
        epochs = len(history(folder / "lost"))
        assert main([*train, "--out", "lost", "--devices", "8"]) == 0
    return folder, outputs, epochs


def history(run):
    return read_table(run / "history.csv")


@on_jax
@pytest.mark.slow
def test_lost_process_ends_the_other(runs):
    folder, outputs, epochs = runs
    assert re.search(r"^train: lost another process, .* the run resumes\.$", outputs[0], re.M)
    assert "Traceback" not in outputs[0]
    assert epochs == 2
    assert all("different settings" in output for output in outputs)
    assert not (folder / "other").exists()


@on_jax
@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "several"), [("host-1", "host-3"), ("host-1", "shared"), ("device-1", "lost")]
)
def test_weights_and_scores_do_not_depend_on_the_devices(runs, one, several):
    one, several = runs[0] / one, runs[0] / several
    models = [keras_gmlp.load_model(run / "model.keras") for run in (one, several)]
    for a, b in zip(*(model.get_weights() for model in models), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    for ours, theirs in zip(history(several), history(one), strict=True):
        for name in ("epoch", "val_accuracy", "val_loss"):
            assert float(ours[name]) == pytest.approx(float(theirs[name]), rel=1e-5)
    found, expected = (
        json.loads((run / "metrics.json").read_text())["test_accuracy"] for run in (several, one)
    )
    assert found == pytest.approx(expected, abs=1e-6)
    assert 21 * found == pytest.approx(round(21 * found), abs=1e-3)  # each image counts once


@on_jax
def test_float16(tmp_path):
    recipe = dataclasses.replace(RECIPE, epochs=1, precision="mixed_float16", pipeline="device")
    with use_devices(4):
        model = tiny_model(**recipe.model_arguments())
        metrics = keras_gmlp.train(model, make_data(), recipe, tmp_path, verbose=0)
    assert np.isfinite(metrics["test_loss"])


@on_jax
def test_devices_that_cannot_train(tmp_path):
    for devices, reason in ((5, "split evenly"), (99, "99"), (-1, "-1")):
        with pytest.raises(ValueError, match=reason), use_devices(devices):
            keras_gmlp.train(tiny_model(), make_data(), RECIPE, tmp_path, verbose=0)


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX can")
def test_other_backends_refuse(app):
    for devices in (2, "all"):
        with pytest.raises(ValueError, match="JAX"), use_devices(devices):
            pass
    several = ("--coordinator", "127.0.0.1:1", "--processes", "2", "--process", "0")
    for given in (several, ("--devices", "2")):
        code, _, error = app("train", "--data", "digits", "--precision", "float32", *given)
        assert (code, "JAX" in error) == (1, True)


@pytest.mark.once
def test_batches_of_a_dataset_are_divided(monkeypatch):
    batches = array_batches({"a": np.arange(12).reshape(6, 2)}, np.arange(6), batch_size=4)
    monkeypatch.setattr(pipeline, "find_process", lambda: (1, 2))
    task = SimpleNamespace(training_batches=lambda *_: batches)
    recipe = SimpleNamespace(task=task, seed=0, epochs=1, count_batches=lambda data: (4, 1))
    made, _ = pipeline._make_batches(None, recipe, 0)
    inputs, targets = made[0]
    np.testing.assert_array_equal(inputs["a"], [[4, 5], [6, 7]])
    np.testing.assert_array_equal(targets, [2, 3])
    assert made.num_batches == 2
