import keras
import numpy as np
import pytest
from check_layer import to_numpy

from keras_gmlp.layers.block import Dense


@pytest.mark.parametrize("use_bias", [True, False])
def test_it_trains_like_keras_dense(use_bias):
    inputs = np.random.default_rng(0).normal(size=(6, 4, 3)).astype("float32")
    targets = np.random.default_rng(1).normal(size=(6, 4, 5)).astype("float32")
    trained = []
    for layer_class in (Dense, keras.layers.Dense):
        layer = layer_class(5, activation="gelu", use_bias=use_bias)
        model = keras.Sequential([keras.Input((4, 3)), layer])
        values = [np.random.default_rng(2).normal(size=w.shape) for w in layer.weights]
        layer.set_weights(values)
        model.compile(keras.optimizers.SGD(0.5), "mse")
        model.fit(inputs, targets, batch_size=3, epochs=2, shuffle=False, verbose=0)
        assert not np.allclose(to_numpy(layer.weights[0]), values[0])
        trained.append(layer.get_weights())
    for ours, theirs in zip(*trained, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


def test_lora_takes_part_in_training():
    layer = Dense(5)
    layer.build((None, 3))
    layer.enable_lora(2)
    layer.set_weights([np.ones(w.shape) for w in layer.weights])
    inputs = np.ones((1, 3), "float32")
    # 3 inputs times a kernel of 1 + 1 * 1 * 2 (the product of two matrices of rank 2), plus a bias.
    np.testing.assert_allclose(to_numpy(layer(inputs, training=True)), np.full((1, 5), 10.0))


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_precision(policy):
    outputs = Dense(5, dtype=policy)(np.ones((2, 3), "float32"), training=True)
    assert keras.backend.standardize_dtype(outputs.dtype) == policy.removeprefix("mixed_")
