"""Models in another precision."""

import keras
import numpy as np
import pytest
from check_layer import to_numpy
from random_models import random_model

from keras_gmlp.models.precision import in_float32


@pytest.mark.parametrize(
    ("family", "precision"),
    [
        *((family, "mixed_bfloat16") for family in ("deit", "eamlp", "resnet", "convnet")),
        ("gmlp", "mixed_float16"),
    ],
)
def test_float32_copy_is_the_model_built_in_float32(family, precision):
    sizes = {"depth": 8 if family == "resnet" else 1}
    mixed = random_model(family, dtype=precision, **sizes)
    for layer in mixed.layers[:3]:  # as --freeze leaves them
        layer.trainable = False
    plain = in_float32(mixed)
    reference = random_model(family, **sizes)
    reference.set_weights(mixed.get_weights())
    images = np.random.default_rng(1).integers(0, 256, (4, 16, 16, 3)).astype("float32")
    expected = to_numpy(reference(images))
    np.testing.assert_array_equal(to_numpy(plain(images)), expected)
    assert np.abs(to_numpy(mixed(images)) - expected).max() > 1e-4  # the model was not in float32
    assert all(layer.trainable for layer in plain.layers)
    assert len(plain.trainable_weights) == len(reference.trainable_weights)


def test_inner_and_pinned_layers_in_a_model_compiled_for_evaluation():
    image = keras.Input((16, 16, 3))
    inner = random_model("gmlp", dtype="mixed_bfloat16")
    plain = in_float32(keras.Model(image, keras.layers.Flatten(dtype="float32")(inner(image))))
    assert {layer.dtype_policy.name for layer in plain._flatten_layers()} == {"float32"}
    assert plain.evaluate(np.zeros((2, 16, 16, 3)), np.zeros(2), verbose=0)[0] > 0
