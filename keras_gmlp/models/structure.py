"""Finds the parts of a model: stem, class tokens, token grid, weights."""

import keras
from keras import layers

from keras_gmlp.layers import ClassToken, ZoomedViews
from keras_gmlp.layers.stems import Stem


class NotApplicableError(ValueError):
    """Raised when the family of a model does not have what was asked for."""


def require_floats(model):
    """Raises a `ValueError` if `quantize` has made integers of a model's weights."""
    if any(layer.quantization_mode for layer in model._flatten_layers()):
        raise ValueError(f"{model.name} is quantized; take the model from before quantize().")


def learned_weights(model):
    """Returns the weights by path, without the states of random generators."""
    require_floats(model)
    return {
        weight.path: weight for weight in model.weights if weight.name != "seed_generator_state"
    }


def find_stem(model, kind=Stem):
    """Returns the layer that computes tokens from the image, or `None`."""
    return next((layer for layer in model.layers if isinstance(layer, kind)), None)


def find_zooms(model):
    """Returns the shares that the views of a model show, `(1,)` for a model without views."""
    return next((layer.zooms for layer in model.layers if isinstance(layer, ZoomedViews)), (1,))


def class_tokens(model):
    """Returns the layers that prepend class and distillation tokens, in the order of the tokens."""
    # Each layer prepends its token to those of the layers before it.
    return [layer for layer in model.layers if isinstance(layer, ClassToken)][::-1]


def token_axes(model):
    """Returns the `token_axes` that the layers declare, by the path of each weight in the model."""
    weights = learned_weights(model)
    return {
        path: axes
        for layer in model.layers
        for inner, axes in getattr(layer, "token_axes", {}).items()
        if (path := f"{layer.name}/{inner}") in weights
    }


def token_grid(model):
    """Returns the rows and columns of the tokens that the stem computes."""
    stem = find_stem(model)
    if stem is None:
        raise NotApplicableError(f"{model.name} has no tokens: it has no stem that computes them.")
    height, width = stem.input.shape[1:3]
    return height // stem.patch_size, width // stem.patch_size


def features(model: keras.Model) -> keras.Model:
    """Builds the model from images to the vectors that the head of a classifier takes.

    Vectors of similar images are similar: compare them by the cosine, or train a small classifier
    on them. The weights are those of the classifier, not copies.

    Args:
        model: An image classifier of this package, with its head.

    Returns:
        A `keras.Model` from images `(batch, height, width, channels)` with values in [0, 255] to
        float32 vectors `(batch, features)`. `features` is `dim`; four times the `width` of a
        ResNet; the last of the `widths` of a ConvNet; twice `dim` with a distillation token, whose
        vector follows that of the class token.

    Raises:
        ValueError: If the model has no layer `head`.

    Example:
        >>> model = keras_gmlp.gMLP(dim=128, depth=2, hidden_dim=256)
        >>> keras_gmlp.features(model).output_shape
        (None, 128)
    """
    heads = {layer.name: layer for layer in model.layers}
    heads = [heads[name] for name in ("head", "head_distillation") if name in heads]
    if not heads:
        raise ValueError(
            f"{model.name}: no layer named head; expected an image classifier of keras_gmlp."
        )
    # In the order of the heads' tokens; under mixed precision a token is not in float32 yet.
    vectors = [layers.Identity(dtype="float32")(head.input) for head in heads]
    joined = layers.Concatenate(name="features")(vectors) if len(vectors) > 1 else vectors[0]
    return keras.Model(model.input, joined, name="features")


def require_logits(model):
    """Raises a `ValueError` if a model ends in the activation of `classifier_activation`."""
    if [layer.name for layer in model.layers[-1:]] == ["classifier_activation"]:
        raise ValueError(
            f"{model.name}: expected a model that returns logits; received one with a "
            "classifier_activation. Build it without."
        )


def longest_text(model):
    """Returns the largest number of tokens that a model takes; `None` for any number."""
    limits = [layer.max_tokens for layer in model.layers if getattr(layer, "max_tokens", None)]
    return min(limits, default=None)
