"""Models saved on PyTorch open, compute the same and learn where only JAX is installed."""

import numpy as np
import pytest
from check_layer import to_numpy
from other_backend import run_under
from random_models import random_model

FAMILIES = ("deit", "convnet")

ON_JAX_ALONE = """
import sys
from pathlib import Path
import keras, keras_gmlp, numpy as np

def load(path, optimizer):
    model = keras_gmlp.load_model(path)
    assert isinstance(model.optimizer, optimizer), path
    assert model.jit_compile is True, path
    return model

load("gmlp_n4_32-cifar10", keras.optimizers.SGD)
folder = Path(sys.argv[1])
images = np.load(folder / "images.npy")
for path in folder.glob("*.keras"):
    model = load(path, keras.optimizers.AdamW)
    np.save(folder / f"{path.stem}.npy", keras.ops.convert_to_numpy(model(images, training=False)))
model.fit(images, np.zeros(len(images), "int32"), verbose=0)
"""


@pytest.mark.slow
def test_models_load_where_only_another_backend_is_installed(tmp_path):
    images = np.random.default_rng(1).integers(0, 256, (4, 16, 16, 3)).astype("float32")
    np.save(tmp_path / "images.npy", images)
    expected = {}
    for family in FAMILIES:
        model = random_model(family, depth=1)
        model.save(tmp_path / f"{family}.keras")
        expected[family] = to_numpy(model(images))
    run_under("jax", ON_JAX_ALONE, tmp_path, hidden=("tensorflow", "torch"))
    for family, logits in expected.items():
        assert np.ptp(logits) > 0.1
        np.testing.assert_allclose(np.load(tmp_path / f"{family}.npy"), logits, atol=1e-4)
