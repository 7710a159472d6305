"""The task for images with any number of labels."""

import dataclasses
import operator
from typing import ClassVar

import numpy as np

from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.tasks.label_scores import LabelScorer, SeveralLabels
from keras_gmlp.utils.errors import printable

# Settings that require images of one label each.
OF_ONE_LABEL = ("balance", "teacher", "fit_head")
LEFT_OUT = (operator.not_, "left out of a task of several labels")


@dataclasses.dataclass(frozen=True)
class MultiLabelClassification(SeveralLabels, ImageClassification):
    """Classification of images with any number of labels, whose `ImageData` has `label_sets`.

    The loss is the binary cross-entropy, the mean over the classes. Settings are those of
    `ImageClassification`; label smoothing moves labels towards 1/2. `balance`, `teacher` and
    `fit_head` require one label.
    """

    name = "multi_label_classification"
    ranges: ClassVar = {**ImageClassification.ranges, **dict.fromkeys(OF_ONE_LABEL, LEFT_OUT)}
    kind = "a model that gives any number of labels"
    method = "find_labels"
    example = '.find_labels("docs/cat.jpg")'
    limits = ("It knows the classes above. Those that reach their threshold apply.",)

    def check_fit(self, model, data) -> None:
        super().check_fit(model, data)
        if data.label_sets is None:
            raise ValueError(
                f"{printable(data.name)}: images have one label each; expected several. Use the "
                "task ImageClassification."
            )

    def fits_device(self, data) -> bool:
        return False

    def find_rows(self, data, split, samples):
        return data.label_rows()[getattr(data, split).take(slice(samples)).labels]

    @classmethod
    def find_truth(cls, data) -> np.ndarray:
        rows = data.label_rows()
        return np.eye(len(data.labels)) if rows is None else rows

    @classmethod
    def make_scorer(cls, model, images, known):
        return LabelScorer(model, images.labels, images.label_rows, known)
