"""Tests of whole models: logits against NumPy, a training step, saving and loading."""

from functools import partial

import numpy as np
import pytest
from check_layer import to_numpy
from numpy_reference import block, classifier
from random_models import random_model

import keras_gmlp

BLOCKS = {  # ResNet and ConvNet are tested in files of their own
    "gmlp": "gmlp split",
    "vit": "transformer",
    "deit": "transformer",
    "eamlp": "external",
    **{name: name for name in ("amlp", "mixer", "resmlp", "ff_only")},
}
IMAGES = np.random.default_rng(1).integers(0, 256, (4, 16, 16, 3)).astype("float32")


@pytest.mark.parametrize(
    ("family", "arguments"),
    [*((family, {}) for family in BLOCKS), ("eamlp", {"class_token": True})],
)
def test_logits(family, arguments):
    model = random_model(family, **arguments)
    weights = {w.path: to_numpy(w).astype("float64") for w in model.weights}
    images = IMAGES.astype("float64")
    expected = classifier(images, weights, partial(block, name=BLOCKS[family]), patch_size=4)
    assert np.ptp(expected, axis=0).min() > 1e-3  # they depend on the image
    np.testing.assert_allclose(to_numpy(model(IMAGES)), expected, rtol=1e-5, atol=1e-5)


# A step of each layer is tested with the layer; these have other parts too.
STEPS = [("deit", {"depth": 1}), ("convnet", {}), ("resnet", {"depth": 8})]


@pytest.mark.parametrize(("family", "arguments"), STEPS)
def test_a_step_changes_every_layer_and_is_saved(family, arguments, tmp_path):
    model = random_model(family, **arguments)
    before = {w.path: to_numpy(w) for w in model.trainable_weights}
    loss = model.fit(IMAGES, np.arange(4), batch_size=4, verbose=0).history["loss"][0]
    assert np.isfinite(loss)
    after = {w.path: to_numpy(w) for w in model.trainable_weights}
    assert [path for path in before if np.array_equal(before[path], after[path])] == []
    model.save(tmp_path / "model.keras")
    loaded = keras_gmlp.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(to_numpy(loaded(IMAGES)), to_numpy(model(IMAGES)), atol=1e-6)
