"""Training to find answers in texts."""

import dataclasses

from keras_gmlp.data.batches.share import take_share
from keras_gmlp.data.text.sentence_batches import TextBatches
from keras_gmlp.data.text.squad_answers import best_answers, squad_scores
from keras_gmlp.objectives.losses import Accuracy, CrossEntropy
from keras_gmlp.tasks.task import Task
from keras_gmlp.tasks.text_task import check_length, check_longest, check_words
from keras_gmlp.utils.card import write_text_card


@dataclasses.dataclass(frozen=True)
class SpanAnswering(Task):
    """Finds the answers of a `TokenizedQuestions` in their texts.

    Attributes:
        length: Tokens in a window: the question and a part of the text.
        stride: Tokens from one window of a text to the next, at most.
    """

    length: int = 384
    stride: int = 128

    name = "question_answering"
    headline = "accuracy"
    model_card = True
    unit = "windows"
    endless = True

    def __post_init__(self):
        check_length(self)
        if type(self.stride) is not int or self.stride < 1:
            raise ValueError(f"stride must be a positive integer; received {self.stride!r}.")

    def loss(self, training=True):
        return CrossEntropy()

    def metrics(self):
        return [Accuracy()]

    def check_fit(self, model, data):
        check_words(model, data)
        check_longest(model, self.length)
        if not data.train:
            raise ValueError(f"{data.name} has no training questions; expected some, as in squad.")

    def size(self, data):
        return len(self._features(data, "train"))

    def training_batches(self, data, batch_size, position):
        features = self._features(data, "train")
        order = position.seed, position.count_steps(len(features) // batch_size)
        batches = TextBatches(features.token_ids, features.targets, batch_size, *order)
        return take_share(batches, position.share)

    def evaluation_batches(self, data, split="test", samples=-1):
        features = self._features(data, split)
        end = len(features) if samples < 0 else samples
        return TextBatches(features.token_ids[:end], features.targets[:end], 64)

    def validation_batches(self, data):
        return self.evaluation_batches(data, samples=1024)

    def describe_data(self, data):
        return {"data": data.name, "tokenizer": data.tokenizer.hash}

    def curves(self):
        return ("accuracy", "first and last tokens right (%)", 100), ("loss", "cross-entropy", 1)

    def write_card(self, path, model, data, metadata):
        write_text_card(path, self.name, data.tokenizer, (), {**metadata, "length": self.length})

    def write_files(self, data, directory):
        data.tokenizer.save(directory / "tokenizer.json")

    def measure(self, model, data):
        """Returns SQuAD's exact match and F1 on the test questions, in percent."""
        batches = self.evaluation_batches(data)
        logits = model.predict(batches, verbose=0)
        loss = model.evaluate(batches, verbose=0, return_dict=True)["loss"]
        features = self._features(data, "test")
        found = best_answers(data.test, features, logits[:, 0], logits[:, 1])
        # Sets with questions that have no answer compare the best answer with none.
        threshold = 0.0 if data.questions.unanswerable else None
        scores = squad_scores(data.test, [prediction.answer(threshold) for prediction in found])
        scores = {f"test_{name}": round(value, 4) for name, value in scores.items()}
        return {**scores, "test_loss": round(float(loss), 6)}

    def _features(self, data, split):
        return data.features(split, self.length, self.stride)
