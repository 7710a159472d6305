"""Fills masks, classifies texts and answers questions with a saved text model.

A `.tflite` model requires only the LiteRT runtime, NumPy and `tokenizers`. Keras and its backend
are imported only for a `.keras` file. Results have the keys of the Hugging Face pipelines.
"""

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.inference.text_opening import open_text_model, wrap_model

MASKS = 8  # places that a masked language model predicts in a call

# What a model of each task is, and the method that takes it.
TASKS = {
    "masked_lm": ("a masked language model", "fill_mask"),
    "text_classification": ("a text classifier", "classify"),
    "question_answering": ("a model for questions", "answer"),
}

PROGRAMS = {
    "fill_mask": "apps/fill_mask.py",
    "classify": "apps/classify_text.py",
    "answer": "apps/answer.py",
}


class NoMaskError(ValueError):
    """Raised for a text without `[MASK]`."""


@dataclasses.dataclass(frozen=True)
class TextModel:
    """A loaded text model.

    Attributes:
        run: Function from `token_ids`, int32 `(texts, length)`, and for a masked language model
            `mask_positions`, int32 `(texts, 8)`, to float32 logits.
        task: A key of `TASKS`; it decides which of the methods works.
        tokenizer: Its `Tokenizer`.
        length: Tokens in a text, special ones and padding included.
        labels: Class names in the order of the logits; empty for the other tasks.
        path: The file.
        pairs: Whether it classifies pairs of texts; `None` if its file does not say so.
        warn: Function that receives a line of text, when a text is too long.
        model: The `keras.Model` of a `.keras` file, else `None`.
    """

    run: Callable
    task: str
    tokenizer: Tokenizer
    length: int
    labels: tuple[str, ...]
    path: Path
    pairs: bool | None = None
    warn: Callable[[str], None] = warnings.warn
    model: object = None

    def fill_mask(self, text, top=5):
        """Returns the most probable words for each `[MASK]` in a text.

        Args:
            text: A text with `[MASK]`, in capitals, in the place of one word or more; or a list
                of texts, which gives a list of results.
            top: Number of words, at least 1.

        Returns:
            For one `[MASK]`, a list of dicts, the most probable word first: `score`, its
            probability; `token`, its id; `token_str`; `sequence`, the text with the word. For
            several, a list of such lists; each `sequence` keeps the other masks.

        Raises:
            NoMaskError: If the text has no `[MASK]`. One line.
            ValueError: If a `[MASK]` is in a part that was cut, or the model has another task. One
                line.
        """
        self.require("fill_mask")
        _check_top(top)
        if isinstance(text, list | tuple):
            return [self.fill_mask(one, top) for one in text]
        tokenizer = self.tokenizer
        encoding, whole = self._encode(text)
        (positions,) = np.nonzero(encoding.ids == tokenizer.mask_id)
        wanted = int((whole.ids == tokenizer.mask_id).sum())
        if not wanted:
            raise NoMaskError(
                "no [MASK] in the text; write it, in capitals, in the place of a word, as in "
                "'Paris is the [MASK] of France.'"
            )
        if len(positions) < wanted:
            raise ValueError(
                f"a [MASK] is after the first {self.length - 2} tokens, which the model takes; "
                "shorten the text before it."
            )
        # Each row asks for up to MASKS places; unused ones point at [CLS].
        asked = np.zeros((-(-wanted // MASKS), MASKS), "int32")
        asked.ravel()[:wanted] = positions
        rows = np.repeat(encoding.ids[None], len(asked), axis=0)
        logits = self.run(token_ids=rows, mask_positions=asked)
        scores = _softmax(logits.reshape(-1, logits.shape[-1])[:wanted])
        found = []
        for place, row in zip(positions, scores, strict=True):
            row[list(tokenizer.special_ids)] = -1  # no words
            best = np.argsort(-row, kind="stable")[: min(top, len(row) - 5)]
            start, stop = encoding.offsets[place]
            found.append([self._filled(text, start, stop, i, row[i]) for i in best])
        return found[0] if wanted == 1 else found

    def classify(self, text, pair=None, top=None):
        """Returns the classes of a text or of a pair of texts.

        Args:
            text: A text, or a list of texts, which gives a list of results.
            pair: The second text, or a list of as many, for a model that was trained on pairs.
            top: Number of classes, at least 1. Defaults to all.

        Returns:
            A list of dicts, the most probable class first: `label` and `score`, its probability.

        Raises:
            ValueError: If a text is empty, the model takes pairs and received none or the other way
                round, or it has another task. One line.
        """
        self.require("classify")
        _check_top(top)
        if isinstance(text, list | tuple):
            pairs = [None] * len(text) if pair is None else pair
            if not isinstance(pairs, list | tuple) or len(pairs) != len(text):
                raise ValueError(f"expected a list of {len(text)} second texts, one for each text.")
            return [self.classify(*both, top) for both in zip(text, pairs, strict=True)]
        if self.pairs is not None and self.pairs != (pair is not None):
            takes, fix = ("pairs of texts", "give") if self.pairs else ("single texts", "omit")
            raise ValueError(
                f"{self.path} classifies {takes}; {fix} the second text (--pair, pair=...)."
            )
        for part in (text, *([] if pair is None else [pair])):
            if not part.strip():
                raise ValueError("the text is empty; expected at least a word.")
        encoding, _ = self._encode(text, pair)
        (scores,) = _softmax(self.run(token_ids=encoding.ids[None]))
        best = np.argsort(-scores, kind="stable")[:top]
        return [{"label": self.labels[i], "score": float(scores[i])} for i in best]

    def answer(self, question, context):
        """Returns the most probable answer to a question in a text: the first of `answers`."""
        return self.answers(question, context, 1)[0]

    def answers(self, question, context, top=5, threshold=None):
        """Returns the most probable answers to a question in a text.

        A long text is read in windows that overlap by half.

        Args:
            question: A question.
            context: The text that answers it, of any length.
            top: Number of answers, 1 to 20.
            threshold: For a model that was trained on questions without an answer as well: no
                answer comes first if its score, a sum of logits, is higher than that of the best
                answer by more than the threshold. Defaults to answers alone.

        Returns:
            A list of dicts, the most probable answer first: `score`, its probability among the best
            20 and no answer; `start`, `end` and `answer`, where `context[start:end]` is the answer.
            No answer is the empty text at 0.

        Raises:
            ValueError: If the question or the text is empty, or the model has another task. One
                line.
        """
        # Imported here, so that the other tasks start faster.
        from keras_gmlp.data.text.squad import Question
        from keras_gmlp.data.text.squad_answers import best_answers
        from keras_gmlp.data.text.squad_features import span_features

        self.require("answer")
        _check_top(top)
        asked = Question(_checked(question), _checked(context))
        most = question_length(self.length)
        self._report_cut("question", len(self.tokenizer.encode(question)) - 2, most)
        features = span_features([asked], self.tokenizer, self.length, self.length // 2, most)
        logits = self.run(token_ids=features.token_ids)
        (found,) = best_answers([asked], features, logits[:, 0], logits[:, 1])
        if not found.spans:
            raise ValueError("the context has no words; expected text that answers the question.")
        scores = _softmax(np.array([*(span.score for span in found.spans), found.null_score]))
        rows = [
            {"score": float(score), "start": span.start, "end": span.end, "answer": span.text}
            for span, score in zip(found.spans, scores, strict=False)
        ]
        if threshold is not None and found.difference > threshold:
            rows.insert(0, {"score": float(scores[-1]), "start": 0, "end": 0, "answer": ""})
        return rows[:top]

    def require(self, method):
        """Raises a `ValueError` if the model has another task than a method."""
        kind, own = TASKS[self.task]
        if own != method:
            wanted = next(kind for kind, name in TASKS.values() if name == method)
            raise ValueError(
                f"{self.path} is {kind}; expected {wanted}. {PROGRAMS[own]} ({own}) takes this one."
            )

    def _encode(self, text, pair=None):
        """Returns a text's `Encoding` at the model's length and the one of the whole text."""
        whole = self.tokenizer.encode(_checked(text), None if pair is None else _checked(pair))
        self._report_cut("text", len(whole), self.length)
        return self.tokenizer.encode(text, pair, self.length), whole

    def _report_cut(self, what, tokens, most):
        if tokens > most:
            self.warn(
                f"the {what} has {tokens} tokens, the model takes {most}; the last "
                f"{tokens - most} were cut."
            )

    def _filled(self, text, start, stop, token, score):
        word = self.tokenizer.tokens[token]
        before, after = text[:start], text[stop:]
        filled = f"{before.rstrip()}{word[2:]}" if word.startswith("##") else f"{before}{word}"
        return {
            "score": float(score),
            "token": int(token),
            "token_str": word,
            "sequence": f"{filled}{after}",
        }


def load(path, threads=None, warn=warnings.warn):
    """Loads a text model.

    Args:
        path: A `.tflite` or `.keras` file; the folder of a run, in which model.tflite comes
            before model.keras; or the name of a model that comes with a clone of the repository,
            such as `"amlp_nano-wiki"`. The file holds its tokenizer, or a tokenizer.json is next
            to it.
        threads: Number of threads of the LiteRT runtime. Defaults to the number of cores, at most
            4.
        warn: Function that receives a line of text when a text is too long. Defaults to
            `warnings.warn`.

    Returns:
        A `TextModel`.

    Raises:
        ValueError: If the model does not exist, is damaged, is no text model, or its tokenizer is
            missing or belongs to another model. One line.
    """
    return TextModel(**vars(open_text_model(path, threads)), warn=warn)


def from_keras(model, tokenizer, labels=(), length=None, warn=warnings.warn):
    """Returns the `TextModel` of a model in memory.

    Args:
        model: A language model, or a classifier on one.
        tokenizer: Its `Tokenizer`.
        labels: Class names of a text classifier. Defaults to `"0"`, `"1"`, ...
        length: Tokens in a text. Defaults to the most that the model takes.
        warn: See `load`.

    Raises:
        ValueError: If the model is no text model or has another tokenizer. One line.

    Example:
        >>> from keras_gmlp import text
        >>> tokenizer = text.Tokenizer.train(["Paris is the capital of France."], 128)
        >>> model = text.gMLP(tokenizer.size, dim=16, depth=1, hidden_dim=32)
        >>> len(from_keras(model, tokenizer).fill_mask("Paris is the [MASK] of France.", top=3))
        3
    """
    return TextModel(**vars(wrap_model(model, tokenizer, labels, length)), warn=warn)


def question_length(length):
    """Returns how many tokens of a question a model of a length takes."""
    from keras_gmlp.data.text.squad_features import MAX_ANSWER, QUESTION

    room = length - MAX_ANSWER - 4  # [CLS], two [SEP], and one token of the text
    if room < 1:
        raise ValueError(f"the model takes {length} tokens; questions require {MAX_ANSWER + 5}.")
    return min(QUESTION, room)


def _check_top(top):
    """Raises a `ValueError` if a number of results is below 1."""
    if top is not None and top < 1:
        raise ValueError(f"top must be at least 1; received {top}.")


def _checked(text):
    """Returns a text. Arguments of a program that are not UTF-8 hold surrogates in Python."""
    if not isinstance(text, str):
        raise ValueError(f"expected text; received {type(text).__name__}.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text is not UTF-8 at character {error.start:,}; convert it to UTF-8."
        ) from None
    return text


def _softmax(logits):
    exponentials = np.exp(logits.astype("float64") - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)
