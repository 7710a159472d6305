"""The task for images of one label each."""

import dataclasses
import functools
import heapq
import json
import math
import operator
from typing import ClassVar

import numpy as np

from keras_gmlp.data.batches.augmentation import Augmentation
from keras_gmlp.data.label_sets import refuse_several
from keras_gmlp.models.saved import require_numbers
from keras_gmlp.tasks.classifier import make_classifier
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.tasks.scores import ClassScorer, match_classes
from keras_gmlp.tasks.task import Task, require_classes
from keras_gmlp.utils.card import write_card
from keras_gmlp.utils.environment import accelerators, require
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.progress import ProgressBar

# An evaluation batch: pixels, and the fewest and most images. An accelerator waits for the host
# between batches.
ON_PROCESSOR, ON_ACCELERATOR = (300_000, 16, 250), (2_000_000, 250, 1_000)

WORST = 36  # errors in the gallery


@dataclasses.dataclass(frozen=True)
class ImageClassification(Task):
    """Classification of the images of an `ImageData`.

    Attributes:
        label_smoothing: Share of probability spread over all classes, in [0, 1); see
            `CrossEntropy`.
        balance: Weight of rare classes in the loss, in [0, 1]: a class counts by this power of its
            inverse number of training images. 0 counts images equally, 1 classes; the mean weight
            of the images is 1.
        augmentation: Changes to the training images; see `Augmentation`.
        teacher: Folder of a run or a `.keras` file, which answers to the augmented images; `None`
            for none. `tasks.teacher` has the loss.
        teacher_share: Weight of the teacher's logits in the loss, in [0, 1]; the labels have the
            rest.
        temperature: Divides the logits of teacher and student; above 0.
        feature_weight: Weight of the difference from the teacher's features, at least 0.
        fit_head: Inverse strength of the regularization of a logistic regression. It is
            fitted to the features of the starting weights, and training begins with its head; see
            `tasks.linear_head`. 0 for a random head.
    """

    label_smoothing: float = 0.1
    balance: float = 0.0
    augmentation: Augmentation = dataclasses.field(default_factory=Augmentation)
    teacher: str | None = None
    teacher_share: float = 0.5
    temperature: float = 1.0
    feature_weight: float = 0.0
    fit_head: float = 0.0

    name = "image_classification"
    headline = "accuracy"
    unit = "images"
    ranges: ClassVar = {
        "label_smoothing": (lambda share: 0 <= share < 1, "in [0, 1)"),
        **dict.fromkeys(("balance", "teacher_share"), (lambda x: 0 <= x <= 1, "in [0, 1]")),
        "temperature": (lambda value: value > 0, "above 0"),
        **dict.fromkeys(("feature_weight", "fit_head"), (lambda x: x >= 0, "at least 0")),
    }
    kind = "an image classifier"
    pipeline = "image-classification"
    method = "classify"
    output = "logits for {classes} classes"
    example = '("docs/cat.jpg", top=3)'
    limits: ClassVar[tuple] = (
        "It knows the classes above and no other. A calibrated model rejects pictures that show "
        "something else, but not all of them.",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.feature_weight and self.teacher is None:
            raise ValueError("feature_weight requires a teacher; received none.")

    def objective(self, model, data=None) -> tuple:
        loss, metrics = super().objective(model, data)
        if data is not None and self.balance:
            loss.class_weights = self.class_weights(data.train.labels, len(data.labels)).tolist()
        return loss, metrics

    def compile(self, model, optimizer, data=None) -> None:
        super().compile(model, optimizer, data)
        if self.fit_head:
            from keras_gmlp.tasks.linear_head import without_compiler

            without_compiler(model)

    def class_weights(self, labels, classes) -> np.ndarray:
        """Returns the weight of each class by `balance`; their mean over the images is 1."""
        counts = np.bincount(labels, minlength=classes)
        weights = np.maximum(counts, 1.0) ** -self.balance  # a fraction may lack classes
        return weights * (len(labels) / np.sum(counts * weights))

    def match(self, data):
        if getattr(data, "label_sets", None) is None or type(self) is not ImageClassification:
            return self
        settings = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return find_task("multi_label_classification")(**settings)

    def check_fit(self, model, data) -> None:
        from keras_gmlp.models.structure import require_logits

        require_logits(model)
        if tuple(model.input_shape[1:]) != tuple(data.image_shape):
            raise ValueError(
                f"The model requires images of shape {model.input_shape[1:]}; {data.name} has "
                f"{data.image_shape}. Build the model with input_shape={data.image_shape} or load "
                f"the data with image_size={tuple(model.input_shape[1:3])}."
            )
        require_classes(model, data, "classes={}")

    def training_batches(self, data, batch_size, position):
        from keras_gmlp.data.batches.host import training_batches

        return training_batches(data, batch_size, self.augmentation, position)

    def fits_device(self, data) -> bool:
        return data.train.fits_in_memory()

    def device_data(self, data, seed, epochs) -> tuple:
        import jax

        from keras_gmlp.data.batches.augmentation import WINDOW, make_augmenter, make_draw
        from keras_gmlp.data.batches.namespaces import jax_namespace
        from keras_gmlp.data.images.resized_crop import crop_and_resize

        how, (images, labels) = self.augmentation, data.train.arrays()
        change = make_augmenter(how, data.mirror, len(data.labels), jax_namespace())

        def augment(images, labels, numbers):
            if how.resized_crop:
                cut = functools.partial(crop_and_resize, scale=how.resized_crop)
                images = jax.vmap(cut)(images, numbers[:, WINDOW])
            return change(images, labels, numbers)

        draw = make_draw(how, seed, len(images), epochs)
        return (images, labels.astype("int32")), draw, augment

    def evaluation_batches(self, data, split="test", samples=-1):
        from keras_gmlp.data.batches.host import evaluation_batches

        # A processor asks the system for the memory of large tensors in each layer, which takes a
        # quarter of the time at 128 pixels.
        pixels, least, most = ON_ACCELERATOR if accelerators() else ON_PROCESSOR
        batch_size = min(most, max(least, pixels // math.prod(data.image_shape[:2])))
        getattr(data, split).keep()  # training reads all samples, if not now then later
        return evaluation_batches(data, batch_size, split, samples)

    def describe_data(self, data) -> dict:
        shape, labels = list(data.image_shape), list(data.labels)
        return {"data": data.name, "image_shape": shape, "fit": data.fit, "labels": labels}

    def write_card(self, path, model, data, metadata) -> None:
        fit = {} if data.fit == "crop" else {"fit": data.fit}
        write_card(path, model, data.labels, {"task": self.name, **metadata, **fit})

    def settings(self) -> dict:
        # Of this class without "task", because runs of all versions have the same keys.
        own = {} if self.name == ImageClassification.name else {"task": self.name}
        return {**own, **json.loads(json.dumps(dataclasses.asdict(self)))}  # tuples become lists

    @classmethod
    def wrap(cls, opened, warn=None):
        """Returns the `Classifier` of an opened file."""
        return make_classifier(opened)

    @classmethod
    def predict(cls, model, image, top=5):
        """Returns the most probable classes of an image; see `Classifier.classify`."""
        return model.classify(image, top)

    @classmethod
    def check_samples(cls, model, data) -> tuple:
        if tuple(data.labels) != tuple(model.labels):
            raise ValueError(
                f"{model.path.parent}: the classes of the model and of {data.name} differ; check "
                "it on its training data."
            )
        images, places = data.test.arrays()
        return images, cls.find_truth(data)[places]

    @classmethod
    def find_truth(cls, data) -> np.ndarray:
        """Returns what `score_logits` takes for each class, or set of labels, of the data."""
        refuse_several(data.name, data.label_sets)
        return np.arange(len(data.labels))

    @classmethod
    def load_samples(cls, models, source, split=None, limit=None) -> tuple:
        if split or limit:
            raise ValueError("split and limit are for texts; leave them out.")
        require("sklearn", "evaluation", "demo")  # which `score` imports, after the work
        known = match_classes(models, source.labels, source.name)
        unknown = [label for label in source.labels if label not in known]
        entries = {"split": source.split, "images": len(source), "unknown_classes": unknown}
        return (source, known), entries

    @classmethod
    def make_scorer(cls, model, images, known):
        """Returns what compares logits with the classes of `LabelledImages`."""
        refuse_several(images.name, images.label_rows)
        return ClassScorer(model, images.labels, known)

    @classmethod
    def score(cls, model, samples) -> tuple:
        (images, _), scorer = samples, cls.make_scorer(model, *samples)
        names, parts, worst = [], [], []
        job = f"evaluating {printable(model.path.name)}"
        for logits, pixels, indices, places in read_logits(model, images, scorer.used, job):
            parts.append(scorer.read(logits, indices))
            severities = scorer.collect(names=(), **parts[-1]).severities
            wrong = np.flatnonzero(severities)
            worst += [(severities[i], len(names) + i, pixels[i].copy()) for i in wrong]
            worst = heapq.nlargest(WORST, worst, key=operator.itemgetter(0))
            names += [images.names[place] for place in places]
        arrays = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
        errors = [(index, image) for _, index, image in worst]
        result = scorer.collect(names=tuple(names), errors=errors, **arrays)
        return result.score(), result


def read_logits(classifier, images, used, job):
    """Yields logits of images of used classes, and their pixels, class indices and places."""
    done, found = 0, False
    with ProgressBar(job, len(images)) as progress:
        for pixels, indices in images.batches(classifier):
            chosen = np.flatnonzero(used[indices])
            if len(chosen):
                kept, found = pixels[chosen], True
                logits = require_numbers(classifier.logits(kept), classifier.path)
                yield logits, kept, indices[chosen], done + chosen
            done += len(pixels)
            progress.show(done)
    if not found:
        raise ValueError(
            f"{printable(images.name)}: of the {done:,} images in --split {images.split}, none has "
            "a class that all models know; give another --split."
        )
