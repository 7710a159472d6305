"""The building blocks: one paper, one file."""

from keras_gmlp.layers.embedding import ClassToken, PatchEmbedding, PositionEmbedding
from keras_gmlp.layers.gmlp import GMLPBlock, SpatialGatingUnit, TinyAttention
from keras_gmlp.layers.transformer import TransformerBlock

__all__ = [
    "ClassToken",
    "GMLPBlock",
    "PatchEmbedding",
    "PositionEmbedding",
    "SpatialGatingUnit",
    "TinyAttention",
    "TransformerBlock",
]
