"""Training on several devices: the weights are those of one device."""

import json
import os
import re
import subprocess
import sys

import keras
import numpy as np
import pytest
from read_table import read_table
from shades import read_weights

from keras_gmlp.training.devices import use_devices

on_jax = pytest.mark.skipif(keras.backend.backend() != "jax", reason="requires JAX")

PROGRAM = """
import keras, numpy as np
import keras_gmlp
from keras_gmlp import text
from keras_gmlp.training.recipes import find_recipe, override
from shades import SHAPE, SIZES, make_data, train_on

train_on("device-1", 1)
train_on("device-4x2", 8, model_parallel=2)
train_on("host-1", 1, "host")
train_on("host-3", 3, "host")
train_on("resumed", 8, stop=True)
train_on("resumed", 2, model_parallel=2, stop=True)
train_on("resumed", 1)
train_on("half", 4, precision="mixed_float16", epochs=1, optimizer="adamw")

words = "the cat sat on a mat and saw one dog run to its old red house".split()
lines = [" ".join(np.random.default_rng(i).choice(words, 14)) for i in range(60)]
with open("text.txt", "w") as file:
    file.write("\\n\\n".join(lines))
corpus = text.prepare_corpus("text.txt", 128, "corpus", valid="text.txt")
changes = {"length": 16, "epoch_tokens": 512, "epochs": 2, "batch_size": 8}
changes |= {"precision": "float32", "pipeline": "device"}
for name, devices in (("text-1", 1), ("text-4", 4)):
    keras.utils.set_random_seed(0)
    with keras_gmlp.use_devices(devices):
        sizes = {"dim": 8, "depth": 1, "hidden_dim": 16, "max_length": 16}
        model = text.gMLP(corpus.tokenizer.size, **sizes)
        recipe = override(find_recipe("quick", "masked_lm"), changes)
        keras_gmlp.train(model, corpus, recipe, name, verbose=0)
        np.savez(f"{name}/weights-0.npz", *model.get_weights())

with keras_gmlp.use_devices(4, model_parallel=4):
    for family, own in [(keras_gmlp.EAMLP, {"num_heads": 2}), (keras_gmlp.ViT, {"num_heads": 2})]:
        model = family(16, 1, **own, **SHAPE)
        images = make_data().test.arrays()[0]
        print(model.name, np.isfinite(model.predict(images[:4], verbose=0)).all())
model = keras_gmlp.aMLP(**SHAPE, **SIZES)
recipe = override(find_recipe("quick"), {"batch_size": 48, "pipeline": "device"})
for devices in (2, 5):  # built elsewhere; 48 samples
    try:
        with keras_gmlp.use_devices(devices):
            keras_gmlp.train(model, make_data(), recipe, "outside", verbose=0)
    except ValueError as error:
        print("refused:", error)
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folder of runs on eight devices that XLA makes of a processor, and what was printed."""
    folder = tmp_path_factory.mktemp("runs")
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    environment = {**os.environ, "XLA_FLAGS": flags, "KERAS_BACKEND": "jax"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-c", PROGRAM]
    options = {"capture_output": True, "text": True, "timeout": 500, "check": False}
    result = subprocess.run(command, cwd=folder, env=environment, **options)
    assert result.returncode == 0, result.stderr
    return folder, result.stdout.splitlines()


def history(folder, name):
    return read_table(folder / name / "history.csv")


@on_jax
@pytest.mark.slow
def test_variables_are_where_they_should_be(runs):
    assert [line for line in runs[1] if re.match("device|host", line)] == [
        "device-1 1 (16, 32)",
        "device-4x2 8 (16, 16)",
        "host-1 1 (16, 32)",
        "host-3 3 (16, 32)",
    ]


@on_jax
@pytest.mark.slow
@pytest.mark.parametrize("several", ["device-4x2", "resumed", "host-3"])
def test_weights_do_not_depend_on_the_devices(runs, several):
    folder, one = runs[0], "host-1" if several.startswith("host") else "device-1"
    assert [row["epoch"] for row in history(folder, several)] == ["0", "1", "2"]
    for a, b in zip(read_weights(folder / one), read_weights(folder / several), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


@on_jax
@pytest.mark.slow
def test_language_models_train_on_several_devices(runs):
    one, several = (read_weights(runs[0] / name) for name in ("text-1", "text-4"))
    for a, b in zip(one, several, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    assert len(history(runs[0], "text-4")) == 2


@on_jax
@pytest.mark.slow
def test_float16_copied_heads_and_models_from_elsewhere(runs):
    assert np.isfinite(float(history(runs[0], "half")[0]["loss"]))
    assert {"eamlp True", "vit True"} <= set(runs[1])
    assert sum(line.startswith("refused:") for line in runs[1]) == 2


@on_jax
@pytest.mark.slow
@pytest.mark.parametrize("several", ["device-4x2", "host-3"])
def test_each_test_image_counts_once(runs, several):
    # 54 images: 4 parts of a batch could not be equal.
    folder, one = runs[0], "host-1" if several.startswith("host") else "device-1"
    for name in ("val_accuracy", "val_loss"):
        expected = [float(row[name]) for row in history(folder, one)]
        found = [float(row[name]) for row in history(folder, several)]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    found, expected = (
        json.loads((folder / name / "metrics.json").read_text())["test_accuracy"]
        for name in (several, one)
    )
    assert found == pytest.approx(expected, abs=1e-6)
    assert 54 * found == pytest.approx(round(54 * found), abs=1e-3)


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX can")
def test_other_backends_refuse():
    for devices in (2, "all"):
        with pytest.raises(ValueError, match="JAX"), use_devices(devices):
            pass


@on_jax
def test_mistakes():
    for arguments, reason in (
        ((99, 1), "99"),
        ((-1, 1), "-1"),
        ((1, 2), "model_parallel=2"),
    ):
        with pytest.raises(ValueError, match=reason), use_devices(*arguments):
            pass


@on_jax
@pytest.mark.slow
def test_batch_that_devices_cannot_split(runs):
    assert any("does not split evenly" in line for line in runs[1])
