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

WITHOUT_TENSORFLOW = """
import sys
class Absent:
    def find_spec(self, name, *_):
        if name.split(".")[0] == "tensorflow":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
"""

FIT = 'models["amlp"].fit(images, np.zeros(10, "int32"), verbose=0)'

LOAD = """
import sys, keras, numpy as np
from pathlib import Path
from keras_gmlp import inference
directory = Path(sys.argv[1])
images = np.load(directory / "images.npy")

others = set(directory.glob("*.keras")) - set(directory.glob(f"*-{keras.backend.backend()}.keras"))
for path in sorted(others):
    classifier = inference.load(path)
    found = classifier.logits(images)
    print(path.stem, np.abs(found - np.load(path.with_suffix(".npy"))).max())
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Models saved under each backend, with their logits; JAX saves and trains alone."""
    directory = tmp_path_factory.mktemp("saved")
    images = np.random.default_rng(1).integers(0, 256, (10, 8, 8, 3), "uint8")
    np.save(directory / "images.npy", images)
    for backend in BACKENDS:
        if backend == "jax":
            run_under(backend, WITHOUT_TENSORFLOW + SAVE + FIT, directory)
        else:
            run_here_or_under(backend, SAVE, directory)
    return directory


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_models_of_other_backends_load(saved, backend):
    rows = [line.split() for line in run_here_or_under(backend, LOAD, saved).splitlines()]
    assert len(rows) == 7 * (len(BACKENDS) - 1)
    assert {name: float(d) for name, d in rows if float(d) > 1e-3} == {}
    spread = [np.ptp(np.load(path)) for path in saved.glob("*-*.npy")]
    assert min(spread) > 0.1  # the logits say something
