"""Where only JAX is installed, models saved on PyTorch open and data are read and trained on."""

import numpy as np
import pytest
from check_layer import to_numpy
from other_backend import run_under
from pictures import write_noise
from random_models import random_model

from keras_gmlp import data

FAMILIES = ("deit", "convnet")

ON_JAX_ALONE = """
import sys
from pathlib import Path
import keras, keras_gmlp, numpy as np
from keras_gmlp import data

def load(path, optimizer):
    model = keras_gmlp.load_model(path)
    assert isinstance(model.optimizer, optimizer), path
    assert model.jit_compile is True, path
    return model

load("gmlp_n4_32-cifar10", keras.optimizers.SGD)
folder, photos = map(Path, sys.argv[1:])
images = np.load(folder / "images.npy")
for path in folder.glob("*.keras"):
    model = load(path, keras.optimizers.AdamW)
    np.save(folder / f"{path.stem}.npy", model.predict(images, verbose=0))
model.fit(images, np.zeros(len(images), "int32"), verbose=0)

for name in ("digits", str(photos)):
    found = data.load(name, (16, 16))
    images, labels = found.train.arrays()
    print(found.name, len(found.train), len(found.test), images.sum(), labels.sum())
sizes = {"dim": 8, "depth": 1, "hidden_dim": 8, "patch_size": 8, "classes": len(found.labels)}
model = keras_gmlp.gMLP(**sizes, input_shape=found.image_shape)
recipe = keras_gmlp.Recipe(epochs=1, batch_size=20, precision="float32", pipeline="device")
print(keras_gmlp.train(model, found, recipe, folder / "run", verbose=0)["test_loss"])
try:
    data.training_batches(found, 2)
except ImportError as error:
    print(error)
assert not [name for name in sys.modules if name.startswith(("tensorflow", "torch"))]
"""


@pytest.mark.slow
def test_models_load_and_data_train_where_only_another_backend_is_installed(tmp_path):
    images = np.random.default_rng(1).integers(0, 256, (4, 16, 16, 3)).astype("float32")
    np.save(tmp_path / "images.npy", images)
    expected = {}
    for family in FAMILIES:
        model = random_model(family, depth=1)
        model.save(tmp_path / f"{family}.keras")
        expected[family] = to_numpy(model(images))
    photos = write_noise(tmp_path / "photos", "png", 20, 30)
    printed = run_under("jax", ON_JAX_ALONE, tmp_path, photos, hidden=("tensorflow", "torch"))
    for family, logits in expected.items():
        assert np.ptp(logits) > 0.1
        np.testing.assert_allclose(np.load(tmp_path / f"{family}.npy"), logits, atol=1e-4)
    *rows, loss, streaming = printed.splitlines()
    for row, name in zip(rows, ("digits", str(photos)), strict=True):
        found = data.load(name, (16, 16))
        images, labels = found.train.arrays()
        expected = [name, len(found.train), len(found.test), images.sum(), labels.sum()]
        assert row.split() == list(map(str, expected))
    assert 0 < float(loss) < 10
    assert streaming.startswith("training_batches requires tensorflow")


ON_OPENVINO = """
import sys
import keras_gmlp, numpy as np
for path in sys.argv[2:]:
    model = keras_gmlp.load_model(path, compile=False)
    np.save(path.replace(".keras", ".npy"), model.predict(np.load(sys.argv[1]), verbose=0))
"""


@pytest.mark.slow
def test_openvino_predicts(tmp_path):
    images = np.random.default_rng(1).integers(0, 256, (4, 16, 16, 3)).astype("float32")
    np.save(tmp_path / "images.npy", images)
    models = {tmp_path / f"{name}.keras": random_model(name, depth=1) for name in ("amlp", "vit")}
    for path, model in models.items():
        model.save(path)
    run_under("openvino", ON_OPENVINO, tmp_path / "images.npy", *models)
    for path, model in models.items():
        logits = to_numpy(model(images))
        found = np.load(path.with_suffix(".npy"))
        # It computes in bfloat16 where the processor can.
        np.testing.assert_allclose(found, logits, atol=0.02 * np.ptp(logits))
