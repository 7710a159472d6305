"""Models that begin with weights: published ones, or those of a model of ours."""

import dataclasses
from pathlib import Path

import keras
import numpy as np

from keras_gmlp import inference, presets
from keras_gmlp.cards import write_card
from keras_gmlp.checkpoints import HUB, SUFFIXES, read_checkpoint, write_checkpoint
from keras_gmlp.conversion import load_arrays, to_arrays
from keras_gmlp.files import replacing
from keras_gmlp.images import INTERPOLATIONS
from keras_gmlp.layers import PatchEmbedding
from keras_gmlp.published_names import ARCHITECTURES
from keras_gmlp.resizing import transfer

# The part of a picture that published weights were tested on, where no config.json says it.
CROP = {"ResMLP": 0.9, "ViT": 0.9}  # by the family; of the others:
OTHER_CROP = 0.875


@dataclasses.dataclass(frozen=True)
class Pretrained:
    """Weights in a model of their own size, and what belongs to them.

    Attributes:
        model: the `keras.Model`.
        preset: its name in `presets.PRESETS`.
        labels: class names in the order of the logits.
        preparation: how pictures are cut to size, arguments of `images.read_image`.
        origin: where the weights came from.
    """

    model: keras.Model
    preset: str
    labels: tuple[str, ...]
    preparation: dict
    origin: str

    def adapt(self, labels=None, **overrides):
        """Builds the preset anew for another image or other classes, and moves the weights there.

        Weights over tokens are resized on the tokens' grid; see `resizing.transfer`.

        Args:
            labels: class names to tell apart. Where they are not those of the weights, the head
                starts afresh.
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
        shape = tuple(arguments["input_shape"])
        if shape[-1:] != self.model.input_shape[-1:]:
            raise ValueError(
                f"{self.origin}: takes images of {self.model.input_shape[-1]} channels; images of "
                f"shape {shape} were asked for."
            )
        model = presets.build(self.preset, **arguments)
        try:
            moved = transfer(self.model, model, head=labels is None or tuple(labels) == self.labels)
        except ValueError as error:
            raise ValueError(f"{self.origin}: {error}") from None
        return model, moved

    def save(self, path):
        """Writes a `.keras` file that carries the class names and the preparation."""
        with replacing(path) as temporary:
            self.model.save(temporary)
            shape = list(self.model.input_shape[1:])
            facts = {"preset": self.preset, "image_shape": shape, "pixels": [0, 255]}
            write_card(temporary, self.labels, {**facts, **self.preparation})

    def save_published(self, path):
        """Writes a `.safetensors` file under timm's names and a config.json beside it.

        timm reads both with `timm.create_model("local-dir:FOLDER")` where the file is named
        model.safetensors and timm knows the architecture; `load` reads both always.

        Raises:
            ValueError: a family without published weights.
        """
        height, width, channels = self.model.input_shape[1:]
        ours = _arguments(self.model)
        described = {
            "input_size": [channels, height, width],
            "interpolation": self.preparation.get("interpolation", "bicubic"),
            "crop_pct": self.preparation.get("crop", 1.0),
            "mean": ours["mean"],
            "std": ours["std"],
            "num_classes": ours["classes"],
        }
        theirs = {preset: name for name, preset in ARCHITECTURES.items()}
        config = {
            "architecture": theirs.get(self.preset, self.preset),
            "num_classes": ours["classes"],
            "pretrained_cfg": described,
            "label_names": list(self.labels),
        }
        write_checkpoint(path, to_arrays(self.model), config)


def load(source, preset=None):
    """Loads weights with all that belongs to them.

    Args:
        source: a name on the Hugging Face hub, `"hf-hub:timm/gmlp_s16_224.ra3_in1k"`; a file of
            published weights (see `checkpoints.read_checkpoint`); a `.keras` file of ours or the
            folder of a run.
        preset: a key of `presets.PRESETS`. Defaults to what the source says of itself; a bare file
            of weights says nothing.

    Returns:
        A `Pretrained`.

    Raises:
        ValueError: no such source, a damaged one, or weights of another architecture or size. One
            line.
    """
    published = str(source).startswith(HUB) or Path(source).suffix in SUFFIXES
    return _published(source, preset) if published else _ours(source, preset)


def imagenet_labels():
    """The names of ImageNet's 1000 classes in their usual order, from WordNet."""
    return tuple(Path(__file__).with_name("imagenet_classes.txt").read_text().splitlines())


def _published(source, preset):
    checkpoint = read_checkpoint(source)
    architecture = checkpoint.config.get("architecture")
    preset = preset or ARCHITECTURES.get(architecture, architecture)
    if preset is None:
        raise ValueError(
            f"{source}: no config.json says what these weights are of; name the preset, for "
            "example gmlp_s16_224."
        )
    try:
        family, own = presets.lookup(preset)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    described = checkpoint.config.get("pretrained_cfg", {})
    interpolation = described.get("interpolation", "bicubic")
    if interpolation not in INTERPOLATIONS:
        raise ValueError(
            f"{source}: config.json asks for {interpolation!r} interpolation; there are: "
            f"{', '.join(INTERPOLATIONS)}."
        )
    arguments = {key: described[key] for key in ("mean", "std") if key in described}
    if "input_size" in described:
        channels, height, width = described["input_size"]
        arguments["input_shape"] = (height, width, channels)
    classes = _head_size(checkpoint.arrays) or own["classes"]
    model = presets.build(preset, classes=classes, **arguments)
    load_arrays(model, checkpoint.arrays, source)
    labels = tuple(checkpoint.config.get("label_names") or ())
    if len(labels) != classes:
        labels = imagenet_labels() if classes == 1000 else tuple(map(str, range(classes)))
    crop = described.get("crop_pct", CROP.get(family.__name__, OTHER_CROP))
    preparation = {"crop": crop, "interpolation": interpolation}
    return Pretrained(model, preset, labels, preparation, str(source))


def _head_size(arrays):
    """The number of classes, by the bias of the head; `None` without one."""
    return next((len(arrays[name]) for name in ("head.bias", "head/bias") if name in arrays), None)


def _ours(source, preset):
    path = Path(source)
    path = path / "model.keras" if path.is_dir() else path
    if path.suffix != ".keras":
        raise ValueError(
            f"{source}: expected {HUB}NAME, a file of weights ({', '.join(SUFFIXES)}), a .keras "
            "file or the folder of a run."
        )
    found = inference.load(path)
    preset = preset or found.model.name
    try:
        presets.lookup(preset)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    return Pretrained(found.model, preset, found.labels, found.preparation, str(source))


def _arguments(model):
    """What the model was built with of what a preset's user chooses."""
    layer = model.get_layer("normalization")
    std = 1 / (255 * np.asarray(layer.scale))
    stem = next((x for x in model.layers if isinstance(x, PatchEmbedding)), None)
    wider = stem is not None and stem.window > stem.patch_size
    return {
        **({"patch_window": stem.window} if wider else {}),
        "input_shape": tuple(model.input_shape[1:]),
        "classes": model.output_shape[-1],
        "mean": (-np.asarray(layer.offset) * std).tolist(),
        "std": std.tolist(),
    }
