"""The blocks and their parts, one file for each paper."""

from keras_gmlp.layers.block import Block, ResidualBlock, make_dense, mask_tokens
from keras_gmlp.layers.embedding import (
    ClassToken,
    ConvolutionalStem,
    PatchEmbedding,
    PositionEmbedding,
    SegmentEmbedding,
    TokenPositions,
)
from keras_gmlp.layers.external_attention import ExternalAttention, ExternalAttentionBlock
from keras_gmlp.layers.feed_forward import FeedForwardOnlyBlock
from keras_gmlp.layers.gmlp import GMLPBlock, SpatialGatingUnit, TinyAttention
from keras_gmlp.layers.heads import AttentionPooling, LogitBias, MaskedLMHead, SpanHead
from keras_gmlp.layers.mixer import MixerBlock, TokenMLP
from keras_gmlp.layers.relative_attention import RelativeAttention, RelativePositionBias
from keras_gmlp.layers.resmlp import Affine, FoldedResMLPBlock, LayerScale, ResMLPBlock
from keras_gmlp.layers.spatial_projection import SpatialProjection
from keras_gmlp.layers.transformer import TransformerBlock
from keras_gmlp.layers.whitening import WhiteningConvolution
from keras_gmlp.layers.zoomed_views import AverageViews, ZoomedViews

__all__ = [
    "Affine",
    "AttentionPooling",
    "AverageViews",
    "Block",
    "ClassToken",
    "ConvolutionalStem",
    "ExternalAttention",
    "ExternalAttentionBlock",
    "FeedForwardOnlyBlock",
    "FoldedResMLPBlock",
    "GMLPBlock",
    "LayerScale",
    "LogitBias",
    "MaskedLMHead",
    "MixerBlock",
    "PatchEmbedding",
    "PositionEmbedding",
    "RelativeAttention",
    "RelativePositionBias",
    "ResMLPBlock",
    "ResidualBlock",
    "SegmentEmbedding",
    "SpanHead",
    "SpatialGatingUnit",
    "SpatialProjection",
    "TinyAttention",
    "TokenMLP",
    "TokenPositions",
    "TransformerBlock",
    "WhiteningConvolution",
    "ZoomedViews",
    "make_dense",
    "mask_tokens",
]
