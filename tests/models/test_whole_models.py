"""Tests of whole models: logits against NumPy, a training step, saving and loading."""

from functools import partial

import keras
import numpy as np
import pytest
from check_layer import to_numpy
from numpy_reference import block, classifier
from random_models import random_model

import keras_gmlp
from keras_gmlp.analysis.explanation import class_maps
from keras_gmlp.models import in_float32

BLOCKS = {  # ResNet and ConvNet are tested in files of their own
    "gmlp": "gmlp split",
    "vit": "transformer",
    "deit": "transformer",
    "eamlp": "external",
    **{name: name for name in ("amlp", "mixer", "resmlp", "ff_only")},
}
FAMILIES = [*BLOCKS, "convnet", "resnet", "amlp_nano", "bert_nano"]
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


def test_lora_trains_its_matrices_alone_and_is_saved_in_the_kernels(tmp_path):
    model = random_model("gmlp", depth=1)
    for weight in model.trainable_weights:
        weight.trainable = False
    for name in ("expand", "shrink"):
        getattr(model.get_layer("block_0"), name).enable_lora(rank=2)
    before = {w.path: to_numpy(w) for w in model.weights}
    model.fit(IMAGES, np.arange(4), batch_size=2, verbose=0)  # the first step changes one of each
    changed = {w.path for w in model.weights if not np.array_equal(before[w.path], to_numpy(w))}
    layers = "block_0/expand", "block_0/shrink"
    assert changed == {f"{layer}/lora_kernel_{matrix}" for layer in layers for matrix in "ab"}
    model.save(tmp_path / "model.keras")
    loaded = keras_gmlp.load_model(tmp_path / "model.keras", compile=False)
    assert len(loaded.weights) == len(before) - 4
    for copy in (loaded, in_float32(model)):  # `train` ends with the latter
        np.testing.assert_allclose(to_numpy(copy(IMAGES)), to_numpy(model(IMAGES)), atol=1e-5)


@pytest.mark.filterwarnings("ignore:Layer")  # Keras says which layers have no quantized form
@pytest.mark.filterwarnings("ignore:The use of `x.T`")  # by Keras on PyTorch
@pytest.mark.parametrize(
    ("family", "mode", "tolerance"),
    [
        *(pytest.param(name, "int8", 0.04, marks=pytest.mark.once) for name in FAMILIES),
        *((name, "int4", 0.25) for name in ("amlp", "vit", "bert_nano")),
    ],
)
def test_quantized_by_keras(family, mode, tolerance, tmp_path):
    if family.endswith("nano"):
        model = keras_gmlp.build(family, vocabulary_size=50, max_length=8, depth=1)
        batch = {each.name: np.arange(16).reshape(2, 8) % 8 for each in model.inputs}
    else:
        sizes = {"convnet": {}, "resnet": {"depth": 8}}.get(family, {"depth": 1})
        model, batch = random_model(family, **sizes), IMAGES
    before = to_numpy(model(batch))
    model.quantize(mode)
    kinds = keras.layers.Dense | keras.layers.EinsumDense | keras.layers.Embedding
    layers = [layer for layer in model._flatten_layers() if isinstance(layer, kinds)]
    assert {layer.quantization_mode for layer in layers} == {mode}
    after = to_numpy(model(batch))
    assert np.abs(after - before).mean() < tolerance * np.abs(before).mean()
    for _ in range(2):  # a loaded model is saved like a new one
        model.save(tmp_path / "model.keras")
        model = keras_gmlp.load_model(tmp_path / "model.keras", compile=False)
    np.testing.assert_allclose(to_numpy(model(batch)), after, atol=1e-6)


@pytest.mark.once
@pytest.mark.filterwarnings("ignore:Layer")
def test_what_requires_floats_refuses_a_quantized_model(tmp_path):
    model, other = random_model("gmlp", depth=1), random_model("gmlp", depth=1)
    model.quantize("int8")
    data = np.repeat(IMAGES, 10, axis=0).astype("uint8"), np.arange(40) % 5
    for refuse in (
        lambda: in_float32(model),
        lambda: keras_gmlp.weights.transfer(model, other),
        lambda: keras_gmlp.export.export(model, tmp_path),
        lambda: class_maps(model, IMAGES[0], [0]),
        lambda: keras_gmlp.fold(model),
        lambda: keras_gmlp.train(model, data, "quick", tmp_path),
    ):
        with pytest.raises(ValueError, match="quantized"):
            refuse()
