"""Models with trained weights, published or our own: opened, adapted to other data, written."""

import dataclasses
from pathlib import Path

import keras
import numpy as np

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.inference.opening import open_keras, open_model
from keras_gmlp.layers import PatchEmbedding
from keras_gmlp.models import presets
from keras_gmlp.models.precision import in_float32
from keras_gmlp.models.presets import IMAGE_PRESETS, lookup
from keras_gmlp.models.structure import (
    class_tokens,
    find_stem,
    find_zooms,
    learned_weights,
)
from keras_gmlp.tasks.classifier import DECISION, make_classifier
from keras_gmlp.utils.card import read_card, write_card
from keras_gmlp.utils.errors import naming_errors
from keras_gmlp.utils.files import atomic_write
from keras_gmlp.utils.sources import TRAINABLE, find_model
from keras_gmlp.weights.conversion import load_arrays, to_arrays
from keras_gmlp.weights.files import read_checkpoint, write_checkpoint
from keras_gmlp.weights.names import ARCHITECTURES
from keras_gmlp.weights.resampling import transfer

# The part of an image that published weights were tested on, for files without config.json.
CROP = {"ViT": 0.9}  # by family
OTHER_CROP = 0.875

_FIRST = "stem.proj.weight"  # timm's name of the first convolution in the models of MLPs


@dataclasses.dataclass(frozen=True)
class Pretrained:
    """A model with trained weights, and the metadata that belongs to them."""

    model: keras.Model
    preset: str
    labels: tuple[str, ...] | None  # in the order of the logits, if the source has names
    preparation: dict  # how images are cut to size, arguments of `read_image`
    origin: str
    headless: bool = False  # the head of the model is untrained
    arguments: dict | None = None  # of `build`; `None` reads them from the model
    decision: dict = dataclasses.field(default_factory=dict)  # entries of the card: `DECISION`
    task: str = "image_classification"

    def build_arguments(self, labels=None, **overrides):
        """Returns the arguments of `build` for another image size or other classes."""
        own = read_arguments(self.model) if self.arguments is None else self.arguments
        shape, classes = self.model.input_shape[1:], self.model.output_shape[-1]
        arguments = {"input_shape": shape, "classes": classes, **own, **overrides}
        if labels is not None:
            arguments["classes"] = len(labels)
        return {**arguments, "input_shape": tuple(arguments["input_shape"])}

    def adapt(self, labels=None, **overrides):
        """Returns a model for another size or other classes with these weights, and the report."""
        model = presets.build(self.preset, **self.build_arguments(labels, **overrides))
        known = labels is None or tuple(labels) == self.labels
        with naming_errors(self.origin):
            return model, transfer(self.model, model, head=known and not self.headless)

    def classifier(self):
        """Returns a `Classifier` with these weights."""
        self._refuse_headless()
        card = {"task": self.task, **self.preparation, **self.decision, "labels": self.labels}
        return make_classifier(open_keras(self.model, Path(self.origin), card))

    def save(self, path):
        """Writes a `.keras` file whose card holds the metadata: labels, preset, arguments."""
        self._refuse_headless()
        model = in_float32(self.model)
        metadata = {"task": self.task, "preset": self.preset, "arguments": self.build_arguments()}
        metadata |= {**self.preparation, **self.decision}
        with atomic_write(path) as temporary:
            model.save(temporary)
            write_card(temporary, model, self.labels, metadata)

    def save_published(self, path):
        """Writes a `.safetensors` file under timm's names, and config.json next to it."""
        self._refuse_headless()
        fit, actual = self.preparation.get("fit", "crop"), read_arguments(self.model)
        height, width, channels = actual["input_shape"]
        sizes = {"input_shape": actual["input_shape"], "classes": actual["classes"]}
        as_preset = _shapes(presets.build(self.preset, **sizes)) == _shapes(self.model)
        if "thresholds" in self.decision or fit != "crop" or "zooms" in actual or not as_preset:
            raise ValueError(
                f"{self.origin}: a published file cannot hold several labels for an image, zooms, "
                f"another fit than crop (received {fit}) or other sizes than those of the preset "
                f"{self.preset}. Give a folder or a .keras file to write."
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


def _shapes(model):
    return {path: tuple(weight.shape) for path, weight in learned_weights(model).items()}


def read_arguments(model):
    """Reads from the structure of a model what a user of a preset may override."""
    normalization, stem = model.get_layer("normalization"), find_stem(model)
    std = 1 / (255 * np.asarray(normalization.scale))
    patches = {} if stem is None else {"patch_size": stem.patch_size}
    if isinstance(stem, PatchEmbedding) and stem.patch_window > stem.patch_size:
        patches["patch_window"] = stem.patch_window
    zooms = find_zooms(model)
    return {
        **patches,
        **({"zooms": zooms} if zooms != (1,) else {}),
        "input_shape": tuple(model.input_shape[1:]),
        "classes": model.output_shape[-1],
        "mean": (-np.asarray(normalization.offset) * std).tolist(),
        "std": std.tolist(),
    }


def load(source, preset=None):
    """Loads a trained model, a `Pretrained`; a file without config.json requires its preset."""
    path, kind = find_model(source, TRAINABLE)
    return (_load_published if kind == "published" else _load_own)(path, source, preset)


def imagenet_labels():
    """Returns the 1000 class names of ImageNet in their usual order, from WordNet."""
    return tuple(Path(__file__).with_name("imagenet_classes.txt").read_text().splitlines())


def _load_published(path, source, preset):
    arrays, config = read_checkpoint(path)
    stated = ARCHITECTURES.get(config.architecture, config.architecture)
    preset = _choose_preset(source, preset, stated)
    family, defaults = lookup(preset)
    if config.num_heads not in (None, defaults.get("num_heads")):
        raise ValueError(
            f"{source}: config.json has num_heads {config.num_heads}; {preset} has "
            f"{defaults.get('num_heads', 'none')}."
        )
    biases = [arrays[name] for name in ("head.bias", "head/bias") if name in arrays]
    classes = len(biases[0]) if biases else defaults["classes"]
    arguments = {**config.arguments, "classes": classes}
    model = presets.build(preset, **arguments)
    by_token = bool(class_tokens(model))
    if config.pool is not None and (config.pool == "token") != by_token:
        raise ValueError(
            f"{source}: config.json says that the head reads {config.pool!r}, unlike {preset}."
        )
    has_head = load_arrays(model, arrays, source)
    labels = config.labels
    if labels is None or len(labels) != classes:
        labels = imagenet_labels() if classes == 1000 else None
    usual = {"crop": CROP.get(family, OTHER_CROP), "interpolation": "bicubic"}
    preparation = {**usual, **config.preparation}
    labels = labels if has_head else None
    return Pretrained(model, preset, labels, preparation, str(source), not has_head, arguments)


def _choose_preset(source, given, stated):
    """Returns the name of the preset of weights: the one that is given, or that they state."""
    if given and stated in IMAGE_PRESETS and stated != given:
        raise ValueError(f"{source}: holds weights of {stated}; received preset {given}.")
    if not (given or stated):
        raise ValueError(f"{source}: no config.json of timm; name the preset of the weights.")
    with naming_errors(source):
        lookup(given or stated)
    return given or stated


def _load_own(path, source, preset):
    classifier, card = make_classifier(open_model(path)), read_card(path)
    stated = card.get("preset") or classifier.model.name
    return Pretrained(
        classifier.model,
        _choose_preset(source, preset, stated),
        classifier.labels if classifier.named else None,
        classifier.preparation,
        str(source),
        arguments=card.get("arguments"),
        decision={name: card[name] for name in DECISION if name in card},
        task=classifier.task,
    )


def build(
    preset: str, weights: str | Path | None = None, tokenizer: Tokenizer | None = None, **overrides
) -> keras.Model:
    """Builds the model of a preset, with fresh weights or with trained ones.

    Args:
        preset: A key of `PRESETS`, for example `"gmlp_n4_32"`, or `"gmlp_nano"` for texts.
        weights: A name on the Hugging Face hub (`"hf://timm/gmlp_s16_224.ra3_in1k"`), a file of
            published weights or a folder with model.safetensors, as in the hub's cache, a `.keras`
            file, the folder of a run or the name of an included model. They are resized to another
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
        return load(weights, preset).adapt(**overrides)[0]
    return presets.build(preset, tokenizer, **overrides)
