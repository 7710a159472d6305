from types import SimpleNamespace

import numpy as np
import pytest
from check_layer import to_numpy

import keras_gmlp
from keras_gmlp import build
from keras_gmlp.inference.opening import open_keras
from keras_gmlp.models.presets import IMAGE_PRESETS
from keras_gmlp.tasks.classifier import make_classifier

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
}


def test_one_door_for_images_and_texts():
    tokenizer = SimpleNamespace(size=50, sep_id=7)
    for function in (build, keras_gmlp.text.build):
        model = function("gmlp_nano", tokenizer=tokenizer, depth=1)
        assert (model.name, model.output_shape[-1]) == ("gmlp_nano", 50)


# Least and most parameters of the presets of one size, which are compared with each other.
SIZES = {"_n4_": (806_000, 848_000), "_ti4_": (3_870_000, 4_030_000)}


@pytest.mark.usefixtures("start_at_zero")
@pytest.mark.parametrize("preset", IMAGE_PRESETS)
def test_sizes(preset):
    arguments = IMAGE_PRESETS[preset][1]
    if preset in PARAMETERS:  # all blocks have the same size
        model = build(preset, depth=1)
        others = (arguments["depth"] - 1) * model.get_layer("block_0").count_params()
        assert model.count_params() + others == PARAMETERS[preset]
    else:
        model = build(preset)
        least, most = next((SIZES[size] for size in SIZES if size in preset), (0, 2e7))
        if preset != "gmlp_residual_n4_32":  # made to save time, and smaller
            assert least < model.count_params() < most
    assert model.name == preset
    assert model.input_shape == (None, *arguments["input_shape"])
    assert model.output_shape == (None, arguments["classes"])


def test_classifier_activation():
    for preset, depth in (("mixer_n4_32", 1), ("resnet_56_32", 8)):
        plain = build(preset, depth=depth)
        model = build(preset, depth=depth, classifier_activation="softmax")
        assert len(model.layers) == len(plain.layers) + 1
        image = np.zeros((1, 32, 32, 3))
        np.testing.assert_allclose(to_numpy(model(image)), np.full((1, 10), 0.1), rtol=1e-6)
        with pytest.raises(ValueError, match="classifier_activation"):
            make_classifier(open_keras(model, ""))


def test_unknown_preset_suggests_the_nearest():
    with pytest.raises(ValueError, match="mean 'gmlp_n4_32'"):
        build("gmpl_n4_32")
