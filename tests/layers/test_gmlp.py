import numpy as np
import pytest
from check_layer import draw, redraw_weights, to_numpy
from numpy_reference import spatial_gating

from keras_gmlp.layers import SpatialGatingUnit

GATINGS = ("linear", "additive", "multiplicative", "split")
every_gating = pytest.mark.parametrize("gating", GATINGS)


@every_gating
def test_spatial_gating_unit_numbers(gating):
    layer = SpatialGatingUnit(gating)
    layer.build((8, 5, 6))
    weights = redraw_weights(layer)
    # At unit scale an epsilon of 1e-5 and one of 1e-6 agree to five digits; at 0.003 they do not.
    for scale in (1.0, 0.003):
        inputs = draw(8, 5, 6, scale=scale)
        attention = draw(8, 5, 3 if gating == "split" else 6)
        for summand in (None, attention):
            expected = spatial_gating(inputs, weights, gating, 0.0 if summand is None else summand)
            tolerance = 1e-5 * min(1.0, np.abs(expected).max())
            for training in (False, True):  # the projection has two forms
                outputs = to_numpy(layer(inputs, attention=summand, training=training))
                np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=tolerance)


@pytest.mark.once
@every_gating
def test_gate_starts_as_the_identity(gating):
    layer = SpatialGatingUnit(gating)
    inputs = draw(2, 64, 8)
    outputs = to_numpy(layer(inputs))
    start = {"linear": np.zeros_like(inputs), "split": inputs[..., :4]}.get(gating, inputs)
    np.testing.assert_allclose(outputs, start, rtol=0, atol=1e-3)
    kernel = to_numpy(layer.spatial.kernel)
    assert kernel.std() == pytest.approx(1e-6, rel=0.1)
    gates = gating in ("multiplicative", "split")
    np.testing.assert_array_equal(to_numpy(layer.spatial.bias), np.full(64, float(gates)))
