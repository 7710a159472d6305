import keras
import numpy as np
import pytest
from check_layer import to_numpy

import keras_gmlp
from keras_gmlp.objectives.optimizers import (
    LayerwiseAdamW,
    freeze_backbone,
    learning_rates,
    make_optimizer,
)
from keras_gmlp.training.recipes import RECIPES, Recipe

pytestmark = pytest.mark.eager

SMALL = {"dim": 8, "depth": 2, "input_shape": (8, 8, 3), "patch_size": 4, "classes": 3}


def fitted(optimizer, prepare=lambda model: None):
    """How far one step of fit moves each weight, by its path."""
    keras.utils.set_random_seed(0)
    model = keras_gmlp.gMLP(hidden_dim=12, **SMALL)
    model.get_layer("head").kernel.assign(np.ones((8, 3)) * [1, -1, 0])  # so that all get gradients
    prepare(model)
    before = {w.path: to_numpy(w) for w in model.weights}
    model.compile(optimizer, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    images = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3)).astype("float32")
    model.fit(images, np.array([0, 1, 2, 0]), epochs=1, verbose=0, batch_size=4)
    return {w.path: np.abs(to_numpy(w) - before[w.path]).max() for w in model.weights}


@pytest.mark.once
def test_rates_fall_from_the_head_to_the_stem():
    paths = ["stem/projection/kernel", "class_token/token", "block_0/expand/kernel"]
    paths += ["block_1/norm/gamma", "norm/gamma", "head/bias"]
    assert learning_rates(paths, 0.5) == [0.125, 0.125, 0.25, 0.5, 1, 1]


def test_first_step_is_as_long_as_the_rate():
    # Adam's first step is the learning rate itself, wherever there is a gradient to speak of.
    moved = fitted(LayerwiseAdamW(0.1, weight_decay=0, epsilon=1e-12, layer_decay=0.5))
    expected = {"stem/projection/kernel": 0.0125, "block_0/shrink/kernel": 0.025}
    expected |= {"block_1/shrink/kernel": 0.05, "norm/beta": 0.1, "head/bias": 0.1}
    assert {path: moved[path] for path in expected} == pytest.approx(expected, rel=1e-2)


def test_decay_falls_with_the_rate():
    # Frozen gradients: what is left of a step is the decay, rate x decay x weight.
    optimizer = LayerwiseAdamW(0.1, weight_decay=0.5, layer_decay=0.5)
    paths = ("stem/projection/kernel", "block_0/shrink/kernel", "norm/gamma", "head/kernel")
    layers = [keras.Variable(np.full(2, 8.0), name="weight") for _ in paths]
    for layer, path in zip(layers, paths, strict=True):
        layer._path = path
    optimizer.build(layers)
    optimizer.apply([keras.ops.zeros(2) for _ in layers], layers)
    expected = [8 * (1 - 0.05 * rate) for rate in (0.25, 0.5, 1, 1)]
    np.testing.assert_allclose([to_numpy(layer)[0] for layer in layers], expected, rtol=1e-6)
    assert optimizer.weight_decay == 0.5


@pytest.mark.once
def test_recipe_makes_it():
    recipe = Recipe(layer_decay=0.7, epochs=1)
    optimizer = make_optimizer(recipe, 10)
    assert isinstance(optimizer, LayerwiseAdamW)
    assert LayerwiseAdamW.from_config(optimizer.get_config()).layer_decay == 0.7
    assert not isinstance(make_optimizer(RECIPES["finetune"], 10), LayerwiseAdamW)


def test_frozen_backbone_stays():
    moved = fitted("adam", freeze_backbone)
    assert {path for path, length in moved.items() if length} == {"head/kernel", "head/bias"}
