import numpy as np
import pytest
from check_layer import to_numpy

from keras_gmlp import PRESETS, build
from keras_gmlp.inference import images as inference

PARAMETERS = {
    "gmlp_ti16_224": 5_867_328,
    "gmlp_s16_224": 19_422_656,
    "gmlp_b16_224": 73_075_392,
    "mixer_s32_224": 19_104_624,
    "mixer_s16_224": 18_528_264,
    "mixer_b32_224": 60_293_428,
    "mixer_b16_224": 59_880_472,
    "mixer_l16_224": 208_196_168,
    "resmlp_12_224": 15_350_872,
    "resmlp_24_224": 30_020_680,
    "resmlp_36_224": 44_690_488,
    "eamlp_7_224": 6_280_936,
    "eamlp_14_224": 30_421_352,
    "ff_only_ti16_224": 7_676_332,
    "ff_only_b16_224": 61_943_020,
    "vit_ti16_224": 5_717_416,
    "vit_s16_224": 22_050_664,
    "vit_b16_224": 86_567_656,
    "deit_ti16_224": 5_717_416,
    "deit_s16_224": 22_050_664,
    "deit_b16_224": 86_567_656,
    "deit_ti16_distilled_224": 5_910_800,
    "deit_s16_distilled_224": 22_436_432,
    "deit_b16_distilled_224": 87_338_192,
    "gmlp_n4_32": 824_394,
    "gmlp_linear_n4_32": 814_230,
    "gmlp_additive_n4_32": 814_230,
    "gmlp_multiplicative_n4_32": 814_230,
    "gmlp_none_n4_32": 813_474,
    "amlp_n4_32": 845_226,
    "mixer_n4_32": 826_410,
    "resmlp_n4_32": 827_658,
    "eamlp_n4_32": 815_850,
    "ff_only_n4_32": 847_381,
    "vit_n4_32": 809_354,
    "deit_n4_32": 810_900,
    "gmlp_conv_n4_32": 819_634,
    "amlp_conv_n4_32": 807_818,
    "vit_conv_n4_32": 812_938,
    "gmlp_conv_ti2_32": 3_693_674,
    "gmlp_photo_64": 2_819_592,
    "amlp_conv_ti2_32": 4_204_066,
    "vit_conv_ti2_32": 4_060_810,
    "resnet_56_32": 857_082,
    "convnet_8_32": 1_973_954,
    "gmlp_ti4_32": 4_017_546,
    "amlp_ti4_32": 3_878_154,
    "vit_ti4_32": 4_028_170,
}


def dense(inputs, outputs):
    return inputs * outputs + outputs


def feed_forward(dim, hidden_dim):
    return dense(dim, hidden_dim) + dense(hidden_dim, dim)


def token_count(arguments):
    height, width, _ = arguments["input_shape"]
    return (height // arguments["patch_size"]) * (width // arguments["patch_size"])


def shell(arguments, block, tokens=0, stem=None):
    """Stem, blocks, last norm and head; with leading tokens, these and the positions of all."""
    dim, patch_size, classes = (arguments[name] for name in ("dim", "patch_size", "classes"))
    if "stem" in arguments:
        stem = convolutional_stem(dim, patch_size)
    stem = stem or dense(patch_size * patch_size * 3, dim)
    positions = (tokens + token_count(arguments)) * dim if tokens else 0
    if "pooling" in arguments:  # a score for each token; a ViT has positions without a class token
        positions = (token_count(arguments) * ("num_heads" in arguments) + 1) * dim
    heads = max(tokens, 1) * dense(dim, classes)
    return stem + tokens * dim + positions + arguments["depth"] * block + 2 * dim + heads


def convolutional_stem(dim, patch_size):
    """3x3 convolutions of stride 2 with twice the channels each, a norm after each but the last."""
    count, channels = 0, 3
    while patch_size > 1:
        patch_size //= 2
        count += dense(9 * channels, dim // patch_size)
        channels = dim // patch_size
        count += 2 * channels if patch_size > 1 else 0
    return count


def gmlp_parameters(arguments, attention_size=0):
    dim, hidden_dim, tokens = arguments["dim"], arguments["hidden_dim"], token_count(arguments)
    gating = arguments.get("gating", "split")
    gated = hidden_dim // 2 if gating == "split" else hidden_dim
    spatial = dense(tokens, tokens)
    if "toeplitz" in arguments:  # a weight for each offset on the square grid
        reach = 2 * round(tokens**0.5) - 1
        spatial = arguments["heads"] * (reach * reach + tokens)
    gate = 0 if gating == "none" else 2 * gated + spatial
    block = 2 * dim + dense(dim, hidden_dim) + gate + dense(gated, dim)
    if attention_size:
        block += dense(dim, 3 * attention_size) + dense(attention_size, gated)
    return shell(arguments, block)


def amlp_parameters(arguments):
    return gmlp_parameters(arguments, attention_size=arguments.get("attention_size", 64))


def vit_parameters(arguments):
    dim = arguments["dim"]
    attention = 4 * dense(dim, dim)  # query, key, value, output
    block = 2 * 2 * dim + attention + feed_forward(dim, int(arguments.get("mlp_ratio", 4) * dim))
    if "pooling" in arguments:
        return shell(arguments, block)
    return shell(arguments, block, tokens=2 if "distillation_token" in arguments else 1)


def mixer_parameters(arguments):
    dim, tokens = arguments["dim"], token_count(arguments)
    block = 2 * 2 * dim + feed_forward(tokens, dim // 2)
    block += feed_forward(dim, arguments.get("channel_hidden_dim", 4 * dim))
    return shell(arguments, block)


def resmlp_parameters(arguments):
    dim, tokens = arguments["dim"], token_count(arguments)
    affines_and_scales = 2 * 2 * dim + 2 * dim
    block = affines_and_scales + dense(tokens, tokens) + feed_forward(dim, 4 * dim)
    return shell(arguments, block)


def ff_only_parameters(arguments):
    dim, tokens = arguments["dim"], token_count(arguments) + 1
    block = 2 * dim + feed_forward(dim, 4 * dim) + 2 * tokens + feed_forward(tokens, 4 * tokens)
    return shell(arguments, block, tokens=1)


def eamlp_parameters(arguments):
    dim, patch_size = arguments["dim"], arguments["patch_size"]
    size = 4 * dim // arguments["num_heads"]  # channels of a head
    attention = dense(dim, 4 * dim) + 2 * 64 * size + dense(4 * dim, dim)
    block = 2 * 2 * dim + attention + feed_forward(dim, int(arguments.get("mlp_ratio", 3) * dim))
    return shell(arguments, block, tokens=1, stem=convolutional_stem(dim, patch_size))


def resnet_parameters(arguments):
    blocks = (arguments["depth"] - 2) // 6  # of a stage

    def convolution(inputs, outputs):
        return 9 * inputs * outputs + 4 * outputs  # gain, shift, mean and variance of the norm

    count, channels = convolution(3, 16), 16
    for width in (16, 32, 64):
        count += convolution(channels, width) + (2 * blocks - 1) * convolution(width, width)
        channels = width
    return count + dense(64, 10)


def convnet_parameters(arguments):
    """Kernel and bias of 24 filters of 2x2; in each group two convolutions and their norms."""
    count, channels = 2 * 2 * 3 * 24 + 24, 24
    for width in (64, 256, 256):
        count += 9 * (channels + width) * width + 2 * 3 * width  # shift, mean and variance
        channels = width
    return count + dense(256, 10)


FORMULAS = {
    "gmlp": gmlp_parameters,
    "amlp": amlp_parameters,
    "vit": vit_parameters,
    "deit": vit_parameters,
    "mixer": mixer_parameters,
    "resmlp": resmlp_parameters,
    "eamlp": eamlp_parameters,
    "ff": ff_only_parameters,
    "resnet": resnet_parameters,
    "convnet": convnet_parameters,
}


def test_every_preset_is_pinned():
    assert list(PARAMETERS) == list(PRESETS)


@pytest.mark.usefixtures("start_at_zero")
@pytest.mark.parametrize("preset", PARAMETERS)
def test_parameter_count(preset):
    model = build(preset)
    assert model.count_params() == PARAMETERS[preset]
    assert model.name == preset
    arguments = PRESETS[preset][1]
    assert model.input_shape == (None, *arguments["input_shape"])
    assert model.output_shape == (None, arguments["classes"])


@pytest.mark.parametrize("preset", PARAMETERS)
def test_parameter_count_by_formula(preset):
    family = preset.split("_")[0]
    assert FORMULAS[family](PRESETS[preset][1]) == PARAMETERS[preset]


def test_families_of_one_size_are_comparable():
    nano = {name: count for name, count in PARAMETERS.items() if name.endswith("_32")}
    tiny = {name: nano.pop(name) for name in list(nano) if "ti" in name}
    sizes = [count for name, count in tiny.items() if "ti4" in name]
    assert max(sizes) / min(sizes) <= 1.05
    assert max(tiny.values()) <= 5_000_000
    # One family of each layer file, and the four gatings.
    assert {name.split("_")[0] for name in nano} == set(FORMULAS)
    # ResNet-56 has the size that it is known by, and 4,064 statistics of norms are in its count.
    resnet = nano.pop("resnet_56_32")
    del nano["convnet_8_32"]  # the size of airbench94
    assert max(nano.values()) / min(nano.values()) <= 1.05
    assert resnet / PARAMETERS["gmlp_n4_32"] <= 1.05


def test_overrides_take_the_place_of_a_preset_s_arguments():
    model = build("gmlp_n4_32", depth=2, classes=3, input_shape=(16, 24, 1), name="small")
    assert model.input_shape == (None, 16, 24, 1)
    assert model.output_shape == (None, 3)
    assert model.name == "small"
    assert [layer.name for layer in model.layers if "block" in layer.name] == ["block_0", "block_1"]


@pytest.mark.parametrize(
    ("preset", "arguments", "meant"),
    [
        ("vit_n4_32", {"num_classes": 3}, "classes"),
        ("gmlp_n4_32", {"hiden_dim": 8}, "hidden_dim"),
        ("resnet_56_32", {"image_size": 8}, "input_shape"),
        ("mixer_n4_32", {"pretrained": True}, r"weights of keras_gmlp\.build"),
    ],
)
def test_an_unknown_override_is_answered_by_the_nearest(preset, arguments, meant):
    (name,) = arguments
    message = f"has no argument '{name}'; did you mean {meant}\\? The arguments are "
    with pytest.raises(TypeError, match=message):
        build(preset, **arguments)


@pytest.mark.parametrize("preset", ["mixer_n4_32", "resnet_56_32", "convnet_8_32"])
def test_classifier_activation(preset):
    plain = build(preset)
    model = build(preset, classifier_activation="softmax")
    assert len(model.layers) == len(plain.layers) + 1
    image = np.zeros((1, 32, 32, 3))
    np.testing.assert_allclose(to_numpy(model(image)), np.full((1, 10), 0.1), rtol=1e-6)
    with pytest.raises(ValueError, match="returns logits; received one with a classifier_activat"):
        inference.from_keras(model, "", {})


@pytest.mark.parametrize(
    ("unknown", "nearest"),
    [("gmlp_s16", "gmlp_s16_224"), ("gmpl_n4_32", "gmlp_n4_32"), ("vit_n4_23", "vit_n4_32")],
)
def test_unknown_preset_suggests_the_nearest(unknown, nearest):
    message = (
        rf"Unknown preset '{unknown}'\. Did you mean '{nearest}'\? Expected one of: gmlp_ti16_224, "
    )
    with pytest.raises(ValueError, match=message):
        build(unknown)


def test_unknown_preset_that_is_near_to_none():
    with pytest.raises(ValueError, match=r"preset 'llama'\. Expected one of: gmlp_ti16_224, "):
        build("llama")


def test_vit_b16_with_mean_pooling():
    assert build("vit_b16_224", class_token=False).count_params() == 86_566_120
