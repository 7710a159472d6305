"""Labelled texts, or questions, with the tokenizer that encodes them."""

import dataclasses
import functools

from keras_gmlp.data.text.sentence_batches import encode
from keras_gmlp.data.text.sentences import TextData
from keras_gmlp.data.text.squad import SquadData
from keras_gmlp.data.text.squad_features import span_features
from keras_gmlp.data.text.tokenizer import Tokenizer


def _those_of(field, *names):
    """Returns a property for each name, which reads it from an object in a field."""
    return (property(lambda self, n=n: getattr(getattr(self, field), n)) for n in names)


@dataclasses.dataclass(frozen=True, eq=False)
class TokenizedText:
    """A `TextData` with a `Tokenizer`; each split is encoded once.

    Attributes:
        texts: `TextData`.
        tokenizer: `Tokenizer`.
    """

    texts: TextData
    tokenizer: Tokenizer

    name, labels, pairs = _those_of("texts", "name", "labels", "pairs")
    train, test, validation = _those_of("texts", "train", "test", "validation")

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

    name, train, test = _those_of("questions", "name", "train", "test")

    @functools.cache  # noqa: B019 (a run holds one such object)
    def features(self, split, length, stride):
        """Returns the `SpanFeatures` of a split."""
        return span_features(getattr(self.questions, split), self.tokenizer, length, stride)
