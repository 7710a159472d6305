"""Named sizes of the families, in one table; `keras_gmlp.build` builds a model from a name.

The names and sizes for 224 pixels are those of timm and the papers. `n4_32` (nano) and `ti4_32`
(tiny) are sizes for images of 32 pixels in patches of 4, with about 0.8 and 4 million parameters.
`conv` stands for a convolutional stem; the gates of gMLP and aMLP are then shift-invariant too, and
ViT pools by attention. `ti2` has patches of 2.
"""

import difflib
import fnmatch
import inspect

from keras_gmlp.models.common import require_known
from keras_gmlp.models.convnet import ConvNet
from keras_gmlp.models.image_families import (
    EAMLP,
    FeedForwardOnly,
    MLPMixer,
    ResMLP,
    ViT,
    aMLP,
    gMLP,
)
from keras_gmlp.models.resnet import ResNet

_224 = {"input_shape": (224, 224, 3), "patch_size": 16, "classes": 1000}

_32 = {"input_shape": (32, 32, 3), "patch_size": 4, "classes": 10}

_CONV = {**_32, "stem": "convolutions"}

_SHIFT_INVARIANT = {"toeplitz": True, "heads": 8, **_CONV}

_PHOTO = {"input_shape": (64, 64, 3), "patch_size": 8, "classes": 200}

_IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}

_DISTILLED = {"distillation_token": True}

# 4 x 197 tokens; fixed, so that the weights fit another image size too.
_FF_ONLY = {"token_hidden_dim": 788, **_224, **_IMAGENET}

PRESETS = {
    "gmlp_ti16_224": (gMLP, {"dim": 128, "depth": 30, "hidden_dim": 768, **_224}),
    "gmlp_s16_224": (
        gMLP,
        {"dim": 256, "depth": 30, "hidden_dim": 1536, "stochastic_depth": 0.05, **_224},
    ),
    "gmlp_b16_224": (
        gMLP,
        {"dim": 512, "depth": 30, "hidden_dim": 3072, "stochastic_depth": 0.2, **_224},
    ),
    "mixer_s32_224": (MLPMixer, {"dim": 512, "depth": 8, **_224, "patch_size": 32}),
    "mixer_s16_224": (MLPMixer, {"dim": 512, "depth": 8, **_224}),
    "mixer_b32_224": (MLPMixer, {"dim": 768, "depth": 12, **_224, "patch_size": 32}),
    "mixer_b16_224": (MLPMixer, {"dim": 768, "depth": 12, **_224}),
    "mixer_l16_224": (MLPMixer, {"dim": 1024, "depth": 24, **_224}),
    "resmlp_12_224": (ResMLP, {"dim": 384, "depth": 12, "layer_scale": 1e-4, **_224, **_IMAGENET}),
    "resmlp_24_224": (ResMLP, {"dim": 384, "depth": 24, "layer_scale": 1e-5, **_224, **_IMAGENET}),
    "resmlp_36_224": (ResMLP, {"dim": 384, "depth": 36, "layer_scale": 1e-6, **_224, **_IMAGENET}),
    "eamlp_7_224": (EAMLP, {"dim": 256, "depth": 7, "num_heads": 16, "mlp_ratio": 2, **_224}),
    "eamlp_14_224": (EAMLP, {"dim": 384, "depth": 14, "num_heads": 24, "mlp_ratio": 3, **_224}),
    "ff_only_ti16_224": (FeedForwardOnly, {"dim": 192, "depth": 12, **_FF_ONLY}),
    "ff_only_b16_224": (FeedForwardOnly, {"dim": 768, "depth": 12, **_FF_ONLY}),
    "vit_ti16_224": (ViT, {"dim": 192, "depth": 12, "num_heads": 3, **_224}),
    "vit_s16_224": (ViT, {"dim": 384, "depth": 12, "num_heads": 6, **_224}),
    "vit_b16_224": (ViT, {"dim": 768, "depth": 12, "num_heads": 12, **_224}),
    "deit_ti16_224": (ViT, {"dim": 192, "depth": 12, "num_heads": 3, **_224, **_IMAGENET}),
    "deit_s16_224": (ViT, {"dim": 384, "depth": 12, "num_heads": 6, **_224, **_IMAGENET}),
    "deit_b16_224": (ViT, {"dim": 768, "depth": 12, "num_heads": 12, **_224, **_IMAGENET}),
    "deit_ti16_distilled_224": (
        ViT,
        {"dim": 192, "depth": 12, "num_heads": 3, **_DISTILLED, **_224, **_IMAGENET},
    ),
    "deit_s16_distilled_224": (
        ViT,
        {"dim": 384, "depth": 12, "num_heads": 6, **_DISTILLED, **_224, **_IMAGENET},
    ),
    "deit_b16_distilled_224": (
        ViT,
        {"dim": 768, "depth": 12, "num_heads": 12, **_DISTILLED, **_224, **_IMAGENET},
    ),
    "gmlp_n4_32": (gMLP, {"dim": 192, "depth": 7, "hidden_dim": 384, **_32}),
    "gmlp_linear_n4_32": (
        gMLP,
        {"dim": 192, "depth": 7, "hidden_dim": 284, "gating": "linear", **_32},
    ),
    "gmlp_additive_n4_32": (
        gMLP,
        {"dim": 192, "depth": 7, "hidden_dim": 284, "gating": "additive", **_32},
    ),
    "gmlp_multiplicative_n4_32": (
        gMLP,
        {"dim": 192, "depth": 7, "hidden_dim": 284, "gating": "multiplicative", **_32},
    ),
    "gmlp_none_n4_32": (gMLP, {"dim": 192, "depth": 7, "hidden_dim": 296, "gating": "none", **_32}),
    "amlp_n4_32": (
        aMLP,
        {"dim": 192, "depth": 7, "hidden_dim": 352, "attention_size": 16, **_32},
    ),
    "mixer_n4_32": (MLPMixer, {"dim": 128, "depth": 6, "channel_hidden_dim": 496, **_32}),
    "resmlp_n4_32": (ResMLP, {"dim": 128, "depth": 6, **_32}),
    "eamlp_n4_32": (EAMLP, {"dim": 128, "depth": 3, "num_heads": 16, "mlp_ratio": 3.25, **_32}),
    "ff_only_n4_32": (FeedForwardOnly, {"dim": 128, "depth": 5, "token_hidden_dim": 260, **_32}),
    "vit_n4_32": (ViT, {"dim": 128, "depth": 4, "num_heads": 2, **_32}),
    "deit_n4_32": (ViT, {"dim": 128, "depth": 4, "num_heads": 2, **_DISTILLED, **_32}),
    "gmlp_conv_n4_32": (gMLP, {"dim": 176, "depth": 7, "hidden_dim": 352, **_SHIFT_INVARIANT}),
    "amlp_conv_n4_32": (
        aMLP,
        {"dim": 176, "depth": 7, "hidden_dim": 304, "attention_size": 16, **_SHIFT_INVARIANT},
    ),
    "vit_conv_n4_32": (
        ViT,
        {
            "dim": 128,
            "depth": 4,
            "num_heads": 2,
            "mlp_ratio": 3.5,
            "class_token": False,
            "pooling": "attention",
            **_CONV,
        },
    ),
    "gmlp_conv_ti2_32": (
        gMLP,
        {"dim": 256, "depth": 12, "hidden_dim": 768, **_SHIFT_INVARIANT, "patch_size": 2},
    ),
    # For photographs: 200 classes of Tiny-ImageNet.
    "gmlp_photo_64": (
        gMLP,
        {
            "dim": 256,
            "depth": 8,
            "hidden_dim": 768,
            "pooling": "attention",
            **_SHIFT_INVARIANT,
            **_PHOTO,
        },
    ),
    "amlp_conv_ti2_32": (
        aMLP,
        {
            "dim": 256,
            "depth": 11,
            "hidden_dim": 768,
            "attention_size": 64,
            **_SHIFT_INVARIANT,
            "patch_size": 2,
        },
    ),
    "vit_conv_ti2_32": (
        ViT,
        {
            "dim": 192,
            "depth": 9,
            "num_heads": 3,
            "class_token": False,
            "pooling": "attention",
            **_CONV,
            "patch_size": 2,
        },
    ),
    "resnet_56_32": (ResNet, {"depth": 56, "input_shape": (32, 32, 3), "classes": 10}),
    "convnet_8_32": (ConvNet, {"input_shape": (32, 32, 3), "classes": 10}),
    "gmlp_ti4_32": (gMLP, {"dim": 256, "depth": 10, "hidden_dim": 1024, **_32}),
    "amlp_ti4_32": (aMLP, {"dim": 256, "depth": 8, "hidden_dim": 1024, **_32}),
    "vit_ti4_32": (ViT, {"dim": 192, "depth": 9, "num_heads": 3, **_32}),
}


def lookup(preset):
    """Looks up a preset.

    Args:
        preset: A key of `PRESETS`.

    Returns:
        `(function, arguments)`: the function that builds the model, and a dict of its arguments.

    Raises:
        ValueError: If the preset is unknown; the message names the nearest one.

    Example:
        >>> function, arguments = lookup("gmlp_n4_32")
        >>> function.__name__, arguments["dim"]
        ('gMLP', 192)
    """
    return find(preset, PRESETS)


def list_presets(pattern="*"):
    """Lists the names of presets that match a pattern.

    Args:
        pattern: A pattern of a shell, such as `"gmlp*"`.

    Returns:
        A list of keys of `PRESETS`.

    Example:
        >>> list_presets("resmlp_*_224")
        ['resmlp_12_224', 'resmlp_24_224', 'resmlp_36_224']
    """
    return fnmatch.filter(PRESETS, pattern)


def find(preset, table):
    """Returns the entry of a table of presets; raises a `ValueError` that names the nearest one."""
    if preset not in table:
        near = difflib.get_close_matches(str(preset), table, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"Unknown preset {preset!r}.{hint} Expected one of: {', '.join(table)}.")
    return table[preset]


def build_fresh(preset, **overrides):
    """Builds the model of a preset with fresh weights; see `keras_gmlp.build`."""
    function, arguments = lookup(preset)
    if not overrides.get("include_top", True):  # the preset's pooling belongs to its head
        arguments = {key: value for key, value in arguments.items() if key != "pooling"}
    if "kwargs" not in inspect.signature(function).parameters:  # otherwise the family checks them
        require_known(function, function, overrides)
    return function(**{**arguments, "name": preset, **overrides})
