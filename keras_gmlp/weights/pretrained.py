"""Models that begin with weights: published ones, or those of a model of ours."""

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

# The part of a picture that published weights were tested on, where no config.json says it.
CROP = {"ViT": 0.9}  # by the family; of the others:

OTHER_CROP = 0.875

_FIRST = "stem.proj.weight"  # timm's name of the first convolution in the models of MLPs


@dataclasses.dataclass(frozen=True)
class Pretrained:
    """Weights in a model of their own size, and what belongs to them.

    Attributes:
        model: the `keras.Model`.
        preset: its name in `PRESETS`.
        labels: class names in the order of the logits, or `None` where the source has none.
        preparation: how pictures are cut to size, arguments of `images.read_image`.
        origin: where the weights came from.
        headless: whether the source has no head, so that the model's is fresh.
    """

    model: keras.Model
    preset: str
    labels: tuple[str, ...] | None
    preparation: dict
    origin: str
    headless: bool = False

    def adapt(self, labels=None, **overrides):
        """Builds the preset anew for another image or other classes, and moves the weights there.

        Weights over tokens are resized on the tokens' grid; see `resizing.transfer`.

        Args:
            labels: class names to tell apart. Unless they are known to be those of the weights,
                the head starts afresh.
            **overrides: arguments of the model, for example `input_shape=(160, 160, 3)`.

        Returns:
            `(model, transfer)`: a compiled `keras.Model`, and a `Transfer` that tells what became
            of each weight.

        Raises:
            ValueError: the weights do not fit the preset with these arguments. One line.
        """
        arguments = {**_arguments(self.model), **overrides}
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
                f"{self.origin}: takes images of {self.model.input_shape[-1]} channels; images of "
                f"shape {shape} were asked for."
            )
        model = build(self.preset, **arguments)
        known = labels is None or tuple(labels) == self.labels
        try:
            moved = transfer(self.model, model, head=known and not self.headless)
        except ValueError as error:
            raise ValueError(f"{self.origin}: {error}") from None
        return model, moved

    def classifier(self):
        """Returns an `inference.Classifier` of these weights.

        Raises:
            ValueError: the source has no head.
        """
        if self.headless:
            raise ValueError(
                f"{self.origin}: has no head to classify with; train one with "
                "apps/train.py --weights."
            )
        card = {**self.preparation, "labels": self.labels}
        return inference.from_keras(self.model, Path(self.origin), card)

    def save(self, path):
        """Writes a `.keras` file that carries the class names and the preparation.

        Raises:
            ValueError: the source has no head.
        """
        self._refuse_headless()
        model = in_float32(self.model)
        with atomic_write(path) as temporary:
            model.save(temporary)
            facts = {"preset": self.preset, **self.preparation}
            write_card(temporary, model, self.labels, facts)

    def save_published(self, path):
        """Writes a `.safetensors` file under timm's names and a config.json beside it.

        `timm.create_model("local-dir:FOLDER", pretrained=True)` reads both where the file is named
        model.safetensors and timm knows the architecture; `load` reads both always.

        Raises:
            ValueError: a model of a kind that nobody publishes, one that is not the preset as it
                stands, so that nobody could load it, or one without a head.
        """
        self._refuse_headless()
        height, width, channels = self.model.input_shape[1:]
        ours = _arguments(self.model)
        if "patch_window" in ours:
            raise ValueError(f"{self.origin}: published models have no patch_window.")
        sizes = {"input_shape": ours["input_shape"], "classes": ours["classes"]}
        if _shapes(build(self.preset, **sizes)) != _shapes(self.model):
            raise ValueError(
                f"{self.origin}: is not {self.preset} as it stands in the presets but of other "
                "sizes, which a published file could not tell."
            )
        arrays = to_arrays(self.model)
        described = {
            "input_size": [channels, height, width],
            "interpolation": self.preparation.get("interpolation", "bicubic"),
            "crop_pct": self.preparation.get("crop", 1.0),
            "mean": ours["mean"],
            "std": ours["std"],
            "num_classes": ours["classes"],
            "fixed_input_size": True,
            "first_conv": "stem.proj" if _FIRST in arrays else "patch_embed.proj",
            "classifier": ["head", "head_dist"] if "head_dist.bias" in arrays else "head",
        }
        theirs = {preset: name for name, preset in ARCHITECTURES.items()}
        config = {
            "architecture": theirs.get(self.preset, self.preset),
            "num_classes": ours["classes"],
            "pretrained_cfg": described,
        }
        config |= {"label_names": list(self.labels)} if self.labels else {}
        write_checkpoint(path, arrays, config)

    def _refuse_headless(self):
        if self.headless:
            raise ValueError(
                f"{self.origin}: has no head; train one with apps/train.py --weights first."
            )


def load(source, preset=None):
    """Loads weights with all that belongs to them.

    Args:
        source: a name on the Hugging Face hub, `"hf-hub:timm/gmlp_s16_224.ra3_in1k"`; a file of
            published weights (see `checkpoints.read_checkpoint`); a `.keras` file of ours or the
            folder of a run.
        preset: a key of `PRESETS`. Defaults to what the source says of itself; a bare file
            of weights says nothing.

    Returns:
        A `Pretrained`.

    Raises:
        ValueError: no such source, a damaged one, or weights of another architecture or size. One
            line.
    """
    return _published(source, preset) if is_published(source) else _ours(source, preset)


def imagenet_labels():
    """The names of ImageNet's 1000 classes in their usual order, from WordNet."""
    return tuple(Path(__file__).with_name("imagenet_classes.txt").read_text().splitlines())


def _published(source, preset):
    checkpoint = read_checkpoint(source)
    config = checkpoint.config
    stated = ARCHITECTURES.get(config.architecture, config.architecture)
    preset = preset or stated
    if preset is None:
        raise ValueError(
            f"{source}: no config.json of timm's says what these weights are of; name the preset, "
            "for example gmlp_s16_224."
        )
    if stated in PRESETS and stated != preset:
        raise ValueError(
            f"{source}: config.json says that these weights are of {stated}, not {preset}. Name "
            "that preset, or move the file away from a config.json that is not its own."
        )
    family, own = _lookup(preset, source)
    arguments = {"mean": config.mean, "std": config.std, "input_shape": config.image_shape}
    arguments = {name: value for name, value in arguments.items() if value is not None}
    classes = _head_size(checkpoint.arrays) or own["classes"]
    model = build(preset, classes=classes, **arguments)
    if config.image_shape is None:
        shape = _own_shape(model, checkpoint.arrays)
        if shape != model.input_shape[1:]:
            model = build(preset, classes=classes, **{**arguments, "input_shape": shape})
    by_token = any(layer.name == "class_token" for layer in model.layers)
    if config.pool is not None and (config.pool == "token") != by_token:
        raise ValueError(
            f"{source}: config.json says that the head reads {config.pool!r}; that of {preset} "
            f"reads {'the class token' if by_token else 'the mean over tokens'}."
        )
    has_head = load_arrays(model, checkpoint.arrays, source, headless=True)
    labels = config.labels
    if labels is None or len(labels) != classes:
        labels = imagenet_labels() if classes == 1000 else None
    crop = config.crop or CROP.get(family.__name__, OTHER_CROP)
    preparation = {"crop": crop, "interpolation": config.interpolation or "bicubic"}
    labels = labels if has_head else None
    return Pretrained(model, preset, labels, preparation, str(source), headless=not has_head)


def _own_shape(model, arrays):
    """The shape of the square images that published weights are of, by their number of tokens."""
    height, width, channels = model.input_shape[1:]
    leading = len(class_tokens(model))
    at_tokens = {  # one number, or one vector, for each token: by path, its axis
        path: next(i for i, kind in enumerate(axes) if kind)
        for path, axes in token_axes(model).items()
        if axes in (("writes",), (None, "holds", None))
    }
    for link in every_link(model):
        if link.ours[0] not in at_tokens or not set(link.theirs) <= set(arrays):
            continue
        try:
            found = link.forward([arrays[name] for name in link.theirs], None)[0]
            side = math.isqrt(found.shape[at_tokens[link.ours[0]]] - leading)
        except (ValueError, IndexError):  # of another number of axes, which is refused later
            continue
        patch = height // token_grid(model)[0]
        return (side * patch, side * patch, channels)
    return (height, width, channels)


def _shapes(model):
    return {path: tuple(weight.shape) for path, weight in learned_weights(model).items()}


def _lookup(preset, source):
    try:
        return lookup(preset)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def _head_size(arrays):
    """The number of classes, by the bias of the head; `None` without one."""
    return next((len(arrays[name]) for name in ("head.bias", "head/bias") if name in arrays), None)


def _ours(source, preset):
    path = Path(source)
    if path.is_dir():
        path = model_path(path)
    if path.suffix != ".keras":
        there = "" if path.exists() else "no such folder; "
        raise ValueError(
            f"{source}: {there}expected {HUB}NAME, a file of weights ({', '.join(SUFFIXES)}), a "
            ".keras file or the folder of a run."
        )
    found = inference.load(path)
    stated = read_card(path).get("preset") or found.model.name
    if preset is None and stated not in PRESETS:
        raise ValueError(
            f"{source}: is of no preset ({stated!r}), and only those can be taken on: build the "
            "model with keras_gmlp.build or apps/train.py, or name the preset that it is."
        )
    if preset is not None and stated in PRESETS and stated != preset:
        raise ValueError(f"{source}: these weights are of {stated}, not {preset}.")
    preset = preset or stated
    _lookup(preset, source)
    labels = found.labels if found.named else None
    return Pretrained(found.model, preset, labels, found.preparation, str(source))


def _arguments(model):
    """What the model was built with of what a preset's user chooses."""
    layer = model.get_layer("normalization")
    std = 1 / (255 * np.asarray(layer.scale))
    stem = find_stem(model)
    patches = {} if stem is None else {"patch_size": stem.patch_size}
    if isinstance(stem, PatchEmbedding) and stem.patch_window > stem.patch_size:
        patches["patch_window"] = stem.patch_window
    return {
        **patches,
        "input_shape": tuple(model.input_shape[1:]),
        "classes": model.output_shape[-1],
        "mean": (-np.asarray(layer.offset) * std).tolist(),
        "std": std.tolist(),
    }


def build(preset, weights=None, **overrides):
    """Makes the model of a preset, with fresh weights or with given ones.

    Args:
        preset: a key of `PRESETS`, for example `"gmlp_n4_32"`.
        weights: to begin with, as `pretrained.load` takes them: a name on the Hugging Face hub
            (`"hf-hub:timm/gmlp_s16_224.ra3_in1k"`), a file of published weights, a `.keras` file
            or a run's folder. For another image size they are resized, for another number of
            classes the head starts afresh.
        **overrides: arguments of the model that take the place of the preset's, for example
            `classes=5` or `input_shape=(64, 64, 3)`.

    Returns:
        A compiled `keras.Model` named after the preset.

    Raises:
        ValueError: an unknown preset, an override out of its range, or weights that are not
            there, damaged, or of another architecture.
        TypeError: an override that the model does not take.
    """
    function, arguments = lookup(preset)
    if weights is not None:
        return load(weights, preset).adapt(**overrides)[0]
    return function(**{**arguments, "name": preset, **overrides})
