"""Finds the parts of a model: its stem, its class tokens, its token grid, its learned weights."""

from keras_gmlp.layers import ClassToken, ConvolutionalStem, PatchEmbedding


def learned_weights(model):
    """A model's weights by their paths, without the states of its random generators."""
    return {weight.path: weight for weight in model.weights if "seed" not in weight.name}


class NotApplicableError(ValueError):
    """The model's family has no such thing to show."""


def find_stem(model, kind=PatchEmbedding | ConvolutionalStem):
    """The layer of a kind that makes tokens from the image, or `None` in a model without."""
    return next((layer for layer in model.layers if isinstance(layer, kind)), None)


def class_tokens(model):
    """The layers that put class and distillation tokens before the patches, in the tokens' order.

    Each puts its own before those that are there.
    """
    return [layer for layer in model.layers if isinstance(layer, ClassToken)][::-1]


def token_grid(model):
    """Rows and columns of the tokens that the stem makes."""
    stem = find_stem(model)
    if stem is None:
        raise NotApplicableError(
            f"{model.name} has no tokens: no stem that makes them from the image."
        )
    height, width = model.input_shape[1:3]
    return height // stem.patch_size, width // stem.patch_size
