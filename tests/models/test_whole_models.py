"""Tests of whole models: logits against NumPy, a training step, saving and loading."""

from functools import partial

import numpy as np
import pytest
from check_layer import to_numpy
from numpy_reference import (
    classifier,
    external_attention_block,
    feed_forward_only_block,
    gmlp_block,
    mixer_block,
    resmlp_block,
    transformer_block,
)
from random_models import MODELS, random_model

import keras_gmlp

BLOCKS = {  # ResNet and ConvNet are tested in files of their own
    "gmlp": partial(gmlp_block, gating="split"),
    "amlp": partial(gmlp_block, gating="split", attention_size=64),
    "vit": transformer_block,
    "deit": transformer_block,
    "mixer": mixer_block,
    "resmlp": resmlp_block,
    "eamlp": partial(external_attention_block, num_heads=4),
    "ff_only": feed_forward_only_block,
}
IMAGES = np.random.default_rng(1).integers(0, 256, (4, 16, 16, 3)).astype("float32")


def check_logits(model, block):
    weights = {w.path: to_numpy(w).astype("float64") for w in model.weights}
    expected = classifier(IMAGES.astype("float64"), weights, block, patch_size=4)
    assert np.ptp(expected, axis=0).min() > 1e-3  # they depend on the image
    np.testing.assert_allclose(to_numpy(model(IMAGES)), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", BLOCKS)
def test_logits(family):
    check_logits(random_model(family), BLOCKS[family])


def test_logits_of_eamlp_with_a_class_token():
    check_logits(random_model("eamlp", class_token=True), BLOCKS["eamlp"])


def test_every_family_is_here():
    assert {*BLOCKS, "resnet", "convnet"} == set(MODELS)


@pytest.mark.parametrize("family", MODELS)
def test_a_compiled_step_changes_every_layer_and_is_saved(family, tmp_path):
    model = random_model(family)
    before = {w.path: to_numpy(w) for w in model.trainable_weights}
    loss = model.fit(IMAGES, np.arange(4), batch_size=4, verbose=0).history["loss"][0]
    assert np.isfinite(loss)
    after = {w.path: to_numpy(w) for w in model.trainable_weights}
    assert [path for path in before if np.array_equal(before[path], after[path])] == []
    model.save(tmp_path / "model.keras")
    loaded = keras_gmlp.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(to_numpy(loaded(IMAGES)), to_numpy(model(IMAGES)), atol=1e-6)
