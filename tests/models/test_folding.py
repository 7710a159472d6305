import keras
import numpy as np
import pytest
from check_layer import redraw_weights, to_numpy
from small_text import LANGUAGE_MODELS

from keras_gmlp import gMLP
from keras_gmlp.models.folding import to_dense

TINY = {"dim": 8, "depth": 2, "input_shape": (8, 12, 3), "patch_size": 4, "classes": 3}
IMAGES = np.random.default_rng(0).uniform(0, 255, (2, 8, 12, 3)).astype("float32")


@pytest.mark.parametrize(("heads", "gating"), [(1, "split"), (2, "additive")])
def test_dense_copy_computes_the_same_from_stored_matrices(heads, gating):
    model = gMLP(hidden_dim=12, toeplitz=True, heads=heads, gating=gating, **TINY)
    redraw_weights(model)
    dense = to_dense(model)
    np.testing.assert_allclose(to_numpy(dense(IMAGES)), to_numpy(model(IMAGES)), rtol=1e-5)
    shape = (6, 6) if heads == 1 else (heads, 6, 6)
    assert tuple(dense.get_layer("block_1").gate.spatial.kernel.shape) == shape
    assert not any("offsets" in weight.path for weight in dense.weights)


def test_model_without_shift_invariant_gates_is_returned():
    model = gMLP(hidden_dim=12, heads=2, **TINY)
    assert to_dense(model) is model
    assert to_dense(other := keras.Sequential([keras.Input((3,))])) is other


@pytest.mark.parametrize("length", [9, None])
@pytest.mark.parametrize("name", [*LANGUAGE_MODELS, "heads"])
def test_dense_copy_of_a_language_model(name, length):
    model = LANGUAGE_MODELS["gmlp"](heads=2) if name == "heads" else LANGUAGE_MODELS[name]()
    redraw_weights(model)
    dense = to_dense(model, length)
    ids = np.array([[2, 7, 4, 9, 3, 0, 0, 0, 0]], "int32")
    ids = np.pad(ids, [(0, 0), (0, (length or 9) - 9)])
    inputs = {"token_ids": ids, "mask_positions": np.array([[2, 4]], "int32")}
    expected = to_numpy(model(inputs))
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(to_numpy(dense(inputs)), expected, rtol=1e-4, atol=1e-5)
    assert not any("offsets" in weight.path for weight in dense.weights)
    if length and name in ("gmlp", "free", "amlp"):
        kernel = dense.get_layer("block_1").gate.spatial
        assert isinstance(kernel, keras.layers.Dense)
        assert tuple(kernel.kernel.shape) == (length, length)
