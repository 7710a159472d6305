"""The families: each passes its block to `image_classifier`."""

import math

import keras

from keras_gmlp.layers import (
    Affine,
    ExternalAttentionBlock,
    FeedForwardOnlyBlock,
    GMLPBlock,
    MixerBlock,
    ResMLPBlock,
    TransformerBlock,
)
from keras_gmlp.layers.zoomed_views import view_share, view_size
from keras_gmlp.models.image_classifier import image_classifier


def gMLP(
    dim: int = 256,
    depth: int = 30,
    hidden_dim: int = 1536,
    gating: str = "split",
    attention_size: int = 0,
    dropout: float = 0.0,
    heads: int = 1,
    toeplitz: bool = False,
    name: str = "gmlp",
    **kwargs,
) -> keras.Model:
    """gMLP, "Pay Attention to MLPs" (https://arxiv.org/abs/2105.08050). Defaults: gMLP-S.

    Args:
        dim, depth: See `image_classifier`.
        hidden_dim: Channels inside a block, the paper's d_ffn.
        gating: `"split"`, `"multiplicative"`, `"additive"`, `"linear"`, or `"none"` for blocks
            without a gate, which do not mix tokens.
        attention_size: Head size of the tiny attention; 0 for none.
        dropout: Rate, in [0, 1), on the output of each branch of a block.
        heads: Groups of channels with their own matrix over tokens.
        toeplitz: Whether the entries of that matrix depend only on the offset between two tokens,
            as in the paper's language models. This form learns more from small data sets; see
            `layers.SpatialProjection`.
        name: Name of the model.
        **kwargs: Further arguments of `image_classifier`, such as `input_shape`, `patch_size`,
            `classes`, `stochastic_depth` and `include_top`.

    Returns:
        A compiled `keras.Model` from images in [0, 255] to logits.

    Example:
        >>> model = gMLP(128, 8, 512, input_shape=(32, 32, 3), patch_size=4, classes=10)
        >>> model.output_shape
        (None, 10)
    """
    arguments = {
        "hidden_dim": hidden_dim,
        "gating": gating,
        "attention_size": attention_size,
        "dropout": dropout,
        "heads": heads,
        "toeplitz": toeplitz,
        "grid": _grid(**kwargs) if toeplitz else None,
    }
    return image_classifier(GMLPBlock, arguments, dim=dim, depth=depth, name=name, **kwargs)


def aMLP(
    dim: int = 256,
    depth: int = 24,
    hidden_dim: int = 1536,
    attention_size: int = 64,
    name: str = "amlp",
    **kwargs,
) -> keras.Model:
    """gMLP with a tiny attention of one head in the gate of each block.

    Args:
        dim, depth, hidden_dim, name: See `gMLP`.
        attention_size: Head size, at least 1.
        **kwargs: Further arguments of `gMLP` and `image_classifier`.

    Returns:
        A compiled `keras.Model` from images in [0, 255] to logits.

    Reference: "Pay Attention to MLPs", https://arxiv.org/abs/2105.08050, section 4.3.
    """
    return gMLP(dim, depth, hidden_dim, attention_size=attention_size, name=name, **kwargs)


def MLPMixer(
    dim: int = 512,
    depth: int = 8,
    token_hidden_dim: int | None = None,
    channel_hidden_dim: int | None = None,
    dropout: float = 0.0,
    name: str = "mixer",
    **kwargs,
) -> keras.Model:
    """MLP-Mixer, "An all-MLP Architecture for Vision". Defaults: Mixer-S.

    Args:
        dim, depth: See `image_classifier`.
        token_hidden_dim: Hidden units of the token MLP, the paper's D_S. Defaults to `dim // 2`.
        channel_hidden_dim: Hidden channels of the channel MLP, the paper's D_C. Defaults to
            4 x `dim`.
        dropout, name, **kwargs: See `gMLP`.

    Returns:
        A compiled `keras.Model` from images in [0, 255] to logits.

    Reference: https://arxiv.org/abs/2105.01601.
    """
    units = max(1, dim // 2) if token_hidden_dim is None else token_hidden_dim
    channels = 4 * dim if channel_hidden_dim is None else channel_hidden_dim
    arguments = {"token_hidden_dim": units, "hidden_dim": channels, "dropout": dropout}
    return image_classifier(MixerBlock, arguments, dim=dim, depth=depth, name=name, **kwargs)


def ResMLP(
    dim: int = 384,
    depth: int = 12,
    mlp_ratio: float = 4,
    layer_scale: float = 0.1,
    dropout: float = 0.0,
    name: str = "resmlp",
    **kwargs,
) -> keras.Model:
    """ResMLP, "Feedforward networks for image classification". Defaults: the sizes of ResMLP-S12.

    `keras_gmlp.fold(model)` returns the same model without Affine and LayerScale.

    Args:
        dim, depth: See `image_classifier`.
        mlp_ratio: Ratio of the hidden channels of the MLP to `dim`.
        layer_scale: Initial scale of each branch. The authors of LayerScale recommend 0.1 for up to
            18 blocks; the presets of published sizes use the values of the release, 1e-4 or less.
        dropout, name, **kwargs: See `gMLP`.

    Returns:
        A compiled `keras.Model` from images in [0, 255] to logits.

    Reference: https://arxiv.org/abs/2105.03404.
    """
    hidden = int(dim * mlp_ratio)
    arguments = {"hidden_dim": hidden, "layer_scale": layer_scale, "dropout": dropout}
    kwargs = {"norm": Affine, **kwargs}
    return image_classifier(ResMLPBlock, arguments, dim=dim, depth=depth, name=name, **kwargs)


def EAMLP(
    dim: int = 384,
    depth: int = 14,
    num_heads: int = 24,
    slots: int = 64,
    expansion: int = 4,
    mlp_ratio: float = 3,
    dropout: float = 0.0,
    name: str = "eamlp",
    **kwargs,
) -> keras.Model:
    """EAMLP, a ViT with external attention. Defaults: EAMLP-14 with a convolutional stem.

    Args:
        dim, depth: See `image_classifier`.
        num_heads, slots, expansion: See `layers.ExternalAttention`. `num_heads=1, expansion=1` is
            the single-head form.
        mlp_ratio, dropout, name, **kwargs: See `ResMLP`.

    Returns:
        A compiled `keras.Model` from images in [0, 255] to logits.

    Reference: "Beyond Self-attention: External Attention", https://arxiv.org/abs/2105.02358. The
    published models have other convolutional stems or T2T.
    """
    arguments = {
        "hidden_dim": int(dim * mlp_ratio),
        "num_heads": num_heads,
        "slots": slots,
        "expansion": expansion,
        "dropout": dropout,
    }
    kwargs = {"stem": "convolutions", "class_token": True, "position_embedding": True, **kwargs}
    return image_classifier(
        ExternalAttentionBlock, arguments, dim=dim, depth=depth, name=name, **kwargs
    )


def FeedForwardOnly(
    dim: int = 192,
    depth: int = 12,
    token_hidden_dim: int | None = None,
    mlp_ratio: float = 4,
    dropout: float = 0.0,
    name: str = "ff_only",
    **kwargs,
) -> keras.Model:
    """A ViT with attention replaced by an MLP over tokens. Defaults: tiny.

    Args:
        dim, depth: See `image_classifier`.
        token_hidden_dim: Hidden units of the token MLP. Defaults to the paper's 4 x tokens,
            including the class token.
        mlp_ratio: Ratio of the hidden channels of the channel MLP to `dim`.
        dropout, name, **kwargs: See `gMLP`.

    Returns:
        A compiled `keras.Model` from images in [0, 255] to logits.

    Reference: "Do You Even Need Attention?", https://arxiv.org/abs/2105.02723.
    """
    kwargs = {"class_token": True, "position_embedding": True, **kwargs}
    if token_hidden_dim is None:
        tokens = math.prod(_grid(**kwargs)) + kwargs["class_token"]
        token_hidden_dim = 4 * (tokens + kwargs.get("distillation_token", False))
    hidden, block = int(dim * mlp_ratio), FeedForwardOnlyBlock
    arguments = {"token_hidden_dim": token_hidden_dim, "hidden_dim": hidden, "dropout": dropout}
    return image_classifier(block, arguments, dim=dim, depth=depth, name=name, **kwargs)


def ViT(
    dim: int = 384,
    depth: int = 12,
    num_heads: int = 6,
    mlp_ratio: float = 4,
    dropout: float = 0.0,
    class_token: bool = True,
    name: str = "vit",
    **kwargs,
) -> keras.Model:
    """Vision Transformer, "An Image is Worth 16x16 Words". Defaults: ViT-S.

    Args:
        dim, depth: See `image_classifier`.
        num_heads: Attention heads; they must divide `dim`.
        mlp_ratio: See `ResMLP`.
        dropout: See `gMLP`.
        class_token: Classify from a class token, as in the paper; `False` uses the mean over
            tokens.
        name, **kwargs: See `gMLP`. `distillation_token=True` builds a distilled DeiT, whose logits
            are the mean of two heads. To train the second head on the labels of a teacher, build a
            `keras.Model` with the outputs of the layers `head` and `head_distillation`.

    Returns:
        A compiled `keras.Model` from images in [0, 255] to logits.

    Reference: https://arxiv.org/abs/2010.11929; DeiT: https://arxiv.org/abs/2012.12877.
    """
    hidden = int(dim * mlp_ratio)
    arguments = {"num_heads": num_heads, "hidden_dim": hidden, "dropout": dropout}
    kwargs = {"class_token": class_token, "position_embedding": True, **kwargs}
    return image_classifier(TransformerBlock, arguments, dim=dim, depth=depth, name=name, **kwargs)


def _grid(input_shape=(224, 224, 3), patch_size=16, zooms=None, **_):
    """Returns the rows and columns of tokens; the defaults are those of `image_classifier`."""
    height, width = view_size(*input_shape[:2], view_share(zooms))
    return height // patch_size, width // patch_size
