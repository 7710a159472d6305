"""The task for images with any number of labels."""

import dataclasses
import operator
from typing import ClassVar

import numpy as np

from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.tasks.label_scores import LabelScorer
from keras_gmlp.tasks.scores import round_scores
from keras_gmlp.tasks.task import EVALUATED_SAMPLES
from keras_gmlp.utils.errors import one_line_errors, printable

# Settings that require images of one label each.
OF_ONE_LABEL = ("balance", "teacher", "fit_head")
LEFT_OUT = (operator.not_, "left out of a task of several labels")


@dataclasses.dataclass(frozen=True)
class MultiLabelClassification(ImageClassification):
    """Classification of images with any number of labels, whose `ImageData` has `label_sets`.

    The loss is the binary cross-entropy, the mean over the classes. Settings are those of
    `ImageClassification`; label smoothing moves labels towards 1/2. `balance`, `teacher` and
    `fit_head` require one label.
    """

    name = "multi_label_classification"
    headline = "mean_average_precision"
    ranges: ClassVar = {**ImageClassification.ranges, **dict.fromkeys(OF_ONE_LABEL, LEFT_OUT)}
    kind = "a model that gives any number of labels"
    method = "find_labels"
    example = '.find_labels("docs/cat.jpg")'
    limits = ("It knows the classes above. Those that reach their threshold apply.",)

    def objective(self, model, data=None):
        import keras

        from keras_gmlp.objectives.metrics import MeanAveragePrecision

        smoothing = 0.0 if data is None else self.label_smoothing
        loss = keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=smoothing)
        return loss, [MeanAveragePrecision(model.output_shape[-1])]

    def check_fit(self, model, data):
        super().check_fit(model, data)
        if data.label_sets is None:
            raise ValueError(
                f"{printable(data.name)}: images have one label each; expected several. Use the "
                "task ImageClassification."
            )

    def fits_device(self, data):
        return False

    @classmethod
    def find_truth(cls, data):
        rows = data.label_rows()
        return np.eye(len(data.labels)) if rows is None else rows

    @classmethod
    def score_logits(cls, logits, truth):
        from keras_gmlp.objectives.metrics import MeanAveragePrecision

        return round_scores({cls.headline: MeanAveragePrecision(truth.shape[1])(truth, logits)})

    @classmethod
    def make_scorer(cls, model, images, known):
        return LabelScorer(model, images.labels, images.label_rows, known)

    def write_card(self, path, model, data, metadata):
        metadata = {**metadata, "thresholds": self.find_thresholds(model, data)}
        super().write_card(path, model, data, metadata)

    def find_thresholds(self, model, data):
        """Returns the threshold of each class, chosen on images for validation or training."""
        import keras

        from keras_gmlp.objectives.metrics import choose_thresholds

        split = "train" if data.validation is None else "validation"
        batches = self.evaluation_batches(data, split, EVALUATED_SAMPLES)
        with one_line_errors():
            logits = model.predict(batches, verbose=0)
        labels = getattr(data, split).take(slice(EVALUATED_SAMPLES)).labels
        probabilities = keras.ops.convert_to_numpy(keras.ops.sigmoid(logits))
        return choose_thresholds(data.label_rows()[labels], probabilities)
