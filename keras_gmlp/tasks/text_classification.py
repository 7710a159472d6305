"""The task for labelled texts and pairs of texts."""

import dataclasses
from typing import ClassVar

import numpy as np

from keras_gmlp.data.text.labelled_texts import choose_texts
from keras_gmlp.data.text.tokenizer import count_cut
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.tasks.scores import ClassScorer, match_classes, round_score
from keras_gmlp.tasks.task import CHECKED, require_classes
from keras_gmlp.tasks.text_task import TextTask, draw_places, run_in_parts
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import printable


@dataclasses.dataclass(frozen=True)
class TextClassification(TextTask):
    """Classifies the texts, or pairs of texts, of a `TextData` with a tokenizer.

    Attributes:
        length: Tokens in a text, special ones included. Longer texts lose their end.
        label_smoothing: Share of probability spread over all classes, in [0, 1).
    """

    length: int = 64
    label_smoothing: float = 0.0

    name = "text_classification"
    headline = "accuracy"
    ranges: ClassVar = {**TextTask.ranges, "label_smoothing": (lambda x: 0 <= x < 1, "in [0, 1)")}
    kind = "a text classifier"
    pipeline = "text-classification"
    method = "classify"
    architecture = "BertForSequenceClassification"
    labelled = True
    output = "logits for {classes} classes"
    limits = ("It knows the classes above and no other.", *TextTask.limits)
    cuts = (16, 32, 64)

    @classmethod
    def recipes(cls) -> dict[str, dict]:
        # From a language model to a task: few epochs at a small rate, as BERT is fine-tuned.
        recipe = {
            "epochs": 3,
            "batch_size": 32,
            "learning_rate": 3e-4,
            "warmup": 0.1,
            "weight_decay": 0.01,
            "ema": 0.0,
            "precision": "mixed_bfloat16",
            "task": cls(),
        }
        return {"finetune": recipe}

    def match(self, data):
        if not data.train.several or type(self) is not TextClassification:
            return self
        return find_task("multi_label_texts")(**dataclasses.asdict(self))

    def check_fit(self, model, data) -> None:
        super().check_fit(model, data)
        require_labels(data.name, data.train, self.several)
        require("sklearn", "fine-tuning", "demo")  # which `evaluate` imports, after the work
        require_classes(model, data, "text_classifier(..., {})")

    def evaluate(self, model, data, split="test", samples=-1, verbose=0) -> dict[str, float]:
        """Returns the scores on a split; F1 is that of class 1, or the mean of all."""
        from sklearn.metrics import f1_score

        values = super().evaluate(model, data, split, samples, verbose)
        batches = self.evaluation_batches(data, split, samples)
        predictions = model.predict(batches, verbose=0).argmax(axis=-1)
        labels = data.encode(split, self.length)[1][: len(predictions)]
        average = "binary" if len(data.labels) == 2 else "macro"
        values["f1"] = round_score(f1_score(labels, predictions, average=average, zero_division=0))
        values["matthews_correlation"] = correlate(labels, predictions)
        values["predicted_classes"] = len(np.unique(predictions))
        return values

    @classmethod
    def predict(cls, model, text, pair=None, top=None):
        """Returns the classes of a text or pair, the most probable first; see `TextModel`."""
        if isinstance(text, list | tuple):
            pairs = [None] * len(text) if pair is None else pair
            if isinstance(pairs, str):
                raise ValueError("pair must be a list, with a second text for each text.")
            return [cls.predict(model, *both, top) for both in zip(text, pairs, strict=True)]
        if model.pairs is not None and model.pairs != (pair is not None):
            takes, fix = ("pairs of texts", "give") if model.pairs else ("single texts", "omit")
            raise ValueError(
                f"{model.path} classifies {takes}; {fix} the second text (--pair, pair=...)."
            )
        for part in (text, *([] if pair is None else [pair])):
            if not part.strip():
                raise ValueError("the text is empty; expected at least a word.")
        encoding = model.encode(text, pair)
        (logits,) = model.run(token_ids=np.array([encoding.ids], "int32"))
        return model.confidence.rank(logits, model.labels, top)

    @classmethod
    def check_samples(cls, model, data) -> tuple:
        (texts, *classes), _ = cls.load_samples([model], data, "test", CHECKED)
        return texts.texts, cls.make_scorer(model, texts, *classes).find_truth(texts.labels)

    @classmethod
    def load_samples(cls, models, source, split=None, limit=None) -> tuple:
        from keras_gmlp.data.run_folder import Run  # here: it imports Pillow

        texts, labels, split = choose_texts(source, split)
        require_labels(source.name, texts, False, cls.several)
        for model in models:
            if model.pairs not in (None, texts.pairs):
                received, takes = ["pairs", "single texts"][:: 1 if texts.pairs else -1]
                raise ValueError(f"{source.name} has {received}; {model.path} classifies {takes}.")
        for model in models[1:] if split != "train" else ():
            Run(model.path).warn_of(source.name, texts.texts)
        texts = texts.take(draw_places(len(texts), limit))
        known = match_classes(models, labels, str(source.name))
        unknown = [label for label in labels if label not in known]
        entries = {"split": split, "unknown_classes": unknown}
        if not cls.several:
            places = np.flatnonzero([labels[index] in known for index in texts.labels])
            if not len(places):
                raise ValueError(
                    f"{source.name}: none of the {len(texts):,} texts has a class that models know."
                )
            texts = texts.take(places)
        return (texts, labels, known), entries

    @classmethod
    def make_scorer(cls, model, texts, labels, known):
        """Returns what compares logits with the classes of texts."""
        return ClassScorer(model, labels, known)

    @classmethod
    def read_logits(cls, model, texts) -> np.ndarray:
        """Returns the logits of texts, with a progress bar."""
        parts = run_in_parts(model, cls.encode(model, texts.texts))
        return np.concatenate([part for _, part in parts])

    @classmethod
    def score(cls, model, samples) -> tuple:
        require("sklearn", "evaluation", "demo")  # before the work
        texts, scorer = samples[0], cls.make_scorer(model, *samples)
        fields = scorer.read(cls.read_logits(model, texts), texts.labels)
        names = (text if isinstance(text, str) else "\t".join(text) for text in texts.texts)
        result = scorer.collect(names=tuple(names), **fields)
        scores = result.score("texts")
        if not cls.several:
            scores["matthews_correlation"] = correlate(result.labels, result.predictions)
        scores["cut"] = count_cut(model.tokenizer, texts.texts, model.length)
        return scores, result


def require_labels(name, texts, *allowed):
    """Raises a `ValueError` if texts have several labels, or one each, and may not."""
    if texts.several not in allowed:
        kinds = ["one label each", "any number of labels"]
        found, expected = reversed(kinds) if texts.several else kinds
        raise ValueError(f"{printable(name)}: its texts have {found}; expected {expected}.")


def correlate(labels, predictions):
    """Returns Matthews' correlation of true and predicted classes in [-1, 1], 0 for one class."""
    from sklearn.metrics import matthews_corrcoef

    if len(np.unique([labels, predictions])) == 1:  # of which scikit-learn warns
        return 0.0
    return round_score(matthews_corrcoef(labels, predictions))
