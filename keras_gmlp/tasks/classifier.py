"""What a loaded model of any format predicts for images."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from keras_gmlp.data.images.read_image import check_preparation, is_many, read_image, read_views
from keras_gmlp.models.saved import require_numbers
from keras_gmlp.tasks.confidence import TEMPERATURE, THRESHOLD, Confidence, read_confidence
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.tasks.task import name_classes
from keras_gmlp.utils.errors import naming_errors

# Entries of a card that are arguments of `read_image`.
PREPARATION = ("crop", "interpolation", "fit")

# Entries of a card that say what follows from the logits.
DECISION = (TEMPERATURE, THRESHOLD, "thresholds")


@dataclasses.dataclass(frozen=True)
class Classifier:
    """A loaded model that classifies images.

    Attributes:
        logits: Function from images `(batch, height, width, channels)` with values in [0, 255] to
            float32 logits `(batch, classes)`. Of a file that computes probabilities, their
            logarithms.
        image_shape: `(height, width, channels)` of its images.
        labels: Class names in the order of the logits; `"0"`, `"1"`, ... if the source has none.
        path: The file or folder.
        task: Name of its task, which says what a call returns.
        preparation: How images are cut to size, arguments of `data.images.read_image.read_image`.
        model: The `keras.Model` of a `.keras` file or of published weights, else `None`.
        named: Whether the source has class names.
        confidence: Temperature of its probabilities, which images it rejects and, of a model that
            gives any number of labels, the `thresholds` of those that apply: a `Confidence`.
        parts: Parts of an image that `classify` looks at besides the whole, `(side, across, down)`
            each: `side` is relative to the largest part of the model's aspect ratio, `across` and
            `down` are its place in the free room, from 0 to 1. The mean of the logits is the
            answer.
    """

    logits: Callable[[np.ndarray], np.ndarray]
    image_shape: tuple[int, int, int]
    labels: tuple[str, ...]
    path: Path
    task: str
    preparation: dict = dataclasses.field(default_factory=dict)
    model: Any = None
    named: bool = True
    confidence: Confidence = dataclasses.field(default_factory=Confidence)
    parts: tuple[tuple[float, float, float], ...] = ()

    def __call__(self, image, **options):
        """Returns what the task predicts for an image: usually what `classify` returns."""
        return find_task(self.task).predict(self, image, **options)

    def read(self, image: Any) -> np.ndarray:
        """Reads an image to the model's pixels; see `data.images.read_image.read_image`."""
        return read_image(image, self.image_shape, **self.preparation)

    def classify(self, image: Any, top: int = 5) -> list:
        """Returns the most probable classes of an image.

        Args:
            image: A path, the bytes of a file, a file object, a Pillow image, or a uint8 array
                `(height, width, channels)` of any size; see `data.images.read_image.read_image`. Or
                several: a list of these, or an array `(images, height, width, channels)`.
            top: Number of classes to return, at least 1.

        Returns:
            Pairs `(label, probability)`, the most probable first; of several images a list of such
            lists. A label is shown with spaces for the underscores that it has in `labels`. Of a
            model with `thresholds` each label has its own probability, and they do not sum to 1.

        Raises:
            ValueError: If an image cannot be read, `top` is below 1, or a logit is NaN.
        """
        if is_many(image):
            return [self.classify(one, top) for one in image]
        return [(row["label"], row["score"]) for row in self.answer(image, top)]

    def answer(self, image: Any, top: int = 5) -> list:
        """Returns the most probable classes of an image, and if it is known.

        Arguments and errors are those of `classify`; several images give a list of results.

        Returns:
            A list of dicts, the most probable class first: `label`, with spaces for underscores,
            `score`, its probability, and `index`, its place in `labels`; of a model that was
            calibrated to reject images also `known`, whether it takes the image for one of its
            classes, and of a model with `thresholds` `applies`, whether the label reaches its own.
        """
        if is_many(image):
            return [self.answer(one, top) for one in image]
        views = read_views(image, self.image_shape, self.parts, **self.preparation)
        logits = self.logits(views).mean(0)
        require_numbers(logits, self.path)
        return self.confidence.rank(logits, self.labels, top)

    def find_labels(self, image: Any) -> list:
        """Returns the labels of an image: those that reach their thresholds.

        Args:
            image: As for `classify`.

        Returns:
            Pairs `(label, probability)`, the most probable first; none if no label applies. Of
            several images a list of such lists.

        Raises:
            ValueError: As for `classify`, or if the model gives one label.
        """
        if self.confidence.thresholds is None:
            raise ValueError(f"{self.path}: gives one label for each image; use classify.")
        if is_many(image):
            return [self.find_labels(one) for one in image]
        rows = self.answer(image, len(self.labels))
        return [(row["label"], row["score"]) for row in rows if row["applies"]]


def make_classifier(opened):
    """Returns the `Classifier` of an opened file, as its card describes it."""
    path, card, task = opened.path, opened.card, opened.find_task()
    match (*opened.inputs.items(), *opened.outputs.values()):
        case [
            [name, [[_, int(), int(), 1 | 3] as shape, pixels]],
            [[_, int(classes)], "float32"],
        ] if pixels in opened.pixels:
            pass
        case _:
            parts = opened.inputs, opened.outputs
            taken, given = (", ".join(f"{d} {s}" for s, d in part.values()) for part in parts)
            raise ValueError(
                f"{path}: not an image classifier; expected {' or '.join(opened.pixels)} (batch, "
                "height, width, 1 or 3 channels) in and float32 (batch, classes) out; received "
                f"{taken} in and {given} out."
            )
    if opened.model is not None:
        from keras_gmlp.models.structure import require_logits

        require_logits(opened.model)
    preparation = {name: card[name] for name in PREPARATION if card.get(name) is not None}
    with naming_errors(path):
        several = task.several or card.get("thresholds") is not None
        confidence = read_confidence(card, classes * several)
        check_preparation(**preparation)
    normalized = card.get("output") == "probabilities"

    def logits(images):
        values = opened.run(**{name: images})
        # They are logits up to a constant. The least float stands for 0, which has no logarithm.
        return np.log(np.maximum(values, np.finfo(values.dtype).tiny)) if normalized else values

    return Classifier(
        logits,
        shape[1:],
        name_classes(path, card.get("labels"), classes),
        path,
        task.name,
        preparation,
        opened.model,
        bool(card.get("labels")) and card.get("named", True),
        confidence,
    )
