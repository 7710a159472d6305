"""The blocks and their parts, one file for each paper."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "block": ["Block", "ResidualBlock", "make_dense", "mask_tokens"],
        "embedding": ["ClassToken", "PositionEmbedding", "SegmentEmbedding", "TokenPositions"],
        "external_attention": ["ExternalAttention", "ExternalAttentionBlock"],
        "feed_forward": ["FeedForwardOnlyBlock"],
        "gmlp": ["GMLPBlock", "SpatialGatingUnit", "TinyAttention"],
        "heads": ["AttentionPooling"],
        "mixer": ["MixerBlock", "TokenMLP"],
        "relative_attention": ["RelativeAttention", "RelativePositionBias"],
        "resmlp": ["Affine", "LayerScale", "ResMLPBlock"],
        "spatial_projection": ["SpatialProjection"],
        "stems": ["ConvolutionalStem", "PatchEmbedding", "ResidualStem"],
        "transformer": ["TransformerBlock"],
        "whitening": ["WhiteningConvolution"],
        "zoomed_views": ["ZoomedViews"],
    },
)
