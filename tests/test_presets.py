import keras
import pytest

from keras_gmlp import PRESETS, build

PARAMETERS = {
    "gmlp_ti16_224": 5_867_328,
    "gmlp_s16_224": 19_422_656,
    "gmlp_b16_224": 73_075_392,
    "vit_ti16_224": 5_717_416,
    "vit_s16_224": 22_050_664,
    "vit_b16_224": 86_567_656,
    "gmlp_n4_32": 824_394,
    "amlp_n4_32": 828_058,
    "vit_n4_32": 809_354,
    "gmlp_ti4_32": 4_017_546,
    "amlp_ti4_32": 3_878_154,
    "vit_ti4_32": 4_028_170,
}


def dense(inputs, outputs):
    return inputs * outputs + outputs


def shell(arguments, block):
    """Stem, blocks, last norm and head."""
    dim, patch_size = arguments["dim"], arguments["patch_size"]
    stem = dense(patch_size * patch_size * 3, dim)
    return stem + arguments["depth"] * block + 2 * dim + dense(dim, arguments["classes"])


def token_count(arguments):
    height, width, _ = arguments["input_shape"]
    return (height // arguments["patch_size"]) * (width // arguments["patch_size"])


def gmlp_parameters(arguments, attention_size=0):
    dim, hidden_dim, tokens = arguments["dim"], arguments["hidden_dim"], token_count(arguments)
    half = hidden_dim // 2
    gate = 2 * half + dense(tokens, tokens)
    block = 2 * dim + dense(dim, hidden_dim) + gate + dense(half, dim)
    if attention_size:
        block += dense(dim, 3 * attention_size) + dense(attention_size, half)
    return shell(arguments, block)


def amlp_parameters(arguments):
    return gmlp_parameters(arguments, attention_size=arguments.get("attention_size", 64))


def vit_parameters(arguments):
    dim, tokens = arguments["dim"], token_count(arguments)
    attention = 4 * dense(dim, dim)  # query, key, value, output
    block = 2 * 2 * dim + attention + dense(dim, 4 * dim) + dense(4 * dim, dim)
    class_token_and_positions = dim + (tokens + 1) * dim
    return shell(arguments, block) + class_token_and_positions


FORMULAS = {"gmlp": gmlp_parameters, "amlp": amlp_parameters, "vit": vit_parameters}


def test_every_preset_is_pinned():
    assert list(PARAMETERS) == list(PRESETS)


@pytest.fixture
def start_at_zero(monkeypatch):
    """Saves the seconds that drawing 90 million numbers takes, where only their count matters."""

    def zeros(self, shape, dtype=None):
        return keras.ops.zeros(shape, dtype)

    for initializer in ("GlorotUniform", "RandomNormal", "TruncatedNormal"):
        monkeypatch.setattr(getattr(keras.initializers, initializer), "__call__", zeros)


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


@pytest.mark.parametrize(("size", "tolerance"), [("n4_32", 0.05), ("ti4_32", 0.05)])
def test_families_of_one_size_are_comparable(size, tolerance):
    counts = [PARAMETERS[f"{family}_{size}"] for family in FORMULAS]
    assert max(counts) / min(counts) - 1 <= tolerance


def test_overrides_take_the_place_of_a_preset_s_arguments():
    model = build("gmlp_n4_32", depth=2, classes=3, input_shape=(16, 24, 1), name="small")
    assert model.input_shape == (None, 16, 24, 1)
    assert model.output_shape == (None, 3)
    assert model.name == "small"
    assert [layer.name for layer in model.layers if "block" in layer.name] == ["block_0", "block_1"]


def test_misspelt_override():
    with pytest.raises(TypeError, match="has no argument 'class_count'"):
        build("vit_n4_32", class_count=3)


@pytest.mark.parametrize(
    ("unknown", "nearest"),
    [("gmlp_s16", "gmlp_s16_224"), ("gmpl_n4_32", "gmlp_n4_32"), ("vit_n4_23", "vit_n4_32")],
)
def test_unknown_preset_suggests_the_nearest(unknown, nearest):
    message = rf"Unknown preset '{unknown}'\. Did you mean '{nearest}'\? There are: gmlp_ti16_224, "
    with pytest.raises(ValueError, match=message):
        build(unknown)


def test_unknown_preset_that_is_near_to_none():
    with pytest.raises(ValueError, match=r"preset 'resnet'\. There are: gmlp_ti16_224, "):
        build("resnet")


def test_vit_b16_with_mean_pooling():
    assert build("vit_b16_224", class_token=False).count_params() == 86_566_120
