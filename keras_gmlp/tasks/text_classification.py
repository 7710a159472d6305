"""The task for labelled texts and pairs of texts."""

import dataclasses

import keras

from keras_gmlp.data.batches.share import take_share
from keras_gmlp.data.text.sentence_batches import TextBatches
from keras_gmlp.objectives.losses import Accuracy, CrossEntropy
from keras_gmlp.objectives.metrics import F1, MatthewsCorrelation, PredictedClasses
from keras_gmlp.tasks.task import Task
from keras_gmlp.tasks.text_task import check_length, check_longest, check_words
from keras_gmlp.utils.card import write_text_card
from keras_gmlp.utils.files import atomic_write

SHORT = (16, 32, 64)  # tokens to which batches of short texts are cut


@dataclasses.dataclass(frozen=True)
class TextClassification(Task):
    """Classifies the texts, or pairs of texts, of a `TokenizedText`.

    Attributes:
        length: Tokens in a text, special ones included. Longer texts lose their end.
        label_smoothing: Share of probability spread over all classes, in [0, 1).
    """

    length: int = 64
    label_smoothing: float = 0.0

    name = "text_classification"
    headline = "accuracy"
    model_card = True
    unit = "texts"
    endless = True

    def __post_init__(self):
        check_length(self)
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(f"label_smoothing must be in [0, 1); received {self.label_smoothing}.")

    def loss(self, training=True):
        return CrossEntropy(self.label_smoothing if training else 0.0)

    def metrics(self):
        return [Accuracy()]

    def check_fit(self, model, data):
        check_words(model, data)
        check_longest(model, self.length)
        if model.output_shape[-1] != len(data.labels):
            raise ValueError(
                f"The model has {model.output_shape[-1]} classes; {data.name} has "
                f"{len(data.labels)}. Build it with text_classifier(..., {len(data.labels)})."
            )

    def size(self, data):
        return len(data.train)

    def training_batches(self, data, batch_size, position):
        ids, labels = data.encode("train", self.length)
        order = position.seed, position.count_steps(len(ids) // batch_size)
        # Keras on TensorFlow requires batches of one shape.
        lengths = None if keras.backend.backend() == "tensorflow" else SHORT
        batches = TextBatches(ids, labels, batch_size, *order, lengths)
        return take_share(batches, position.share)

    def evaluation_batches(self, data, split="test", samples=-1):
        ids, labels = data.encode(split, self.length)
        end = len(ids) if samples < 0 else samples
        return TextBatches(ids[:end], labels[:end], 256)

    def describe_data(self, data):
        return {
            "data": data.name,
            "tokenizer": data.tokenizer.hash,
            "labels": list(data.labels),
            "pairs": data.pairs,
        }

    def write_card(self, path, model, data, metadata):
        own = {"length": self.length, "pairs": data.pairs}
        write_text_card(path, self.name, data.tokenizer, data.labels, {**metadata, **own})

    def write_files(self, data, directory):
        data.tokenizer.save(directory / "tokenizer.json")
        with atomic_write(directory / "labels.txt") as temporary:
            temporary.write_text("\n".join(data.labels) + "\n", "utf-8")

    def measure(self, model, data):
        """Returns the scores on the test texts; F1 is that of class 1, or the mean of all.

        `test_predicted_classes` is 1 if the model predicts one class alone.
        """
        classes = len(data.labels)
        scores = [
            Accuracy(),
            MatthewsCorrelation(classes),
            PredictedClasses(classes),
            F1(classes, positive=1 if classes == 2 else None),
        ]
        model.compile("sgd", loss=self.loss(training=False), metrics=scores)
        values = self.evaluate(model, data)
        values["predicted_classes"] = int(values["predicted_classes"])
        return {f"test_{name}": value for name, value in values.items()}
