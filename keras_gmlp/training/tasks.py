"""Tasks: what a model is trained for, apart from how it is optimized.

The training loop knows a task's methods alone. A new kind of data, such as text, is a new `Task`.
"""

import dataclasses
import json

import keras
import numpy as np

from keras_gmlp.card import write_card
from keras_gmlp.data.answers import is_answers, load_answers
from keras_gmlp.data.augmentation import Augmentation, first_mirrored
from keras_gmlp.data.batch_share import WHOLE
from keras_gmlp.data.batches import (
    arrays,
    evaluation_batches,
    fits_in_memory,
    training_batches,
)
from keras_gmlp.data.device_augmentation import make_device_augmenter
from keras_gmlp.losses import Accuracy, CrossEntropy
from keras_gmlp.models.structure import require_logits
from keras_gmlp.training.curves import CURVES
from keras_gmlp.training.linear_head import without_compiler
from keras_gmlp.training.teacher import TEACHINGS, load_teacher, make_taught_class
from keras_gmlp.utils.errors import one_line_errors
from keras_gmlp.utils.files import atomic_write

EVALUATED_SAMPLES = 10_000  # training samples that the final metrics are measured on, at most


@dataclasses.dataclass(frozen=True)
class Task:
    """The loss, the metrics and the batches of a kind of training; the base class of all tasks.

    A subclass is a frozen dataclass whose fields are the task's settings. It sets the class
    attributes and implements the methods that raise `NotImplementedError` here.

    Attributes:
        name: Name of the task in `recipe.json`; files without one are image classification.
        headline: Metric that curves, tables and `metrics.json` report.
        unit: Plural of what a training set consists of, for example `"images"`.
        training_name: Name of the training samples in charts.
        unit_size: Number of them in a sample.
        weighted: Whether the metrics use the sample weights.
        endless: Whether `training_batches` have no end, so that an epoch is a number of steps.
        model_card: Whether a run gets a model card, `README.md`.
    """

    name = None
    headline = None
    unit = "samples"
    training_name = "train"
    unit_size = 1
    weighted = False
    endless = False
    model_card = False

    def loss(self, training=True):
        """Returns a `keras.losses.Loss`: for training, or (`False`) for the final test."""
        raise NotImplementedError

    def training_loss(self, data):
        """Returns the loss for training on a data set."""
        return self.loss()

    def metrics(self):
        """Returns fresh metrics, a list of `keras.metrics.Metric`; one is named `headline`."""
        raise NotImplementedError

    def check_fit(self, model, data):
        """Raises a `ValueError` if the model does not fit the data."""
        raise NotImplementedError

    def size(self, data):
        """Returns the number of training samples."""
        raise NotImplementedError

    def training_batches(
        self, data, batch_size, seed, initial_epoch=0, epochs=None, share=WHOLE, initial_step=0
    ):
        """Returns the training batches; one iteration is one epoch.

        The same seed gives the same batches, epoch for epoch; `initial_epoch` of the `epochs` are
        skipped. If several processes train, `share` describes the rows of each batch that these
        then are. If a run resumes within an epoch, the batches are the rest of that epoch, from
        `initial_step` on.
        """
        raise NotImplementedError

    def training_class(self, model):
        """Returns the class with which a model trains: `keras.Model`, or a subclass of it."""
        return keras.Model

    def fits_device(self, data):
        """Returns whether `device_data` is implemented and the data may stay on a device."""
        return False

    def device_data(self, data):
        """Returns the training data for a device (JAX).

        Returns:
            `(arrays, augment, mix_until)`: arrays of the same length, with a sample at each index;
            a function as `training.device_loop.make_device_class` takes it; and the share of the
            epochs in which mixing is active.
        """
        raise NotImplementedError

    def device_sample(self, data, arrays):
        """Returns inputs, targets and, if the task has them, weights of one training sample.

        Args:
            data: The data set.
            arrays: The arrays of `device_data`.
        """
        raise NotImplementedError

    def evaluation_batches(self, data, split="test", samples=-1):
        """Returns batches of a split in order, of its first `samples` or (-1) of all."""
        raise NotImplementedError

    def validation_split(self, data):
        """Returns the name of the split that is tested after each epoch."""
        return "test" if getattr(data, "validation", None) is None else "validation"

    def validation_batches(self, data):
        """Returns the batches that are tested after each epoch."""
        return self.evaluation_batches(data, self.validation_split(data))

    def compile(self, model, optimizer, data=None):
        """Compiles a model with the metrics of the task and its loss.

        `data` is the data set to train on; `None` for the final test.
        """
        loss = self.loss(training=False) if data is None else self.training_loss(data)
        metrics = {"weighted_metrics" if self.weighted else "metrics": self.metrics()}
        model.compile(optimizer, loss=loss, **metrics)

    def describe_data(self, data):
        """Returns what `recipe.json` says about the data, a dict."""
        raise NotImplementedError

    def curves(self):
        """Returns what `draw_curves` draws: the headline and the loss."""
        return (self.headline, self.headline, 1), ("loss", "loss", 1)

    def write_card(self, path, model, data, metadata):
        """Adds a card to a model's file; see `keras_gmlp.card`. The default adds none."""

    def write_files(self, data, directory):
        """Writes what a user of the model needs next to it, such as `labels.txt`."""

    def settings(self):
        """Returns the task's settings for `recipe.json`, a dict."""
        return {"task": self.name, **dataclasses.asdict(self)}

    def evaluate(self, model, data, split="test", samples=-1, verbose=0):
        """Returns loss and metrics of a compiled model, a dict of numbers with six digits.

        Args:
            model: Compiled `keras.Model`.
            data: Data set that fits the task.
            split: `"test"`, `"train"` or `"validation"`.
            samples: Number of samples from the beginning of the split; -1 for all.
            verbose: As in `model.evaluate`.

        Raises:
            ValueError: If a sample cannot be read.
        """
        batches = self.evaluation_batches(data, split, samples)
        with one_line_errors():
            values = model.evaluate(batches, verbose=verbose, return_dict=True)
        return {name: round(float(value), 6) for name, value in values.items()}

    def measure(self, model, data):
        """Returns the final metrics: the headline on all splits, and the test loss."""
        test = self.evaluate(model, data)
        results = {"test": test, "train": self.evaluate(model, data, "train", EVALUATED_SAMPLES)}
        if (split := self.validation_split(data)) not in results:
            results[split] = self.evaluate(model, data, split)
        found = {
            f"{name}_{self.headline}": result[self.headline] for name, result in results.items()
        }
        return {**found, "test_loss": test["loss"]}


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
        teacher: Folder of a run or a `.keras` file, which answers to the augmented images, or a
            folder of stored answers, see `data.answers`; `None` for none. `training.teacher` has
            the loss.
        teacher_share: Weight of the teacher's logits in the loss, in [0, 1]; the labels have the
            rest.
        teaching: `"soft"` for the teacher's probabilities, `"hard"` for its most probable class,
            `"token"` for that class as the label of the distillation token only, as in DeiT.
        temperature: Divides the logits of teacher and student for soft answers; above 0.
        feature_weight: Weight of the difference from the teacher's features, at least 0.
        fit_head: Inverse strength of the regularization of a logistic regression. It is
            fitted to the features of the starting weights, and training begins with its head; see
            `training.linear_head`. 0 for a random head.
    """

    label_smoothing: float = 0.1
    balance: float = 0.0
    augmentation: Augmentation = dataclasses.field(default_factory=Augmentation)
    teacher: str | None = None
    teacher_share: float = 0.5
    teaching: str = "soft"
    temperature: float = 1.0
    feature_weight: float = 0.0
    fit_head: float = 0.0

    name = "image_classification"
    headline = "accuracy"
    unit = "images"
    training_name = "train (augmented)"
    model_card = True

    def __post_init__(self):
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(f"label_smoothing must be in [0, 1); received {self.label_smoothing}.")
        if not 0 <= self.balance <= 1:
            raise ValueError(f"balance must be in [0, 1]; received {self.balance}.")
        if not 0 <= self.teacher_share <= 1:
            raise ValueError(f"teacher_share must be in [0, 1]; received {self.teacher_share}.")
        if self.teaching not in TEACHINGS:
            raise ValueError(
                f"teaching must be one of {', '.join(TEACHINGS)}; received {self.teaching!r}."
            )
        if not self.temperature > 0:
            raise ValueError(f"temperature must be above 0; received {self.temperature}.")
        if not self.feature_weight >= 0:
            raise ValueError(f"feature_weight must be at least 0; received {self.feature_weight}.")
        if self.feature_weight and self.teacher is None:
            raise ValueError("feature_weight requires a teacher; received none.")
        if not self.fit_head >= 0:
            raise ValueError(f"fit_head must not be below 0; received {self.fit_head}.")

    def loss(self, training=True):
        return CrossEntropy(self.label_smoothing if training else 0.0)

    def training_loss(self, data):
        if not self.balance:
            return self.loss()
        weights = self.class_weights(data.train.read_labels(), len(data.labels))
        return CrossEntropy(self.label_smoothing, class_weights=weights)

    def compile(self, model, optimizer, data=None):
        super().compile(model, optimizer, data)
        if self.fit_head:
            without_compiler(model)

    def class_weights(self, labels, classes):
        """Returns the weight of each class by `balance`; their mean over the images is 1."""
        counts = np.bincount(labels, minlength=classes)
        weights = np.maximum(counts, 1.0) ** -self.balance  # a fraction may lack classes
        return weights * (len(labels) / np.sum(counts * weights))

    def metrics(self):
        return [Accuracy()]

    def check_fit(self, model, data):
        require_logits(model)
        if tuple(model.input_shape[1:]) != tuple(data.image_shape):
            raise ValueError(
                f"The model requires images of shape {model.input_shape[1:]}; {data.name} has "
                f"{data.image_shape}. Build the model with input_shape={data.image_shape} or load "
                f"the data with image_size={tuple(model.input_shape[1:3])}."
            )
        if (answers := self.stored_answers()) is not None:
            answers.require_match(data)
        if model.output_shape[-1] != len(data.labels):
            raise ValueError(
                f"The model has {model.output_shape[-1]} classes; {data.name} has "
                f"{len(data.labels)}. Build the model with classes={len(data.labels)}."
            )

    def size(self, data):
        return len(data.train)

    def training_batches(
        self, data, batch_size, seed, initial_epoch=0, epochs=None, share=WHOLE, initial_step=0
    ):
        order = seed, initial_epoch, epochs, share, initial_step
        answers = self.stored_answers()
        return training_batches(data, batch_size, self.augmentation, *order, answers=answers)

    def stored_answers(self):
        """Returns the stored `Answers` of the teacher, or `None` if it answers itself."""
        if self.teacher is None or not is_answers(self.teacher):
            return None
        return load_answers(self.teacher)

    def training_class(self, model):
        if self.teacher is None:
            return keras.Model
        answers = self.stored_answers()
        if answers is None:
            teacher = load_teacher(self.teacher, model, logits=self.teacher_share > 0)
            return make_taught_class(keras.Model, self, teacher, teacher.output_shape[1][-1])
        channels = answers.sizes.get("features")
        if self.feature_weight and channels is None:
            raise ValueError(
                f"teacher {self.teacher}: stores no features, which feature_weight requires."
            )
        return make_taught_class(keras.Model, self, channels=channels)

    def fits_device(self, data):
        return fits_in_memory(data, self.size(data))

    def device_data(self, data):
        images, labels = arrays(data, "train")
        samples, augmentation = (images, labels.astype("int32")), self.augmentation
        if (answers := self.stored_answers()) is not None:
            augmentation = answers.without_views(augmentation)
        augment = make_device_augmenter(augmentation, len(data.labels), data.mirror)
        if augmentation.alternating_flip:
            samples += (first_mirrored(len(images)),)
        if answers is not None:
            samples += tuple(answers.epoch_arrays(len(images)))
            augment = answers.device_augmenter(augment, data.image_shape[:2])
        return samples, augment, augmentation.mix_until

    def device_sample(self, data, arrays):
        return tuple(np.asarray(array[:1]) for array in arrays[:2])

    def evaluation_batches(self, data, split="test", samples=-1):
        return evaluation_batches(data, split=split, samples=samples)

    def describe_data(self, data):
        shape, labels = list(data.image_shape), list(data.labels)
        return {"data": data.name, "image_shape": shape, "fit": data.fit, "labels": labels}

    def curves(self):
        return CURVES

    def write_card(self, path, model, data, metadata):
        fit = {} if data.fit == "crop" else {"fit": data.fit}
        write_card(path, model, data.labels, {**metadata, **fit})

    def write_files(self, data, directory):
        with atomic_write(directory / "labels.txt") as temporary:
            temporary.write_text("\n".join(data.labels) + "\n", "utf-8")

    def settings(self):
        # Without "task", because runs of all versions have the same keys; tuples become lists.
        return json.loads(json.dumps(dataclasses.asdict(self)))
