"""Builds models from presets, with fresh weights, published ones, or those of a trained model."""

import itertools
import math
from pathlib import Path

from keras_gmlp.inference import images as inference
from keras_gmlp.models import presets
from keras_gmlp.models.presets import IMAGE_PRESETS, TEXT_PRESETS, lookup
from keras_gmlp.models.structure import class_tokens, token_axes, token_grid
from keras_gmlp.tasks.classifier import DECISION
from keras_gmlp.utils.card import read_card
from keras_gmlp.utils.errors import naming_errors
from keras_gmlp.utils.sources import TRAINABLE, find_model
from keras_gmlp.weights.conversion import every_dialect, load_arrays
from keras_gmlp.weights.files import read_checkpoint
from keras_gmlp.weights.names import ARCHITECTURES
from keras_gmlp.weights.trained import Pretrained

# The part of an image that published weights were tested on, for files without config.json.
CROP = {"ViT": 0.9}  # by family
OTHER_CROP = 0.875


def load(source, preset=None):
    """Loads a trained model with its metadata.

    Args:
        source: A name on the Hugging Face hub, `"hf-hub:timm/gmlp_s16_224.ra3_in1k"`; a file of
            published weights (see `weights.files.read_checkpoint`) or a folder with
            model.safetensors, as in the hub's cache; a `.keras` file of this package, the folder
            of a run, or the name of a model that comes with a clone of the repository, such as
            `"gmlp_photo_64"`.
        preset: A key of `PRESETS`. Defaults to the name in the source. A file of weights without
            config.json requires it.

    Returns:
        A `Pretrained`.

    Raises:
        ValueError: If the source does not exist, is damaged, or holds weights of another
            architecture or size. One line.

    Example:
        >>> source = load("gmlp_n4_32-cifar10")
        >>> source.preset, source.labels[3]
        ('gmlp_n4_32', 'cat')
    """
    path, kind = find_model(source, TRAINABLE)
    return (_load_published if kind == "published" else _load_own)(path, source, preset)


def imagenet_labels():
    """Returns the 1000 class names of ImageNet in their usual order, from WordNet."""
    return tuple(Path(__file__).with_name("imagenet_classes.txt").read_text().splitlines())


def _load_published(path, source, preset):
    arrays, config = read_checkpoint(path)
    stated = ARCHITECTURES.get(config.architecture, config.architecture)
    preset = preset or stated
    if preset is None:
        raise ValueError(f"{source}: no config.json of timm; name the preset of the weights.")
    if stated in IMAGE_PRESETS and stated != preset:
        raise ValueError(f"{source}: config.json describes {stated}; received preset {preset}.")
    with naming_errors(source):
        family, defaults = lookup(preset)
    if config.num_heads not in (None, defaults.get("num_heads")):
        raise ValueError(
            f"{source}: config.json has num_heads {config.num_heads}; {preset} has "
            f"{defaults.get('num_heads', 'none')}."
        )
    arguments = {"mean": config.mean, "std": config.std, "input_shape": config.image_shape}
    arguments = {name: value for name, value in arguments.items() if value is not None}
    biases = [arrays[name] for name in ("head.bias", "head/bias") if name in arrays]
    arguments["classes"] = len(biases[0]) if biases else defaults["classes"]
    model = presets.build(preset, **arguments)
    if config.image_shape is None:
        arguments["input_shape"] = read_image_shape(model, arrays)
        if arguments["input_shape"] != model.input_shape[1:]:
            model = presets.build(preset, **arguments)
    by_token = bool(class_tokens(model))
    if config.pool is not None and (config.pool == "token") != by_token:
        raise ValueError(
            f"{source}: config.json says that the head reads {config.pool!r}, unlike {preset}."
        )
    has_head = load_arrays(model, arrays, source)
    labels = config.labels
    if labels is None or len(labels) != arguments["classes"]:
        labels = imagenet_labels() if arguments["classes"] == 1000 else None
    crop = config.crop or CROP.get(family.__name__, OTHER_CROP)
    preparation = {"crop": crop, "interpolation": config.interpolation or "bicubic"}
    labels = labels if has_head else None
    return Pretrained(model, preset, labels, preparation, str(source), not has_head, arguments)


def read_image_shape(model, arrays):
    """Reads the shape of the square images of published weights from their number of tokens."""
    height, width, channels = model.input_shape[1:]
    # Of weights with one number or one vector per token, the axis of the tokens.
    per_token = {("writes",): 0, (None, "holds", None): 1}
    declared = token_axes(model)
    for link in itertools.chain(*every_dialect(model)):
        axis = per_token.get(declared.get(link.ours[0]))
        if axis is None or not set(link.theirs) <= set(arrays):
            continue
        try:
            array = link.forward([arrays[name] for name in link.theirs], None)[0]
            side = math.isqrt(array.shape[axis] - len(class_tokens(model)))
        except (ValueError, IndexError):  # another number of axes: load_arrays reports it
            continue
        patch = height // token_grid(model)[0]
        return (side * patch, side * patch, channels)
    return (height, width, channels)


def _load_own(path, source, preset):
    classifier, card = inference.load(path), read_card(path)
    stated = card.get("preset") or classifier.model.name
    if preset is None and stated not in IMAGE_PRESETS:
        raise ValueError(
            f"{source}: {stated!r} is not a preset, and only models of presets can be loaded."
        )
    if preset is not None and stated in IMAGE_PRESETS and stated != preset:
        raise ValueError(f"{source}: holds weights of {stated}; received preset {preset}.")
    with naming_errors(source):
        lookup(preset or stated)
    return Pretrained(
        classifier.model,
        preset or stated,
        classifier.labels if classifier.named else None,
        classifier.preparation,
        str(source),
        arguments=card.get("arguments"),
        decision={name: card[name] for name in DECISION if name in card},
    )


def build(preset, weights=None, tokenizer=None, **overrides):
    """Builds the model of a preset, with fresh weights or with trained ones.

    Args:
        preset: A key of `PRESETS`, for example `"gmlp_n4_32"`, or `"gmlp_nano"` for texts.
        weights: A source that `weights.load` accepts: a name on the Hugging Face hub
            (`"hf-hub:timm/gmlp_s16_224.ra3_in1k"`), a file of published weights, a `.keras` file,
            the folder of a run or the name of an included model. They are resized to another
            image size; for another number of classes the head is untrained. Defaults to fresh
            weights, which language models have at first.
        tokenizer: The `Tokenizer` whose vocabulary a language model gets; `None` for the preset's
            size.
        **overrides: Arguments of the model that replace the preset's, for example
            `classes=5` or `input_shape=(64, 64, 3)`.

    Returns:
        A compiled `keras.Model` named after the preset.

    Raises:
        ValueError: If the preset is unknown, an override is out of its range, or the weights do
            not exist, are damaged or belong to another architecture.
        TypeError: If the model has no such argument.

    Example:
        >>> build("gmlp_n4_32", depth=2, classes=5).output_shape
        (None, 5)
    """
    if weights is not None:
        if preset in TEXT_PRESETS:
            raise ValueError(
                f"{preset} starts with fresh weights; open a trained one by keras_gmlp.text.load."
            )
        lookup(preset)
        return load(weights, preset).adapt(**overrides)[0]
    return presets.build(preset, tokenizer, **overrides)
