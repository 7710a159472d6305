"""Labelled texts, or questions, with the tokenizer that encodes them."""

import dataclasses
import functools

from keras_gmlp.data.text.sentence_batches import encode
from keras_gmlp.data.text.sentences import TextData
from keras_gmlp.data.text.squad import SquadData
from keras_gmlp.data.text.squad_features import span_features
from keras_gmlp.data.text.tokenizer import Tokenizer


@dataclasses.dataclass(frozen=True, eq=False)
class TokenizedText:
    """A `TextData` with a `Tokenizer`; each split is encoded once.

    Attributes:
        texts: `TextData`.
        tokenizer: `Tokenizer`.
    """

    texts: TextData
    tokenizer: Tokenizer

    @property
    def name(self):
        return self.texts.name

    @property
    def labels(self):
        return self.texts.labels

    @property
    def pairs(self):
        return self.texts.pairs

    @property
    def train(self):
        return self.texts.train

    @property
    def test(self):
        return self.texts.test

    @property
    def validation(self):
        return self.texts.validation

    def encode(self, split, length):
        """Returns the token ids, int32 `(texts, length)`, and the class indices of a split."""
        return self._encoded(split, length), getattr(self.texts, split).labels

    @functools.cache  # noqa: B019 (a run holds one such object)
    def _encoded(self, split, length):
        return encode(self.tokenizer, getattr(self.texts, split).texts, length)


@dataclasses.dataclass(frozen=True, eq=False)
class TokenizedQuestions:
    """A `SquadData` with a `Tokenizer`; each split is encoded once.

    Attributes:
        questions: `SquadData`.
        tokenizer: `Tokenizer`.
    """

    questions: SquadData
    tokenizer: Tokenizer

    @property
    def name(self):
        return self.questions.name

    @property
    def train(self):
        return self.questions.train

    @property
    def test(self):
        return self.questions.test

    @functools.cache  # noqa: B019 (a run holds one such object)
    def features(self, split, length, stride):
        """Returns the `SpanFeatures` of a split."""
        return span_features(getattr(self.questions, split), self.tokenizer, length, stride)
