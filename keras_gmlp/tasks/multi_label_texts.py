"""The task for texts with any number of labels."""

import dataclasses

from keras_gmlp.tasks.label_scores import LabelScorer, SeveralLabels
from keras_gmlp.tasks.text_classification import TextClassification
from keras_gmlp.tasks.text_task import TextTask


@dataclasses.dataclass(frozen=True)
class MultiLabelTexts(SeveralLabels, TextClassification):
    """Classifies texts with any number of labels, whose `TextData` has rows of 0 and 1.

    The loss is the binary cross-entropy, the mean over the classes. Settings are those of
    `TextClassification`; label smoothing moves labels towards 1/2.
    """

    name = "multi_label_texts"
    kind = "a text classifier that gives any number of labels"
    architecture = None
    limits = (
        "It knows the classes above. Those that reach their threshold apply.",
        *TextTask.limits,
    )

    evaluate = TextTask.evaluate

    def find_rows(self, data, split, samples):
        return getattr(data, split).labels[:samples]

    @classmethod
    def make_scorer(cls, model, texts, labels, known):
        return LabelScorer(model, labels, None, known)
