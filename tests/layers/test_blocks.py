"""What all blocks share: contract, numbers, padding, drops, norm placement, configurations."""

from functools import partial

import keras
import numpy as np
import pytest
from check_layer import (
    check_dropout,
    check_layer,
    check_padding,
    check_stochastic_depth,
    redraw_weights,
    silence,
    to_numpy,
)
from numpy_reference import block, branches

from keras_gmlp.layers import (
    ClassToken,
    ExternalAttentionBlock,
    FeedForwardOnlyBlock,
    GMLPBlock,
    MixerBlock,
    PatchEmbedding,
    ResMLPBlock,
    TransformerBlock,
)

GATINGS = ("linear", "additive", "multiplicative", "split")
BLOCKS = {
    **{f"gmlp {g}": (GMLPBlock, {"hidden_dim": 14, "gating": g}) for g in (*GATINGS, "none")},
    "amlp": (GMLPBlock, {"hidden_dim": 14, "attention_size": 3}),
    "mixer": (MixerBlock, {"token_hidden_dim": 7, "hidden_dim": 14}),
    "ff_only": (FeedForwardOnlyBlock, {"token_hidden_dim": 7, "hidden_dim": 14}),
    "resmlp": (ResMLPBlock, {"hidden_dim": 14, "layer_scale": 0.2}),
    "transformer": (TransformerBlock, {"num_heads": 2, "hidden_dim": 14}),
    "external": (ExternalAttentionBlock, {"hidden_dim": 14, "num_heads": 4, "slots": 3}),
}
every_block = pytest.mark.parametrize("name", BLOCKS)


# The parts that silence a branch, in the order of the branches.
PARTS = {
    "gmlp split": ["shrink"],
    "mixer": ["token_mlp", "shrink"],
    "ff_only": ["token_mlp", "shrink"],
    "resmlp": ["scale1", "scale2"],
    "transformer": ["attention", "shrink"],
    "external": ["attention", "shrink"],
}
# Softmax removes what a key adds to all scores of a row; a query of external attention likewise.
WITHOUT_GRADIENT = {"transformer": ["attention/key/bias"], "external": ["attention/query/bias"]}
every_family = pytest.mark.parametrize("name", PARTS)
# Gates differ in one line, which the numbers of each show.
every_structure = pytest.mark.parametrize("name", [*PARTS, "gmlp none", "amlp"])


def tokens(*shape, scale=1.0):
    return (scale * np.random.default_rng(0).normal(size=shape)).astype("float32")


def make(name, **arguments):
    block_class, sizes = BLOCKS[name]
    return block_class(**sizes, **arguments)


def built(name, inputs, **arguments):
    layer = make(name, **arguments)
    layer.build(inputs.shape)
    return layer, redraw_weights(layer)


@every_structure
def test_contract(name):
    block_class, sizes = BLOCKS[name]
    placement = "post" if name in ("transformer", "ff_only") else "pre"
    settings = {"norm_placement": placement, "stochastic_depth": 0.2, "dropout": 0.1}
    # JAX's attention has no float16 on a CPU: "F16_F16_F32 is not supported by dot_general".
    no_float16 = name == "transformer" and keras.backend.backend() == "jax"
    check_layer(
        block_class,
        {**sizes, **settings},
        (8, 5, 6),
        without_gradient=WITHOUT_GRADIENT.get(name, []),
        policy="mixed_bfloat16" if no_float16 else "mixed_float16",
    )


@pytest.mark.once
@every_family
def test_stochastic_depth_drops_each_branch_by_itself_and_rescales(name):
    inputs = tokens(1000, 5, 6)
    layer, weights = built(name, inputs, stochastic_depth=0.3)
    check_stochastic_depth(layer, inputs, branches(weights, name))


@pytest.mark.once
@every_family
def test_dropout_drops_single_channels_of_each_branch_and_rescales_the_others(name):
    inputs = tokens(1000, 5, 6)
    for loud in PARTS[name]:
        layer, _ = built(name, inputs, dropout=0.3)
        for silent in PARTS[name]:
            if silent != loud:
                silence(getattr(layer, silent))
        check_dropout(layer, inputs)


@pytest.mark.once
@every_structure
def test_mask_reaches_every_block_of_a_model_and_its_pool(name):
    """Embedding makes the mask, blocks pass it on, and the mean leaves padding out."""
    words = np.array([[1, 2, 3, 0, 0], [4, 5, 6, 1, 0]])
    layers = [keras.layers.Embedding(7, 6, mask_zero=True), make(name), make(name)]
    outputs = []
    for layer in (*layers, keras.layers.GlobalAveragePooling1D("channels_last")):
        outputs.append(layer(outputs[-1] if outputs else keras.Input((5,), dtype="int32")))
    model = keras.Model(outputs[0]._keras_history.operation.input, [outputs[2], outputs[3]])
    redraw_weights(model, stddev=0.3)
    mixed, pooled = (to_numpy(output) for output in model(words))
    embedded = layers[0](words)
    expected = layers[2](layers[1](embedded, mask=words > 0), mask=words > 0)
    np.testing.assert_allclose(mixed, to_numpy(expected), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(pooled[0], mixed[0, :3].mean(axis=0), rtol=1e-5, atol=1e-5)


def test_class_token_starts_at_zero_and_is_no_padding():
    inputs, mask = tokens(2, 2, 3), np.array([[True, False], [True, True]])
    layer = ClassToken()
    np.testing.assert_array_equal(to_numpy(layer(inputs))[:, 0], np.zeros((2, 3)))
    mask = to_numpy(layer.compute_mask(inputs, mask))
    np.testing.assert_array_equal(mask, [[True, True, False], [True, True, True]])


# At unit scale an epsilon of 1e-5 and one of 1e-6 agree to five digits; at 0.003 they do not.
@every_block
def test_numbers_and_padding(name):
    for scale in (0.003, 1.0):
        inputs = tokens(8, 5, 6, scale=scale)
        layer, weights = built(name, inputs, stochastic_depth=0.5, dropout=0.5)  # off in inference
        expected = block(inputs, weights, name)
        np.testing.assert_allclose(to_numpy(layer(inputs)), expected, rtol=1e-5, atol=1e-5)
    check_padding(layer, inputs, weights, partial(block, name=name))


@every_family
def test_numbers_and_padding_of_post_norm(name):
    inputs = tokens(8, 5, 6)
    layer, weights = built(name, inputs, norm_placement="post", epsilon=1e-5)
    reference = partial(block, name=name, epsilon=1e-5, norm_placement="post")
    expected = reference(inputs, weights)
    np.testing.assert_allclose(to_numpy(layer(inputs)), expected, rtol=1e-4, atol=1e-5)
    check_padding(layer, inputs, weights, reference)


@pytest.mark.once
@every_structure
def test_initializer_reaches_every_dense_layer_but_the_gate_s(name):
    sizes = {"hidden_dim": 64, "token_hidden_dim": 64, "attention_size": 16, "slots": 64}
    block_class, arguments = BLOCKS[name]
    arguments = {key: sizes.get(key, value) for key, value in arguments.items()}
    layer = block_class(
        **arguments, kernel_initializer=keras.initializers.RandomNormal(stddev=0.02)
    )
    layer = block_class.from_config(layer.get_config())  # the initializer is saved
    layer.build((None, 32, 64))
    kernels = {
        weight.path: to_numpy(weight)
        for weight in layer.weights
        if weight.name == "kernel" and "gate" not in weight.path
    }
    assert len(kernels) >= 2
    for path, kernel in kernels.items():
        assert kernel.std() == pytest.approx(0.02, rel=0.1), path
    # No two layers draw the same values.
    assert len({kernel.ravel()[0] for kernel in kernels.values()}) == len(kernels)


@pytest.mark.once
def test_configurations_of_version_0_1_0_load():
    layer = make("gmlp split", stochastic_depth=0.2)
    added = ("kernel_initializer", "epsilon", "norm_placement")
    old = {key: value for key, value in layer.get_config().items() if key not in added}
    old["drop_path"] = old.pop("stochastic_depth")
    assert type(layer).from_config(old).get_config() == layer.get_config()
    config = PatchEmbedding(6, 4, patch_window=8).get_config()
    config["window"] = config.pop("patch_window")
    assert PatchEmbedding.from_config(config).patch_window == 8


@pytest.mark.once
def test_number_of_tokens_is_fixed():
    for name in ("gmlp split", "amlp", "mixer", "ff_only", "resmlp"):
        layer = make(name)
        layer(np.zeros((2, 4, 6), "float32"))
        with pytest.raises(ValueError, match=r"expected shape=\(None, 4, .*found shape=\(2, 9, "):
            layer(np.zeros((2, 9, 6), "float32"))
