"""Builds models from presets, with fresh weights, published ones, or those of a trained model."""

import dataclasses
import math
from pathlib import Path

import keras
import numpy as np

from keras_gmlp import inference
from keras_gmlp.card import read_card, write_card
from keras_gmlp.layers import PatchEmbedding
from keras_gmlp.models.precision import in_float32
from keras_gmlp.models.presets import PRESETS, lookup
from keras_gmlp.models.structure import (
    class_tokens,
    find_stem,
    learned_weights,
    token_axes,
    token_grid,
)
from keras_gmlp.training.run_directory import model_path
from keras_gmlp.utils.files import atomic_write
from keras_gmlp.weights.conversion import every_link, load_arrays, to_arrays
from keras_gmlp.weights.files import HUB, SUFFIXES, is_published, read_checkpoint, write_checkpoint
from keras_gmlp.weights.names import ARCHITECTURES
from keras_gmlp.weights.resizing import transfer

# The part of an image that published weights were tested on, for files without config.json.
CROP = {"ViT": 0.9}  # by family

OTHER_CROP = 0.875

_FIRST = "stem.proj.weight"  # timm's name of the first convolution in the models of MLPs


@dataclasses.dataclass(frozen=True)
class Pretrained:
    """A model with trained weights, and the metadata that belongs to them.

    Attributes:
        model: the `keras.Model`.
        preset: its name in `PRESETS`.
        labels: class names in the order of the logits, or `None` if the source has none.
        preparation: how images are cut to size, arguments of `data.read_image.read_image`.
        origin: where the weights come from.
        headless: whether the source has no head, so that the head of the model is untrained.
        arguments: keyword arguments with which `build(preset, **arguments)` rebuilds the model.
            `None` reads them from the structure of the model.
    """

    model: keras.Model
    preset: str
    labels: tuple[str, ...] | None
    preparation: dict
    origin: str
    headless: bool = False
    arguments: dict | None = None

    def build_arguments(self, labels=None, **overrides):
        """Returns the arguments of `build` for another image size or other classes.

        Args:
            labels: new class names. Defaults to the present classes.
            **overrides: arguments of the model, for example `input_shape=(160, 160, 3)`.

        Raises:
            ValueError: If `patch_size` changes without the `patch_window` that these weights
                require, or the images have another number of channels.
        """
        own = read_arguments(self.model) if self.arguments is None else self.arguments
        arguments = {**own, **overrides}
        if labels is not None:
            arguments["classes"] = len(labels)
        if "patch_size" in overrides and "patch_window" in arguments.keys() - overrides.keys():
            raise ValueError(
                f"{self.origin}: its tokens see {arguments['patch_window']} pixels; with another "
                "patch_size give their patch_window, too."
            )
        shape = tuple(arguments["input_shape"])
        if shape[-1:] != self.model.input_shape[-1:]:
            raise ValueError(
                f"{self.origin}: takes images of {self.model.input_shape[-1]} channels; received "
                f"input_shape={shape}."
            )
        return {**arguments, "input_shape": shape}

    def adapt(self, labels=None, **overrides):
        """Rebuilds the preset for another image size or other classes, and copies the weights.

        Weights over tokens are resized on the grid of the tokens; see `weights.transfer`.

        Args:
            labels: new class names. The head keeps its weights only if these are the names that
                the weights were trained on.
            **overrides: arguments of the model, for example `input_shape=(160, 160, 3)`.

        Returns:
            `(model, report)`: a compiled `keras.Model`, and the `TransferReport` of its weights.

        Raises:
            ValueError: If the weights do not fit the preset with these arguments. One line.

        Example:
            >>> source = load("saved_models/gmlp_n4_32-cifar10")
            >>> model, report = source.adapt(labels=("cat", "dog"))
            >>> report.fresh
            ('head/kernel', 'head/bias')
        """
        model = build(self.preset, **self.build_arguments(labels, **overrides))
        known = labels is None or tuple(labels) == self.labels
        try:
            report = transfer(self.model, model, head=known and not self.headless)
        except ValueError as error:
            raise ValueError(f"{self.origin}: {error}") from None
        return model, report

    def classifier(self):
        """Returns an `inference.Classifier` with these weights.

        Raises:
            ValueError: If the source has no head.
        """
        if self.headless:
            raise ValueError(
                f"{self.origin}: has no head to classify with; train one with "
                "apps/train.py --weights."
            )
        card = {**self.preparation, "labels": self.labels}
        return inference.from_keras(self.model, Path(self.origin), card)

    def save(self, path):
        """Writes a `.keras` file whose card holds the metadata: labels, preset, arguments.

        Args:
            path: of the file.

        Raises:
            ValueError: If the source has no head.
        """
        self._refuse_headless()
        model = in_float32(self.model)
        facts = {"preset": self.preset, "arguments": self.build_arguments(), **self.preparation}
        with atomic_write(path) as temporary:
            model.save(temporary)
            write_card(temporary, model, self.labels, facts)

    def save_published(self, path):
        """Writes a `.safetensors` file under timm's names, and config.json next to it.

        `timm.create_model("local-dir:FOLDER", pretrained=True)` reads both if the file is named
        model.safetensors and timm has the architecture. `load` always reads both.

        Args:
            path: of the `.safetensors` file.

        Raises:
            ValueError: If no table of published names covers the model, if the model differs from
                its preset, which a published file cannot express, or if it has no head.
        """
        self._refuse_headless()
        height, width, channels = self.model.input_shape[1:]
        actual = read_arguments(self.model)
        if "patch_window" in actual:
            raise ValueError(f"{self.origin}: published models have no patch_window.")
        sizes = {"input_shape": actual["input_shape"], "classes": actual["classes"]}
        if _shapes(build(self.preset, **sizes)) != _shapes(self.model):
            raise ValueError(
                f"{self.origin}: differs from preset {self.preset} in its sizes; a published file "
                "holds only models of the preset's sizes."
            )
        arrays = to_arrays(self.model)
        settings = {
            "input_size": [channels, height, width],
            "interpolation": self.preparation.get("interpolation", "bicubic"),
            "crop_pct": self.preparation.get("crop", 1.0),
            "mean": actual["mean"],
            "std": actual["std"],
            "num_classes": actual["classes"],
            "fixed_input_size": True,
            "first_conv": "stem.proj" if _FIRST in arrays else "patch_embed.proj",
            "classifier": ["head", "head_dist"] if "head_dist.bias" in arrays else "head",
        }
        timm_names = {preset: name for name, preset in ARCHITECTURES.items()}
        config = {
            "architecture": timm_names.get(self.preset, self.preset),
            "num_classes": actual["classes"],
            "pretrained_cfg": settings,
        }
        config |= {"label_names": list(self.labels)} if self.labels else {}
        write_checkpoint(path, arrays, config)

    def _refuse_headless(self):
        if self.headless:
            raise ValueError(
                f"{self.origin}: has no head; train one with apps/train.py --weights first."
            )


def load(source, preset=None):
    """Loads a trained model with its metadata.

    Args:
        source: a name on the Hugging Face hub, `"hf-hub:timm/gmlp_s16_224.ra3_in1k"`; a file of
            published weights (see `weights.files.read_checkpoint`); a `.keras` file of this
            package or the folder of a run.
        preset: a key of `PRESETS`. Defaults to the name in the source. A file of weights without
            config.json requires it.

    Returns:
        A `Pretrained`.

    Raises:
        ValueError: If the source does not exist, is damaged, or holds weights of another
            architecture or size. One line.

    Example:
        >>> source = load("saved_models/gmlp_n4_32-cifar10")
        >>> source.preset, source.labels[3]
        ('gmlp_n4_32', 'cat')
    """
    return _load_published(source, preset) if is_published(source) else _load_own(source, preset)


def imagenet_labels():
    """Returns the 1000 class names of ImageNet in their usual order, from WordNet."""
    return tuple(Path(__file__).with_name("imagenet_classes.txt").read_text().splitlines())


def _load_published(source, preset):
    checkpoint = read_checkpoint(source)
    config = checkpoint.config
    stated = ARCHITECTURES.get(config.architecture, config.architecture)
    preset = preset or stated
    if preset is None:
        raise ValueError(
            f"{source}: without timm's config.json the architecture is unknown; name the preset, "
            "for example gmlp_s16_224."
        )
    if stated in PRESETS and stated != preset:
        raise ValueError(
            f"{source}: config.json describes {stated}; received preset {preset}. Name "
            f"{stated}, or move the file away from a config.json that does not describe it."
        )
    family, defaults = _lookup(preset, source)
    arguments = {"mean": config.mean, "std": config.std, "input_shape": config.image_shape}
    arguments = {name: value for name, value in arguments.items() if value is not None}
    arguments["classes"] = _head_size(checkpoint.arrays) or defaults["classes"]
    model = build(preset, **arguments)
    if config.image_shape is None:
        arguments["input_shape"] = read_image_shape(model, checkpoint.arrays)
        if arguments["input_shape"] != model.input_shape[1:]:
            model = build(preset, **arguments)
    _check_pooling(model, preset, config.pool, source)
    has_head = load_arrays(model, checkpoint.arrays, source, headless=True)
    labels = config.labels
    if labels is None or len(labels) != arguments["classes"]:
        labels = imagenet_labels() if arguments["classes"] == 1000 else None
    crop = config.crop or CROP.get(family.__name__, OTHER_CROP)
    preparation = {"crop": crop, "interpolation": config.interpolation or "bicubic"}
    return Pretrained(
        model,
        preset,
        labels if has_head else None,
        preparation,
        str(source),
        headless=not has_head,
        arguments=arguments,
    )


def _check_pooling(model, preset, pool, source):
    by_token = bool(class_tokens(model))
    if pool is not None and (pool == "token") != by_token:
        raise ValueError(
            f"{source}: config.json says that the head reads {pool!r}; the head of {preset} "
            f"reads {'the class token' if by_token else 'the mean over tokens'}."
        )


def read_image_shape(model, arrays):
    """Reads the shape of the square images of published weights from their number of tokens.

    Args:
        model: the preset's model at its own image size.
        arrays: the published arrays by name.

    Returns:
        `(height, width, channels)`; that of the model if no array has an axis over tokens.
    """
    height, width, channels = model.input_shape[1:]
    leading = len(class_tokens(model))
    axes = _token_axes(model)
    for link in every_link(model):
        if link.ours[0] not in axes or not set(link.theirs) <= set(arrays):
            continue
        try:
            array = link.forward([arrays[name] for name in link.theirs], None)[0]
            side = math.isqrt(array.shape[axes[link.ours[0]]] - leading)
        except (ValueError, IndexError):  # another number of axes: load_arrays reports it
            continue
        patch = height // token_grid(model)[0]
        return (side * patch, side * patch, channels)
    return (height, width, channels)


def _token_axes(model):
    """The weights with one number or one vector per token, by path, and the axis of the tokens."""
    return {
        path: next(i for i, kind in enumerate(axes) if kind)
        for path, axes in token_axes(model).items()
        if axes in (("writes",), (None, "holds", None))
    }


def _shapes(model):
    return {path: tuple(weight.shape) for path, weight in learned_weights(model).items()}


def _lookup(preset, source):
    try:
        return lookup(preset)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def _head_size(arrays):
    """The number of classes, from the bias of the head; `None` without a head."""
    return next((len(arrays[name]) for name in ("head.bias", "head/bias") if name in arrays), None)


def _load_own(source, preset):
    path = Path(source)
    if path.is_dir():
        path = model_path(path)
    if path.suffix != ".keras":
        missing = "" if path.exists() else "no such folder; "
        raise ValueError(
            f"{source}: {missing}expected {HUB}NAME, a file of weights ({', '.join(SUFFIXES)}), a "
            ".keras file or the folder of a run."
        )
    classifier, card = inference.load(path), read_card(path)
    stated = card.get("preset") or classifier.model.name
    if preset is None and stated not in PRESETS:
        raise ValueError(
            f"{source}: {stated!r} is not a preset, and only preset models can be loaded: build "
            "the model with keras_gmlp.build or apps/train.py, or name its preset."
        )
    if preset is not None and stated in PRESETS and stated != preset:
        raise ValueError(f"{source}: these weights are of {stated}; received preset {preset}.")
    preset = preset or stated
    _lookup(preset, source)
    return Pretrained(
        classifier.model,
        preset,
        classifier.labels if classifier.named else None,
        classifier.preparation,
        str(source),
        arguments=card.get("arguments"),
    )


def read_arguments(model):
    """Reads from the structure of a model what a user of a preset may override.

    For files of version 0.1 and for plain `model.save`, whose card has no `"arguments"`.

    Args:
        model: a `keras.Model` that `build` returned or a file of it.

    Returns:
        A dict: `input_shape`, `classes`, `mean`, `std`, and for a model with a stem `patch_size`
        and, if larger, `patch_window`.
    """
    normalization, stem = model.get_layer("normalization"), find_stem(model)
    std = 1 / (255 * np.asarray(normalization.scale))
    patches = {} if stem is None else {"patch_size": stem.patch_size}
    if isinstance(stem, PatchEmbedding) and stem.patch_window > stem.patch_size:
        patches["patch_window"] = stem.patch_window
    return {
        **patches,
        "input_shape": tuple(model.input_shape[1:]),
        "classes": model.output_shape[-1],
        "mean": (-np.asarray(normalization.offset) * std).tolist(),
        "std": std.tolist(),
    }


def build(preset, weights=None, **overrides):
    """Builds the model of a preset, with fresh weights or with trained ones.

    Args:
        preset: a key of `PRESETS`, for example `"gmlp_n4_32"`.
        weights: a source that `weights.load` accepts: a name on the Hugging Face hub
            (`"hf-hub:timm/gmlp_s16_224.ra3_in1k"`), a file of published weights, a `.keras` file
            or the folder of a run. They are resized to another image size; for another number of
            classes the head is untrained. Defaults to fresh weights.
        **overrides: arguments of the model that replace the preset's, for example
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
    function, arguments = lookup(preset)
    if weights is not None:
        return load(weights, preset).adapt(**overrides)[0]
    return function(**{**arguments, "name": preset, **overrides})
