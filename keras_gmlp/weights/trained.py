"""A model with trained weights: adapts it to other images and classes, and saves it."""

import dataclasses
from pathlib import Path

import keras
import numpy as np

from keras_gmlp.inference import images as inference
from keras_gmlp.layers import PatchEmbedding
from keras_gmlp.models import presets
from keras_gmlp.models.precision import in_float32
from keras_gmlp.models.structure import find_stem, find_zooms, learned_weights
from keras_gmlp.utils.card import write_card
from keras_gmlp.utils.errors import naming_errors
from keras_gmlp.utils.files import atomic_write
from keras_gmlp.weights.conversion import to_arrays
from keras_gmlp.weights.files import write_checkpoint
from keras_gmlp.weights.names import ARCHITECTURES
from keras_gmlp.weights.resizing import transfer

_FIRST = "stem.proj.weight"  # timm's name of the first convolution in the models of MLPs


@dataclasses.dataclass(frozen=True)
class Pretrained:
    """A model with trained weights, and the metadata that belongs to them.

    Attributes:
        model: The `keras.Model`.
        preset: Its name in `PRESETS`.
        labels: Class names in the order of the logits, or `None` if the source has none.
        preparation: How images are cut to size, arguments of `data.images.read_image.read_image`.
        origin: Where the weights come from.
        headless: Whether the source has no head, so that the head of the model is untrained.
        arguments: Keyword arguments with which `build(preset, **arguments)` rebuilds the model.
            `None` reads them from the structure of the model.
        decision: What follows from the logits, entries of the card: the thresholds of a model that
            gives several labels, temperature and energy threshold of a calibrated one.
    """

    model: keras.Model
    preset: str
    labels: tuple[str, ...] | None
    preparation: dict
    origin: str
    headless: bool = False
    arguments: dict | None = None
    decision: dict = dataclasses.field(default_factory=dict)

    def build_arguments(self, labels=None, **overrides):
        """Returns the arguments of `build` for another image size or other classes.

        Args:
            labels: New class names. Defaults to the present classes.
            **overrides: Arguments of the model, for example `input_shape=(160, 160, 3)`.

        Raises:
            ValueError: If the images have another number of channels.
        """
        own = read_arguments(self.model) if self.arguments is None else self.arguments
        shape, classes = self.model.input_shape[1:], self.model.output_shape[-1]
        arguments = {"input_shape": shape, "classes": classes, **own, **overrides}
        if labels is not None:
            arguments["classes"] = len(labels)
        shape = tuple(arguments["input_shape"])
        channels = self.model.input_shape[-1]
        if shape[-1] != channels:
            raise ValueError(
                f"{self.origin}: takes images of {channels} channels; received input_shape={shape}."
            )
        return {**arguments, "input_shape": shape}

    def adapt(self, labels=None, **overrides):
        """Rebuilds the preset for another image size or other classes, and copies the weights.

        Weights over tokens are resized on the grid of the tokens; see `weights.transfer`.

        Args:
            labels: New class names. The head keeps its weights only if these are the names that
                the weights were trained on.
            **overrides: Arguments of the model, for example `input_shape=(160, 160, 3)`.

        Returns:
            `(model, report)`: a compiled `keras.Model`, and the `TransferReport` of its weights.

        Raises:
            ValueError: If the weights do not fit the preset with these arguments. One line.

        Example:
            >>> from keras_gmlp.weights import load
            >>> source = load("gmlp_n4_32-cifar10")
            >>> model, report = source.adapt(labels=("cat", "dog"))
            >>> report.fresh
            ('head/kernel', 'head/bias')
        """
        arguments = self.build_arguments(labels, **overrides)
        try:
            model = presets.build(self.preset, **arguments)
        except TypeError as error:  # an argument that the preset's model does not take
            raise ValueError(f"{self.origin}: {error}") from None
        known = labels is None or tuple(labels) == self.labels
        with naming_errors(self.origin):
            return model, transfer(self.model, model, head=known and not self.headless)

    def classifier(self):
        """Returns a `Classifier` with these weights.

        Raises:
            ValueError: If the source has no head.
        """
        self._refuse_headless()
        card = {**self.preparation, **self.decision, "labels": self.labels}
        return inference.from_keras(self.model, Path(self.origin), card)

    def save(self, path):
        """Writes a `.keras` file whose card holds the metadata: labels, preset, arguments.

        Args:
            path: Path of the file.

        Raises:
            ValueError: If the source has no head.
        """
        self._refuse_headless()
        model = in_float32(self.model)
        metadata = {"preset": self.preset, "arguments": self.build_arguments()}
        metadata |= {**self.preparation, **self.decision}
        with atomic_write(path) as temporary:
            model.save(temporary)
            write_card(temporary, model, self.labels, metadata)

    def save_published(self, path):
        """Writes a `.safetensors` file under timm's names, and config.json next to it.

        `timm.create_model("local-dir:FOLDER", pretrained=True)` reads both if the file is named
        model.safetensors and timm has the architecture. `load` always reads both.

        Args:
            path: Path of the `.safetensors` file.

        Raises:
            ValueError: If no table of published names covers the model, if the model differs from
                its preset, gives several labels or reads images with another fit than `"crop"`,
                which a published file cannot express, or if it has no head.
        """
        self._refuse_headless()
        fit = self.preparation.get("fit", "crop")
        height, width, channels = self.model.input_shape[1:]
        actual = read_arguments(self.model)
        reasons = {
            "gives several labels for an image": "thresholds" in self.decision,
            f"reads images with the fit {fit}": fit != "crop",
            "has zooms": "zooms" in actual,
        }
        reason = next((reason for reason, applies in reasons.items() if applies), None)
        sizes = {"input_shape": actual["input_shape"], "classes": actual["classes"]}
        if not reason and _shapes(presets.build(self.preset, **sizes)) != _shapes(self.model):
            reason = f"differs from preset {self.preset} in its sizes"
        if reason:
            raise ValueError(
                f"{self.origin}: {reason}, which a published file cannot hold. Give a folder or a "
                ".keras file to write."
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
