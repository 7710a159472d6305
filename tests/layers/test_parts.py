"""What all layers but the blocks share: contract, numbers against the papers, refusals."""

from functools import partial

import keras
import numpy as np
import pytest
from check_layer import check_layer, redraw_weights, to_numpy
from numpy_reference import (
    convolution,
    convolutional_stem,
    dense,
    external_attention,
    gelu,
    layer_norm,
    patch_embedding,
    residual_stem,
    tiny_attention,
    token_mlp,
)

from keras_gmlp.layers import (
    Affine,
    ClassToken,
    ConvolutionalStem,
    ExternalAttention,
    GMLPBlock,
    LayerScale,
    PatchEmbedding,
    PositionEmbedding,
    RelativeAttention,
    ResidualStem,
    SegmentEmbedding,
    SpatialGatingUnit,
    SpatialProjection,
    TinyAttention,
    TokenMLP,
    TokenPositions,
    TransformerBlock,
    WhiteningConvolution,
)
from keras_gmlp.layers.heads import LogitBias, MaskedLMHead, TextMean
from keras_gmlp.layers.resmlp import FoldedResMLPBlock

TOKENS, GRID = (8, 5, 6), (2, 12, 6)
ON_GRID = {"heads": 3, "toeplitz": True, "grid": (3, 4)}
CONTRACTS = [
    (PatchEmbedding, {"dim": 5, "patch_size": 2, "patch_window": 4}, (3, 4, 6, 3), {}),
    (ConvolutionalStem, {"dim": 6, "patch_size": 4}, (3, 4, 8, 3), {}),
    (ResidualStem, {"dim": 6, "patch_size": 4, "channels": 5, "depth": 1}, (3, 4, 8, 3), {}),
    (ClassToken, {}, (3, 4, 6), {}),
    (PositionEmbedding, {"initializer": "zeros"}, (3, 4, 6), {}),
    (TokenPositions, {"max_tokens": 5}, TOKENS, {}),
    (SegmentEmbedding, {"separator": 3}, TOKENS, {"integers": {"token_ids": (8, 5)}}),
    (MaskedLMHead, {}, TOKENS, {"integers": {"mask_positions": (8, 2)}}),
    (LogitBias, {}, TOKENS, {}),
    # Softmax removes what a query of external attention, or a key, adds to all scores of a row.
    (ExternalAttention, {"num_heads": 4, "slots": 3}, TOKENS, {"without_gradient": ["query/bias"]}),
    (RelativeAttention, {"num_heads": 2}, TOKENS, {"without_gradient": ["key/bias"]}),
    (SpatialGatingUnit, {}, TOKENS, {"attention": (8, 5, 3)}),
    (TinyAttention, {"units": 7, "head_size": 3}, TOKENS, {}),
    (TokenMLP, {"hidden_dim": 7}, TOKENS, {}),
    (Affine, {}, TOKENS, {}),
    (LayerScale, {"initial_value": 0.2}, TOKENS, {}),
    (FoldedResMLPBlock, {"hidden_dim": 14}, TOKENS, {}),
    (SpatialProjection, ON_GRID, GRID, {}),
    (GMLPBlock, {"hidden_dim": 14, "toeplitz": True, "max_tokens": 7}, TOKENS, {}),
    (WhiteningConvolution, {"patch_size": 2, "epsilon": 0.1}, (2, 5, 4, 3), {}),
]


@pytest.mark.parametrize(("layer", "arguments", "shape", "options"), CONTRACTS)
def test_contract(layer, arguments, shape, options):
    check_layer(layer, arguments, shape, **options)


def masked_lm_head(x, weights):
    chosen = np.stack([x[0, [5, 0]], x[1, [2, 2]]])
    return layer_norm(gelu(dense(chosen, weights, "dense")), weights, "norm", 1e-6)


def windows(x, weights):
    kernel, bias = weights["projection/kernel"], weights["projection/bias"]
    return convolution(x, kernel, bias, stride=2).reshape(2, 6, 5)


def class_token(x, weights):
    return np.concatenate([np.broadcast_to(weights["token"], (8, 1, 6)), x], axis=1)


TEXTS = np.array([[2, 9, 3, 8, 3, 0], [2, 9, 8, 8, 8, 3], [0, 0, 0, 0, 0, 0]])


def segments(x, weights):
    chosen = [[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]]
    return x + weights["embedding"][np.array(chosen)]


def text_mean(x, weights):
    return np.stack([x[0, :5].mean(0), x[1].mean(0), np.zeros(4)])


# A layer, its inputs after the first, their shape, and the layer in NumPy.
NUMBERS = [
    (TinyAttention(7, head_size=3), [], TOKENS, tiny_attention),
    (TokenMLP(7), [], TOKENS, token_mlp),
    (ExternalAttention(4, 3, 2), [], TOKENS, partial(external_attention, num_heads=4)),
    (ExternalAttention(1, 3, 1), [], TOKENS, partial(external_attention, num_heads=1)),
    (PatchEmbedding(5, 2), [], (2, 4, 6, 3), partial(patch_embedding, patch_size=2)),
    (PatchEmbedding(5, 2, patch_window=4), [], (2, 4, 6, 3), windows),
    (ConvolutionalStem(6, 4), [], (2, 8, 12, 3), convolutional_stem),
    (ResidualStem(6, 8, channels=5, depth=2), [], (2, 8, 16, 3), residual_stem),
    (ClassToken(), [], TOKENS, class_token),
    (PositionEmbedding(), [], (2, 3, 4), lambda x, w: x + w["embedding"]),
    (TokenPositions(7), [], TOKENS, lambda x, w: x + w["embedding"][:, :5]),
    (SegmentEmbedding(separator=3), [TEXTS], (3, 6, 4), segments),
    (TextMean(), [TEXTS], (3, 6, 4), text_mean),
    (MaskedLMHead(), [np.array([[5, 0], [2, 2]])], (2, 6, 4), masked_lm_head),
]


# At unit scale an epsilon of 1e-5 and one of 1e-6 agree to five digits; at 0.003 they do not.
@pytest.mark.parametrize("scale", [1.0, 0.003])
@pytest.mark.parametrize(("layer", "others", "shape", "reference"), NUMBERS)
def test_numbers(layer, others, shape, reference, scale):
    inputs = (scale * np.random.normal(size=shape)).astype("float32")
    layer(inputs, *others)
    expected = reference(inputs, redraw_weights(layer))
    np.testing.assert_allclose(to_numpy(layer(inputs, *others)), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.once
def test_built_layer_takes_no_more_tokens_than_its_limit():
    for layer in (TokenPositions(4), GMLPBlock(14, max_tokens=4)):
        layer.build((None, None, 6))
        with pytest.raises(ValueError, match="at most max_tokens=4 tokens; received 5"):
            layer(np.zeros((2, 5, 6), "float32"))


REFUSALS = [
    (lambda: FoldedResMLPBlock(14)(np.zeros(TOKENS), mask=np.ones((8, 5))), "no padding mask"),
    (lambda: TokenMLP(7)(keras.Input((None, 6))), "must be fixed"),
    (lambda: SpatialProjection(4).build(TOKENS), "heads"),
    (lambda: SpatialProjection(**ON_GRID).build(TOKENS), "class token"),
    (lambda: TransformerBlock(2, 8, content=False), "relative=True"),
    (lambda: GMLPBlock(14, "none", attention_size=3), "requires a gate"),
    (lambda: GMLPBlock(14, "other"), "gating must be one of linear"),
    (lambda: PatchEmbedding(1, 4, 5), "patch_window"),
    (lambda: ResidualStem(6, 2), "patch_size"),
    (lambda: PatchEmbedding(5, 2)(keras.Input((4, 5, 3))), "multiples of 2"),
]


@pytest.mark.once
def test_refusals():
    for call, message in REFUSALS:
        with pytest.raises(ValueError, match=message):
            call()
