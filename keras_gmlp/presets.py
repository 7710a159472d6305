"""Named sizes: one literal table, and `build` to make a model from it.

The 224-pixel names are the community's and their sizes the papers'; `n4_32` (nano) and `ti4_32`
(tiny) are sizes for images of 32 pixels, patch 4, of about 0.8 and 4 million parameters.
"""

import difflib

from keras_gmlp.vision import ViT, aMLP, gMLP

_224 = {"input_shape": (224, 224, 3), "patch_size": 16, "classes": 1000}
_32 = {"input_shape": (32, 32, 3), "patch_size": 4, "classes": 10}

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
    "vit_ti16_224": (ViT, {"dim": 192, "depth": 12, "num_heads": 3, **_224}),
    "vit_s16_224": (ViT, {"dim": 384, "depth": 12, "num_heads": 6, **_224}),
    "vit_b16_224": (ViT, {"dim": 768, "depth": 12, "num_heads": 12, **_224}),
    "gmlp_n4_32": (gMLP, {"dim": 192, "depth": 7, "hidden_dim": 384, **_32}),
    "amlp_n4_32": (
        aMLP,
        {"dim": 192, "depth": 6, "hidden_dim": 368, "attention_size": 32, **_32},
    ),
    "vit_n4_32": (ViT, {"dim": 128, "depth": 4, "num_heads": 2, **_32}),
    "gmlp_ti4_32": (gMLP, {"dim": 256, "depth": 10, "hidden_dim": 1024, **_32}),
    "amlp_ti4_32": (aMLP, {"dim": 256, "depth": 8, "hidden_dim": 1024, **_32}),
    "vit_ti4_32": (ViT, {"dim": 192, "depth": 9, "num_heads": 3, **_32}),
}


def build(preset, **overrides):
    """Makes the model of a preset, with fresh weights.

    Args:
        preset: a key of `PRESETS`, for example `"gmlp_n4_32"`.
        **overrides: arguments of the model that take the place of the preset's, for example
            `classes=5` or `input_shape=(64, 64, 3)`.

    Returns:
        A compiled `keras.Model` named after the preset.

    Raises:
        ValueError: an unknown preset, or an override out of its range.
        TypeError: an override that the model does not take.
    """
    function, arguments = lookup(preset)
    return function(**{**arguments, "name": preset, **overrides})


def lookup(preset):
    """The `(function, arguments)` of a preset; a `ValueError` names the nearest for an unknown."""
    if preset not in PRESETS:
        near = difflib.get_close_matches(str(preset), PRESETS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"Unknown preset {preset!r}.{hint} There are: {', '.join(PRESETS)}.")
    return PRESETS[preset]
