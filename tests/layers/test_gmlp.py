import keras
import numpy as np
import pytest
from check_layer import draw, redraw_weights, to_numpy
from numpy_reference import spatial_gating

from keras_gmlp.layers import GMLPBlock, SpatialGatingUnit

GATINGS = ("linear", "additive", "multiplicative", "split")
every_gating = pytest.mark.parametrize("gating", GATINGS)
# At unit scale an epsilon of 1e-5 and one of 1e-6 agree to five digits; at 0.003 they do not.
every_scale = pytest.mark.parametrize("scale", [1.0, 0.003])


def gated_shape(gating):
    return (8, 5, 3) if gating == "split" else (8, 5, 6)


@every_gating
@every_scale
@pytest.mark.parametrize("with_attention", [False, True])
def test_spatial_gating_unit_numbers(gating, scale, with_attention):
    layer = SpatialGatingUnit(gating)
    inputs = draw(8, 5, 6, scale=scale)
    attention = draw(*gated_shape(gating)) if with_attention else None
    layer.build(inputs.shape)
    weights = redraw_weights(layer)
    expected = spatial_gating(inputs, weights, gating, attention if with_attention else 0.0)
    tolerance = 1e-5 * min(1.0, np.abs(expected).max())
    for training in (False, True):  # the projection has two forms
        outputs = to_numpy(layer(inputs, attention=attention, training=training))
        np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=tolerance)


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


def test_spatial_weights_learn_from_their_start_near_zero():
    inputs = keras.Input((5, 6))
    layer = GMLPBlock(14)
    model = keras.Model(inputs, layer(inputs))
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    model.fit(draw(8, 5, 6), draw(8, 5, 6), verbose=0)
    assert np.abs(to_numpy(layer.gate.spatial.kernel)).max() > 1e-4


def test_stochastic_depth_draws_new_values_in_each_step_of_a_compiled_fit():
    inputs = keras.Input((5, 6))
    model = keras.Model(inputs, GMLPBlock(14, stochastic_depth=0.5)(inputs))
    model.compile(optimizer=keras.optimizers.SGD(0.0), loss="mse")
    redraw_weights(model)
    samples = draw(32, 5, 6)
    losses = model.fit(samples, samples, batch_size=32, epochs=4, verbose=0).history["loss"]
    assert len(set(losses)) == 4
