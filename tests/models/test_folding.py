import keras
import numpy as np
import pytest
from check_layer import redraw_weights, to_numpy

from keras_gmlp import aMLP, gMLP
from keras_gmlp.models import to_dense

TINY = {"dim": 8, "depth": 2, "input_shape": (8, 12, 3), "patch_size": 4, "classes": 3}
IMAGES = np.random.default_rng(0).uniform(0, 255, (2, 8, 12, 3)).astype("float32")


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("gating", ["split", "additive"])
def test_dense_copy_computes_the_same_from_stored_matrices(heads, gating):
    model = gMLP(hidden_dim=12, toeplitz=True, heads=heads, gating=gating, **TINY)
    redraw_weights(model)
    dense = to_dense(model)
    np.testing.assert_allclose(to_numpy(dense(IMAGES)), to_numpy(model(IMAGES)), rtol=1e-5)
    shape = (6, 6) if heads == 1 else (heads, 6, 6)
    assert tuple(dense.get_layer("block_1").gate.spatial.kernel.shape) == shape
    assert not any("offsets" in weight.path for weight in dense.weights)


def test_dense_copy_of_amlp_keeps_attention_and_precision():
    model = aMLP(
        hidden_dim=12, attention_size=3, toeplitz=True, heads=3, dtype="mixed_bfloat16", **TINY
    )
    redraw_weights(model)
    dense = to_dense(model)
    assert dense.get_layer("block_0").dtype_policy.name == "mixed_bfloat16"
    np.testing.assert_allclose(to_numpy(dense(IMAGES)), to_numpy(model(IMAGES)), rtol=1e-5)


def test_model_without_shift_invariant_gates_is_returned():
    model = gMLP(hidden_dim=12, heads=2, **TINY)
    assert to_dense(model) is model
    assert to_dense(other := keras.Sequential([keras.Input((3,))])) is other
