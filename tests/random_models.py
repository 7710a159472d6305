"""Small models of every family, with initial or random weights."""

import keras
import numpy as np

import keras_gmlp

MODELS = {
    "gmlp": (keras_gmlp.gMLP, {"hidden_dim": 64}),
    "amlp": (keras_gmlp.aMLP, {"hidden_dim": 64}),
    "vit": (keras_gmlp.ViT, {"num_heads": 2}),
    "deit": (keras_gmlp.ViT, {"num_heads": 2, "distillation_token": True}),
    "mixer": (keras_gmlp.MLPMixer, {}),
    "resmlp": (keras_gmlp.ResMLP, {}),
    # With random memories all tokens get nearly the same, so a class token hardly sees the image.
    "eamlp": (keras_gmlp.EAMLP, {"num_heads": 4, "class_token": False}),
    "ff_only": (keras_gmlp.FeedForwardOnly, {"token_hidden_dim": 68}),
    "resnet": (keras_gmlp.ResNet, {}),
    "convnet": (keras_gmlp.ConvNet, {}),
}

TINY = {"dim": 8, "depth": 2, "patch_size": 4, "classes": 3}
TINY_ARGUMENTS = {
    "gmlp": {"hidden_dim": 12},
    "amlp": {"hidden_dim": 12, "attention_size": 2},
    "vit": {"num_heads": 2},
    "deit": {"num_heads": 2, "distillation_token": True},
    "eamlp": {"num_heads": 4, "slots": 3},
    "ff_only": {"token_hidden_dim": 20},
}


def tiny(family="gmlp", input_shape=(8, 8, 3), **overrides):
    """Returns a model with initial weights."""
    arguments = {**TINY, **TINY_ARGUMENTS.get(family, {}), **overrides}
    return MODELS[family][0](input_shape=input_shape, **arguments)


def pixels(*shape):
    return np.random.default_rng(2).integers(0, 256, shape, dtype="uint8")


def redraw_all(model):
    """Draws all weights and statistics of a model of convolutions, and returns them by path.

    The scale of the kernels keeps activations near 1, where float32 is accurate to 1e-5.
    """
    generator = np.random.default_rng(1)
    weights = {}
    for weight in model.weights:
        value = generator.normal(0.0, 0.5, weight.shape)
        if len(weight.shape) == 4:
            value *= 2 / np.sqrt(np.prod(weight.shape[:-1]))
        if weight.path.endswith("variance"):
            value = np.abs(value) + 0.5
        weight.assign(value)
        weights[weight.path] = value
    return weights


def random_model(family, **overrides):
    """Returns a model with random weights: initial ones have a zero head and equal gates."""
    function, sizes = MODELS[family]
    shell = {"dim": 32, "depth": 2, "patch_size": 4}
    if family == "resnet":
        shell = {"depth": 14, "width": 8}
    elif family == "convnet":
        shell = {"widths": (8, 12)}
    sizes = {**shell, "classes": 5, **sizes, **overrides}
    model = function(input_shape=(16, 16, 3), **sizes)
    rng = np.random.default_rng(0)
    for weight in model.weights:
        # The largest values, divided by 9, hardly depend on the image with small kernels.
        wide = len(weight.shape) < 2 or family == "convnet"
        noise = rng.normal(0, 0.3 if wide else 0.1, weight.shape)
        # A variance stays above 0.
        noise = np.abs(noise) if weight.name == "moving_variance" else noise
        if "seed" not in weight.name:
            weight.assign(keras.ops.convert_to_numpy(weight) + noise)
    return model
