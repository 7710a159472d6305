"""What holds between backends: others in a process of their own, since Keras fixes it at import."""

import numpy as np
import pytest
from other_backend import run_here_or_under, run_under

BACKENDS = ("tensorflow", "jax", "torch")

SAVE = """
import sys, keras, numpy as np, keras_gmlp
directory = sys.argv[1]
images = np.load(f"{directory}/images.npy")
rng = np.random.default_rng(0)
shell = dict(dim=16, depth=1, input_shape=(8, 8, 3), patch_size=4, classes=3)
models = {  # gMLP, ViT and Mixer consist of their layers
    "amlp": keras_gmlp.aMLP(hidden_dim=32, **shell),
    "deit": keras_gmlp.ViT(num_heads=2, distillation_token=True, **shell),
    "resmlp": keras_gmlp.ResMLP(**shell),
    "eamlp": keras_gmlp.EAMLP(num_heads=4, class_token=False, **shell),
    "ff_only": keras_gmlp.FeedForwardOnly(token_hidden_dim=20, **shell),
    "resnet": keras_gmlp.ResNet(8, 4, input_shape=(8, 8, 3), classes=3),
    "convnet": keras_gmlp.ConvNet((4, 6), input_shape=(8, 8, 3), classes=3),
}
for name, model in models.items():
    for weight in model.weights:
        noise = rng.normal(0, 0.3, weight.shape)
        noise = abs(noise) if weight.name == "moving_variance" else noise
        weight.assign(keras.ops.convert_to_numpy(weight) + noise)
    path = f"{directory}/{name}-{keras.backend.backend()}"
    model.save(f"{path}.keras")
    np.save(f"{path}.npy", keras.ops.convert_to_numpy(model(images, training=False)))
"""

WITHOUT_OTHERS = """
import os, sys
from importlib.machinery import PathFinder
class Present(PathFinder):
    @classmethod
    def find_spec(cls, name, *arguments):
        if name.split(".")[0] not in {"tensorflow", "jax", "torch"} - {os.environ["KERAS_BACKEND"]}:
            return PathFinder.find_spec(name, *arguments)
sys.meta_path = [Present if finder is PathFinder else finder for finder in sys.meta_path]
"""

FIT = 'models["amlp"].fit(images, np.zeros(10, "int32"), verbose=0)'

LOAD = """
import keras, keras_gmlp, numpy as np
from pathlib import Path
from keras_gmlp.utils.shipped import FOLDER
directory, backend = Path(sys.argv[1]), keras.backend.backend()
images = np.load(directory / "images.npy")

def load(path, optimizer):
    model = keras_gmlp.load_model(path)
    assert isinstance(model.optimizer, optimizer), path
    if backend != "tensorflow":  # there it depends on the device
        assert model.jit_compile is (backend == "jax"), path
    return model

others = set(directory.glob("*.keras")) - set(directory.glob(f"*-{backend}.keras"))
for path in sorted(others):
    model = load(path, keras.optimizers.AdamW)
    found = keras.ops.convert_to_numpy(model(images, training=False))
    print(path.stem, np.abs(found - np.load(path.with_suffix(".npy"))).max())
keras.saving.load_model(path)
for path in FOLDER.glob("*/model.keras"):
    load(path, keras.optimizers.SGD)
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Models saved under each backend, with their logits; JAX saves and trains alone."""
    directory = tmp_path_factory.mktemp("saved")
    images = np.random.default_rng(1).integers(0, 256, (10, 8, 8, 3), "uint8")
    np.save(directory / "images.npy", images)
    for backend in BACKENDS:
        if backend == "jax":
            run_under(backend, WITHOUT_OTHERS + SAVE + FIT, directory)
        else:
            run_here_or_under(backend, SAVE, directory)
    return directory


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_models_load_where_only_another_backend_is_installed(saved, backend):
    rows = [line.split() for line in run_under(backend, WITHOUT_OTHERS + LOAD, saved).splitlines()]
    assert len(rows) == 7 * (len(BACKENDS) - 1)
    assert {name: float(d) for name, d in rows if float(d) > 1e-3} == {}
    spread = [np.ptp(np.load(path)) for path in saved.glob("*-*.npy")]
    assert min(spread) > 0.1  # the logits say something
