"""Named sizes of the families, for images and for texts; `keras_gmlp.build` builds them.

The names and sizes for 224 pixels are those of timm and the papers. `n4_32` (nano) and `ti4_32`
(tiny) are sizes for images of 32 pixels in patches of 4, with about 0.8 and 4 million parameters.
`conv` stands for a convolutional stem, `residual` for one with shortcuts; the gates of gMLP and
aMLP are then shift-invariant too, and ViT pools by attention. `ti2` has patches of 2. Names without
a number are language models.
"""

import fnmatch
from typing import TYPE_CHECKING, Any

import keras_gmlp
from keras_gmlp.utils.errors import did_you_mean

if TYPE_CHECKING:
    import keras

# What rows of the tables share.
_224 = {"input_shape": (224, 224, 3), "patch_size": 16, "classes": 1000}
_32 = {"input_shape": (32, 32, 3), "patch_size": 4, "classes": 10}
_PHOTO = {"input_shape": (64, 64, 3), "patch_size": 8, "classes": 200}
_CONV = {**_32, "stem": "convolutions"}
_WITHOUT_PATCHES = {"input_shape": (32, 32, 3), "classes": 10}
_IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}

_GMLP = {"depth": 30, **_224}
_GMLP_N4 = {"dim": 192, "depth": 7, **_32}
_GMLP_284 = {**_GMLP_N4, "hidden_dim": 284}
_SHIFT_INVARIANT = {"toeplitz": True, "heads": 8, **_CONV}
_CONV_N4 = {"dim": 176, "depth": 7, **_SHIFT_INVARIANT}
_CONV_TI2 = {**_SHIFT_INVARIANT, "dim": 256, "hidden_dim": 768, "patch_size": 2}
_RESMLP = {"dim": 384, **_224, **_IMAGENET}
# 4 x 197 tokens; fixed, so that the weights fit another image size too.
_FF_ONLY = {"token_hidden_dim": 788, **_224, **_IMAGENET}
_FF_ONLY_N4 = {"dim": 128, "depth": 5, "token_hidden_dim": 260}
_VIT_TI = {"dim": 192, "depth": 12, "num_heads": 3, **_224}
_VIT_S = {"dim": 384, "depth": 12, "num_heads": 6, **_224}
_VIT_B = {"dim": 768, "depth": 12, "num_heads": 12, **_224}
_VIT_TI4 = {"dim": 192, "depth": 9, "num_heads": 3, **_32}
_VIT_N4 = {"dim": 128, "depth": 4, "num_heads": 2, **_32}
_POOLED = {"class_token": False, "pooling": "attention"}
_DISTILLED = {"distillation_token": True}

IMAGE_PRESETS = {
    "gmlp_ti16_224": ("gMLP", {"dim": 128, "hidden_dim": 768, **_GMLP}),
    "gmlp_s16_224": ("gMLP", {"dim": 256, "hidden_dim": 1536, "stochastic_depth": 0.05, **_GMLP}),
    "gmlp_b16_224": ("gMLP", {"dim": 512, "hidden_dim": 3072, "stochastic_depth": 0.2, **_GMLP}),
    "mixer_s32_224": ("MLPMixer", {"dim": 512, "depth": 8, **_224, "patch_size": 32}),
    "mixer_s16_224": ("MLPMixer", {"dim": 512, "depth": 8, **_224}),
    "mixer_b32_224": ("MLPMixer", {"dim": 768, "depth": 12, **_224, "patch_size": 32}),
    "mixer_b16_224": ("MLPMixer", {"dim": 768, "depth": 12, **_224}),
    "mixer_l16_224": ("MLPMixer", {"dim": 1024, "depth": 24, **_224}),
    "resmlp_12_224": ("ResMLP", {"depth": 12, "layer_scale": 1e-4, **_RESMLP}),
    "resmlp_24_224": ("ResMLP", {"depth": 24, "layer_scale": 1e-5, **_RESMLP}),
    "resmlp_36_224": ("ResMLP", {"depth": 36, "layer_scale": 1e-6, **_RESMLP}),
    "eamlp_7_224": ("EAMLP", {"dim": 256, "depth": 7, "num_heads": 16, "mlp_ratio": 2, **_224}),
    "eamlp_14_224": ("EAMLP", {"dim": 384, "depth": 14, "num_heads": 24, "mlp_ratio": 3, **_224}),
    "ff_only_ti16_224": ("FeedForwardOnly", {"dim": 192, "depth": 12, **_FF_ONLY}),
    "ff_only_b16_224": ("FeedForwardOnly", {"dim": 768, "depth": 12, **_FF_ONLY}),
    "vit_ti16_224": ("ViT", _VIT_TI),
    "vit_s16_224": ("ViT", _VIT_S),
    "vit_b16_224": ("ViT", _VIT_B),
    "deit_ti16_224": ("ViT", {**_VIT_TI, **_IMAGENET}),
    "deit_s16_224": ("ViT", {**_VIT_S, **_IMAGENET}),
    "deit_b16_224": ("ViT", {**_VIT_B, **_IMAGENET}),
    "deit_ti16_distilled_224": ("ViT", {**_VIT_TI, **_IMAGENET, **_DISTILLED}),
    "deit_s16_distilled_224": ("ViT", {**_VIT_S, **_IMAGENET, **_DISTILLED}),
    "deit_b16_distilled_224": ("ViT", {**_VIT_B, **_IMAGENET, **_DISTILLED}),
    "gmlp_n4_32": ("gMLP", {**_GMLP_N4, "hidden_dim": 384}),
    "gmlp_linear_n4_32": ("gMLP", {**_GMLP_284, "gating": "linear"}),
    "gmlp_additive_n4_32": ("gMLP", {**_GMLP_284, "gating": "additive"}),
    "gmlp_multiplicative_n4_32": ("gMLP", {**_GMLP_284, "gating": "multiplicative"}),
    "gmlp_none_n4_32": ("gMLP", {**_GMLP_N4, "hidden_dim": 296, "gating": "none"}),
    "amlp_n4_32": ("aMLP", {**_GMLP_N4, "hidden_dim": 352, "attention_size": 16}),
    "mixer_n4_32": ("MLPMixer", {"dim": 128, "depth": 6, "channel_hidden_dim": 496, **_32}),
    "resmlp_n4_32": ("ResMLP", {"dim": 128, "depth": 6, **_32}),
    "eamlp_n4_32": ("EAMLP", {"dim": 128, "depth": 3, "num_heads": 16, "mlp_ratio": 3.25, **_32}),
    "ff_only_n4_32": ("FeedForwardOnly", {**_FF_ONLY_N4, **_32}),
    "vit_n4_32": ("ViT", _VIT_N4),
    "deit_n4_32": ("ViT", {**_VIT_N4, **_DISTILLED}),
    "gmlp_conv_n4_32": ("gMLP", {"hidden_dim": 352, **_CONV_N4}),
    "amlp_conv_n4_32": ("aMLP", {"hidden_dim": 304, "attention_size": 16, **_CONV_N4}),
    "vit_conv_n4_32": ("ViT", {**_VIT_N4, "mlp_ratio": 3.5, **_POOLED, **_CONV}),
    "mixer_conv_n4_32": ("MLPMixer", {"depth": 6, "channel_hidden_dim": 448, "dim": 128, **_CONV}),
    "resmlp_conv_n4_32": ("ResMLP", {"dim": 128, "depth": 6, "mlp_ratio": 3.625, **_CONV}),
    "ff_only_conv_n4_32": ("FeedForwardOnly", {**_FF_ONLY_N4, "mlp_ratio": 3.4375, **_CONV}),
    "gmlp_residual_n4_32": (
        "gMLP",
        {**_CONV_N4, "hidden_dim": 352, "depth": 6, "stem": "residual"},
    ),
    # Four times as many tokens as gmlp_conv_n4_32, with fewer channels.
    "gmlp_conv_n2_32": ("gMLP", {**_CONV_N4, "dim": 128, "hidden_dim": 512, "patch_size": 2}),
    "gmlp_conv_ti2_32": ("gMLP", {"depth": 12, **_CONV_TI2}),
    # For photographs: 200 classes of Tiny-ImageNet.
    "gmlp_photo_64": ("gMLP", {**_CONV_TI2, "depth": 8, "pooling": "attention", **_PHOTO}),
    "amlp_conv_ti2_32": ("aMLP", {"depth": 11, "attention_size": 64, **_CONV_TI2}),
    "vit_conv_ti2_32": ("ViT", {**_VIT_TI4, **_POOLED, **_CONV, "patch_size": 2}),
    "resnet_56_32": ("ResNet", {"depth": 56, **_WITHOUT_PATCHES}),
    # Wide, as in https://arxiv.org/abs/1605.07146: six times the channels.
    "resnet_20x6_32": ("ResNet", {"depth": 20, "width": 96, **_WITHOUT_PATCHES}),
    "convnet_8_32": ("ConvNet", _WITHOUT_PATCHES),
    "convnet_11_32": ("ConvNet", {"widths": (128, 384, 512), "depth": 3, **_WITHOUT_PATCHES}),
    "gmlp_ti4_32": ("gMLP", {"dim": 256, "depth": 10, "hidden_dim": 1024, **_32}),
    "amlp_ti4_32": ("aMLP", {"dim": 256, "depth": 8, "hidden_dim": 1024, **_32}),
    "vit_ti4_32": ("ViT", _VIT_TI4),
}

_NANO = {"vocabulary_size": 8192, "dim": 128}
_UNSPLIT_NANO = {**_NANO, "depth": 12, "hidden_dim": 512}
_SMALL = {"vocabulary_size": 16384, "dim": 256}
_GMLP_SMALL = {**_SMALL, "depth": 12, "hidden_dim": 1536}
_MEDIUM = {"vocabulary_size": 16384, "dim": 512}
_PAPER = {"vocabulary_size": 32000, "max_length": 512}
_UNSPLIT = {**_SMALL, "depth": 12, "hidden_dim": 1024}
_BERT_SMALL = {**_SMALL, "depth": 9, "num_heads": 4}

TEXT_PRESETS = {
    "gmlp_nano": ("gMLP", {**_NANO, "depth": 12, "hidden_dim": 768}),
    "amlp_nano": ("aMLP", {**_NANO, "depth": 9, "hidden_dim": 768}),
    "bert_nano": ("BERT", {**_NANO, "depth": 9, "num_heads": 2}),
    "gmlp_small": ("gMLP", _GMLP_SMALL),
    "amlp_small": ("aMLP", {**_SMALL, "depth": 10, "hidden_dim": 1536}),
    "bert_small": ("BERT", _BERT_SMALL),
    "gmlp_medium": ("gMLP", {**_MEDIUM, "depth": 12, "hidden_dim": 3072}),
    "amlp_medium": ("aMLP", {**_MEDIUM, "depth": 11, "hidden_dim": 3072}),
    "bert_medium": ("BERT", {**_MEDIUM, "depth": 9, "num_heads": 8}),
    # The rows of the paper's comparisons at the size of small.
    "amlp_deep_small": ("aMLP", _GMLP_SMALL),
    "gmlp_free_small": ("gMLP", {**_GMLP_SMALL, "toeplitz": False}),
    "gmlp_linear_small": ("gMLP", {**_UNSPLIT, "gating": "linear"}),
    "gmlp_additive_small": ("gMLP", {**_UNSPLIT, "gating": "additive"}),
    "gmlp_multiplicative_small": ("gMLP", {**_UNSPLIT, "gating": "multiplicative"}),
    "gmlp_none_small": ("gMLP", {**_UNSPLIT, "gating": "none"}),
    "bert_positions_small": ("BERT", {**_BERT_SMALL, "relative": False}),
    "bert_no_attention_small": ("BERT", {**_BERT_SMALL, "content": False}),
    "gmlp_multiplicative_nano": ("gMLP", {**_UNSPLIT_NANO, "gating": "multiplicative"}),
    # The paper's sizes, "Pay Attention to MLPs", tables 6 and 7.
    "gmlp_base": ("gMLP", {**_PAPER, "dim": 512, "depth": 48, "hidden_dim": 3072}),
    "amlp_base": ("aMLP", {**_PAPER, "dim": 512, "depth": 36, "hidden_dim": 3072}),
    "gmlp_large": ("gMLP", {**_PAPER, "dim": 768, "depth": 96, "hidden_dim": 3072}),
    "amlp_large": (
        "aMLP",
        {**_PAPER, "dim": 768, "depth": 72, "hidden_dim": 3072, "attention_size": 128},
    ),
    "gmlp_xlarge": ("gMLP", {**_PAPER, "dim": 1024, "depth": 144, "hidden_dim": 4096}),
}

PRESETS = {**IMAGE_PRESETS, **TEXT_PRESETS}


def lookup(preset, table=IMAGE_PRESETS):
    """Returns the name of a preset's family, and a dict of its arguments."""
    if preset not in table:
        near = did_you_mean(preset, table, most=3)
        raise ValueError(f"unknown preset {preset!r}.{near} keras_gmlp.list_presets() lists all.")
    return table[preset]


def list_presets(pattern: str = "*") -> list[str]:
    """Lists the names of presets that match a pattern.

    Args:
        pattern: A pattern of a shell, such as `"gmlp*"`.

    Returns:
        A list of keys of `PRESETS`.

    Example:
        >>> list_presets("resmlp_*_224")
        ['resmlp_12_224', 'resmlp_24_224', 'resmlp_36_224']
        >>> list_presets("*_nano")
        ['gmlp_nano', 'amlp_nano', 'bert_nano', 'gmlp_multiplicative_nano']
    """
    return fnmatch.filter(PRESETS, pattern)


def build(preset: str, tokenizer: Any = None, **overrides) -> "keras.Model":
    """Builds the model of a preset with fresh weights; `keras_gmlp.text.build` is this function.

    Args:
        preset: A key of `PRESETS`, such as `"gmlp_n4_32"` or `"gmlp_nano"`.
        tokenizer: The `Tokenizer` whose vocabulary a language model gets; `None` for the preset's
            size.
        **overrides: Arguments that replace the preset's, such as `input_shape` or `max_length`.

    Returns:
        A compiled `keras.Model` named after the preset.

    Raises:
        ValueError: If the preset is unknown or an override is out of its range.
        TypeError: If the model has no such argument.

    Example:
        >>> build("gmlp_nano").count_params()
        2871156
    """
    name, arguments = lookup(preset, PRESETS)
    families = keras_gmlp  # whose names load on first use, as Keras does
    if preset in TEXT_PRESETS:
        from keras_gmlp.models import language_families as families
    if tokenizer is not None:
        words = {"vocabulary_size": tokenizer.size, "separator": tokenizer.sep_id}
        overrides = {**words, **overrides}
    if not overrides.get("include_top", True):  # the preset's pooling belongs to its head
        arguments = {key: value for key, value in arguments.items() if key != "pooling"}
    return getattr(families, name)(**{**arguments, "name": preset, **overrides})
