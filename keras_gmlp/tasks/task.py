"""The base class of tasks: a new kind of data, such as text, is a new `Task`."""

import dataclasses
import warnings
from typing import ClassVar

import numpy as np

from keras_gmlp.tasks.registry import register
from keras_gmlp.tasks.scores import round_scores
from keras_gmlp.utils.errors import check_ranges, one_line_errors
from keras_gmlp.utils.files import atomic_write

EVALUATED_SAMPLES = 10_000  # training samples that the final metrics are measured on, at most
CHECKED = 1000  # samples that exported text models are checked with, at most


@dataclasses.dataclass(frozen=True)
class Task:
    """What a model is trained for, apart from how it is optimized; the base class of all tasks.

    A new task is a frozen dataclass whose fields are its settings: a subclass of `TextTask` or of
    `ImageClassification`, which know their data. It sets the class attributes and writes

    - `objective`: what training minimizes and measures;
    - `predict`: what a user gets from a loaded model for a sample;
    - `score_logits`: the scores in the check of an exported file, if they are not the accuracy;
    - `load_samples` and `score`, if `apps/evaluate.py` is to score its saved models;
    - `encode`, if samples become other arrays than those of the class above.

    A new kind of data also requires `check_fit`, `describe_data`, and what feeds the model:
    `training_batches` from a place on, without end, and `evaluation_batches` of any split, once.

    Attributes:
        name: Name of the task in `recipe.json` and in cards.
        headline: Metric that curves, tables and `metrics.json` report.
        unit: Plural of what a training set consists of, for example `"images"`.
        unit_size: Number of them in a sample.
        ranges: Tests of settings by name, and what is expected: pairs, for `check_ranges`.
        domain: `"images"` or `"texts"`, what a saved model takes.
        kind: What a saved model is, for errors and its card, such as `"a text classifier"`.
        pipeline: Its name on the Hugging Face hub.
        method: The method of a loaded model that calls `predict`.
        inputs: How many numbers each input of a text model takes, a dict by name; `None` for as
            many as a text has tokens.
        logits_rank: Number of axes of its logits; identifies models without a card.
        several: Whether a sample has any number of labels; see `tasks.label_scores`.
        labelled: Whether saved models are scored on labelled samples, of which a user chooses
            splits and columns.
        output: What the model returns, for its card; a format that takes entries of `recipe.json`
            and `classes`, their number.
        example: How the card calls the loaded model.
        limits: What the card warns of.
    """

    name: ClassVar[str | None] = None
    headline: ClassVar[str | None] = None
    unit = "samples"
    unit_size = 1
    ranges: ClassVar[dict] = {}
    measured: ClassVar[tuple] = ("test", "train")  # splits of the final metrics, and "validation"

    # What follows describes a saved model of the task to whatever opens, exports, tests or
    # describes it. It needs no settings, hence class attributes and class methods, and imports
    # Keras inside methods only, because a `.tflite` file opens without Keras.
    domain = "images"
    kind = "a model"
    pipeline = None
    method = "__call__"
    inputs: ClassVar[dict] = {"image": None}
    logits_rank = 2
    several = False
    labelled = False
    output = "logits"
    example = "(sample)"
    limits: ClassVar[tuple] = ()

    def __post_init__(self):
        check_ranges(self, self.ranges)

    def __init_subclass__(cls, **options) -> None:
        super().__init_subclass__(**options)
        if "name" in cls.__dict__:
            register(cls)

    @classmethod
    def wrap(cls, opened, warn=warnings.warn):
        """Returns the model that a user calls for an `Opened` file; see `keras_gmlp.load`."""
        raise NotImplementedError

    @classmethod
    def predict(cls, model, *sample, **options):
        """Returns what a loaded model predicts for a sample, or for several."""
        raise NotImplementedError

    @classmethod
    def check_samples(cls, model, data) -> tuple:
        """Returns samples to check exported files with, and their truth.

        Args:
            model: What `wrap` returned for the Keras model.
            data: An `ImageData`; of texts a `data.text.labelled_texts.TextSource`, whose truth are
                class indices or `None`.
        """
        raise NotImplementedError

    @classmethod
    def encode(cls, model, samples) -> dict[str, np.ndarray]:
        """Returns the arrays that `model.run` takes for samples, a dict by name of the input."""
        raise NotImplementedError

    @classmethod
    def score_logits(cls, logits, truth) -> dict[str, float]:
        """Returns the scores of logits in the check of an exported file, a dict."""
        return round_scores({"accuracy": np.mean(logits.argmax(-1) == truth)})

    @classmethod
    def load_samples(cls, models, source, split=None, limit=None) -> tuple:
        """Returns labelled samples that loaded models are scored on.

        Args:
            models: What `wrap` returned, a list; they share the samples.
            source: The data: of images `evaluation.labelled.LabelledImages`, which name the split,
                of texts a `data.text.labelled_texts.TextSource`.
            split: Name of the split of texts; `None` for the task's usual one.
            limit: Number of texts, drawn with a fixed seed; `None` for all.

        Returns:
            `(samples, entries)`: what `score` takes, and entries of the report, such as `split`.
        """
        raise NotImplementedError

    @classmethod
    def score(cls, model, samples) -> tuple:
        """Returns the scores of a loaded model, a dict, and its predictions or `None`.

        Predictions are `tasks.scores.Predictions`.
        """
        raise NotImplementedError

    def objective(self, model, data=None) -> tuple:
        """Returns what training minimizes and measures.

        The default is the cross-entropy of classes and their accuracy. The setting
        `label_smoothing`, if a task has it, smooths the labels in training.

        Args:
            model: The `keras.Model`.
            data: The data set to train on; `None` for the final test.

        Returns:
            A `keras.losses.Loss`, and fresh metrics, a list of `keras.metrics.Metric`, of which one
            is named `headline`.
        """
        from keras_gmlp.objectives.losses import CrossEntropy
        from keras_gmlp.objectives.metrics import Accuracy

        smoothing = 0.0 if data is None else getattr(self, "label_smoothing", 0.0)
        return CrossEntropy(smoothing), [Accuracy()]

    def match(self, data):
        """Returns the task for the data: this one, or another with its settings."""
        return self

    def check_fit(self, model, data) -> None:
        """Raises a `ValueError` if the model does not fit the data."""

    def samples_per_epoch(self, data) -> int:
        """Returns the number of training samples in an epoch."""
        return len(data.train)

    def training_batches(self, data, batch_size, position):
        """Returns the training batches; one iteration is one epoch.

        They begin at the position: its `seed`, the `epoch` and `step` that are done, `epochs` in
        all, and `part`, `(index, count)` of the process. Of a `keras.utils.PyDataset` each of
        several processes takes its rows; a `tf.data.Dataset` holds only those of its part.
        """
        raise NotImplementedError

    def fits_device(self, data) -> bool:
        """Returns whether `device_data` is implemented and the data may stay on a device."""
        return False

    def device_data(self, data, seed, epochs) -> tuple:
        """Returns the training data for a device (JAX).

        Returns:
            `(arrays, draw, augment)`: arrays of the same length, with a sample at each index; a
            function from an epoch, a step in it and the step's indices to arrays of random numbers;
            and a JAX function that makes a batch of rows of the arrays and these numbers.
        """

    def evaluation_batches(self, data, split="test", samples=-1):
        """Returns batches of a split in order, of its first `samples` or (-1) of all."""
        raise NotImplementedError

    def validation_split(self, data) -> str:
        """Returns the name of the split that is tested after each epoch."""
        return "test" if getattr(data, "validation", None) is None else "validation"

    def validation_batches(self, data):
        """Returns the batches that are tested after each epoch."""
        return self.evaluation_batches(data, self.validation_split(data))

    def compile(self, model, optimizer, data=None) -> None:
        """Compiles a model with its objective on the data, or for the final test (`None`)."""
        loss, metrics = self.objective(model, data)
        model.compile(optimizer, loss=loss, weighted_metrics=metrics)

    def describe_data(self, data) -> dict:
        """Returns what `recipe.json` says about the data, a dict."""
        raise NotImplementedError

    def write_card(self, path, model, data, metadata) -> None:
        """Adds a card to a model's file; see `keras_gmlp.utils.card`. The default adds none."""

    def write_files(self, data, directory) -> None:
        """Writes what a user of the model needs next to it: its class names and its tokenizer."""
        if labels := getattr(data, "labels", ()):
            with atomic_write(directory / "labels.txt") as temporary:
                temporary.write_text("\n".join(labels) + "\n", "utf-8")
        if hasattr(data, "tokenizer"):
            data.tokenizer.save(directory / "tokenizer.json")

    def settings(self) -> dict:
        """Returns the task's settings for `recipe.json`, a dict."""
        return {"task": self.name, **dataclasses.asdict(self)}

    def evaluate(self, model, data, split="test", samples=-1, verbose=0) -> dict[str, float]:
        """Returns loss and metrics of a compiled model, a dict of numbers with six digits."""
        batches = self.evaluation_batches(data, split, samples)
        with one_line_errors():
            return round_scores(model.evaluate(batches, verbose=verbose, return_dict=True))


def name_classes(path, labels, classes):
    """Returns the names of a model's classes, by default numbers, and checks how many they are."""
    labels = tuple(labels or map(str, range(classes)))
    if len(labels) != classes:
        raise ValueError(
            f"{path}: has {classes} classes and {len(labels)} class names. Copy or export it "
            "again, or remove a labels.txt of another model."
        )
    return labels


def require_classes(model, data, build):
    """Raises a `ValueError` if a model has other classes than its data; `build` says the remedy."""
    classes, wanted = model.output_shape[-1], len(data.labels)
    if classes != wanted:
        raise ValueError(
            f"The model has {classes} classes; {data.name} has {wanted}. Build the model with "
            f"{build.format(wanted)}."
        )
