#!/usr/bin/env python3
"""Finds the answers to questions in texts, as SQuAD asks them: a task of a user's own."""

import argparse
import collections
import dataclasses
import functools
import itertools
import json
import re
import string
import sys
from pathlib import Path
from typing import ClassVar

import keras
import numpy as np
from keras import ops

import keras_gmlp
from keras_gmlp import text
from keras_gmlp.export import export_run
from keras_gmlp.layers.block import ConfiguredLayer, make_dense, mask_scores
from keras_gmlp.layers.embedding import count_ends
from keras_gmlp.models.language_model import encoder
from keras_gmlp.tasks import TextTask

LONGEST = 30  # tokens in an answer, at most
BEST = 20  # first tokens and last tokens of a window that are combined
TOGETHER = 256  # questions that are tokenized at a time
CHECKED = 100  # questions that an exported file is checked with


@dataclasses.dataclass(frozen=True)
class Question:
    """A question about a text; its answers are pairs of a start in the text and an answer."""

    question: str
    context: str
    answers: tuple = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Questions:
    """The data that the task trains on and is tested on; `train` and `test` list `Question`s."""

    name: str
    train: list
    test: list
    tokenizer: text.Tokenizer

    @functools.cache  # noqa: B019 (a run holds one such object)
    def encode(self, split, length):
        """Returns the token ids of all windows, and the first and last token of each answer."""
        questions, ids, targets = getattr(self, split), [], []
        for number, window in make_windows(self.tokenizer, questions, length):
            ids.append(window.ids)
            targets.append(find_tokens(window, questions[number].answers[:1]))
        return np.array(ids, "int32"), np.array(targets, "int32")


def read_questions(source, split):
    """Returns the questions of a .json file in SQuAD's format, or of a set of TFDS."""
    if not source.endswith(".json"):
        import tensorflow_datasets as tfds

        rows = tfds.as_numpy(tfds.load(source, split=split))
        return [
            make_question(
                row["question"].decode(),
                row["context"].decode(),
                [part.decode() for part in row["answers"]["text"]],
                row["answers"]["answer_start"],
            )
            for row in rows
        ]
    try:
        articles = json.loads(Path(source).read_text("utf-8"))["data"]
        return [
            make_question(
                entry["question"],
                paragraph["context"],
                [answer["text"] for answer in entry["answers"]],
                [answer["answer_start"] for answer in entry["answers"]],
            )
            for article in articles
            for paragraph in article["paragraphs"]
            for entry in paragraph["qas"]
        ]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{source}: not in SQuAD's format ({error!r}).") from None


def make_question(question, context, answers, starts):
    """Returns a `Question`, whose answers are where the text has them, near the given starts."""
    found = []
    for answer, start in zip(answers, starts, strict=True):
        places = [match.start() for match in re.finditer(re.escape(answer), context)]
        if not places:
            raise ValueError(f"{question!r}: the answer {answer!r} is not in its text.")
        found.append((min(places, key=lambda place: abs(place - start)), answer))
    return Question(question, context, tuple(found))


def make_windows(tokenizer, questions, length):
    """Yields windows `[CLS] question [SEP] part of the text [SEP]`, which overlap by a quarter.

    Each is a pair: the number of its question and an `Encoding` of the package tokenizers. A
    question takes a quarter of a window at most; its end is cut.
    """
    tokens = tokenizer.to_bert()
    tokens.encode_special_tokens = True  # a "[SEP]" that somebody wrote is plain text
    tokens.enable_truncation(length, stride=length // 4, strategy="only_second")
    tokens.enable_padding(length=length)
    for start in range(0, len(questions), TOGETHER):
        part = questions[start : start + TOGETHER]
        asked = tokenizer.encode_batch([question.question for question in part], length // 4)
        pairs = [
            (question.question[: max(end for _, end in encoding.offsets)], question.context)
            for question, encoding in zip(part, asked, strict=True)
        ]
        for number, encoding in enumerate(tokens.encode_batch(pairs), start):
            yield from ((number, window) for window in (encoding, *encoding.overflowing))


def find_tokens(window, answers):
    """Returns the first and the last token of an answer; `(0, 0)` if the window lacks a part."""
    offsets = np.array(window.offsets)
    inside = np.flatnonzero(np.array(window.sequence_ids) == 1)
    for start, answer in answers if len(inside) else ():
        end = start + len(answer)
        if offsets[inside[0], 0] <= start and end <= offsets[inside[-1], 1]:
            tokens = inside[(offsets[inside, 1] > start) & (offsets[inside, 0] < end)]
            return (tokens[0], tokens[-1]) if len(tokens) else (0, 0)
    return 0, 0


def find_answers(tokenizer, questions, length, logits):
    """Returns the answers of a model to questions.

    Args:
        tokenizer: The model's `Tokenizer`.
        questions: A list of `Question`.
        length: Tokens in a window.
        logits: Those of the windows of all questions, `(windows, 2, length)`.

    Returns:
        For each question a dict of scores, sums of two logits, by place `(start, end)` in its text,
        the highest first. A place begins and ends with a whole word. `(0, 0)` is no answer.
    """
    spans, words = [{} for _ in questions], [{} for _ in questions]
    none = np.full(len(questions), np.inf)
    windows = make_windows(tokenizer, questions, length)
    for (number, window), (starts, ends) in zip(windows, logits, strict=True):
        none[number] = min(none[number], starts[0] + ends[0])
        ids, known = window.word_ids, words[number]
        is_text = [part == 1 for part in window.sequence_ids]
        for place in np.flatnonzero(is_text):  # a window may begin or end inside a word
            start, end = window.offsets[place]
            before = known.get(ids[place], (start, end))
            known[ids[place]] = min(start, before[0]), max(end, before[1])
        best = np.argsort(-starts)[:BEST], np.argsort(-ends)[:BEST]
        for first, last in itertools.product(*best):
            if first <= last < first + LONGEST and is_text[first] and is_text[last]:
                span, score = (ids[first], ids[last]), float(starts[first] + ends[last])
                spans[number][span] = max(score, spans[number].get(span, -np.inf))
    found = []
    for own, known, nothing in zip(spans, words, none, strict=True):
        places = {(known[first][0], known[last][1]): s for (first, last), s in own.items()}
        places[0, 0] = float(nothing)
        found.append(dict(sorted(places.items(), key=lambda item: -item[1])))
    return found


def choose_answer(question, places, may_be_none):
    """Returns the text of the best place; the empty text only if there may be no answer."""
    start, end = next((p for p in places if p != (0, 0) or may_be_none), (0, 0))
    return question.context[start:end]


def score_answers(questions, found):
    """Returns the scores of SQuAD's own program in percent: exact match and F1, a dict.

    An answer may be empty if some of the questions have no answer.
    """
    may_be_none = not all(question.answers for question in questions)
    pairs = zip(questions, found, strict=True)
    rows = [score_answer(q, choose_answer(q, places, may_be_none)) for q, places in pairs]
    exact, f1 = 100 * np.mean(rows, axis=0)
    return {"exact_match": round(float(exact), 4), "f1": round(float(f1), 4)}


def score_answer(question, answer):
    """Returns whether an answer is one of the right ones, and its F1 in words, both in [0, 1]."""
    found = normalize(answer)
    right = [normalize(text) for _, text in question.answers] or [""]
    return found in right, max(score_words(found.split(), words.split()) for words in right)


def score_words(found, right):
    if not found or not right:
        return float(found == right)
    shared = sum((collections.Counter(found) & collections.Counter(right)).values())
    return 2 * shared / (len(found) + len(right))


def normalize(answer):
    """Returns an answer in small letters without punctuation, articles and further spaces."""
    kept = "".join(letter for letter in answer.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


@keras.saving.register_keras_serializable("keras_gmlp")  # as earlier files name it
class SpanHead(ConfiguredLayer):
    """Computes the logits of the first and the last token of an answer, `(batch, 2, tokens)`.

    The text is between the first and the second separator `[SEP]`. Places outside of it get low
    logits, except place 0, `[CLS]`, which stands for no answer ("BERT", section 4.2,
    https://arxiv.org/abs/1810.04805).
    """

    def __init__(self, separator, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.separator, self.kernel_initializer = separator, kernel_initializer
        self.dense = make_dense(self, 2, "dense")

    def build(self, inputs_shape, token_ids_shape=None):
        self.dense.build(inputs_shape)

    def call(self, inputs, token_ids):
        scores = ops.transpose(self.dense(inputs), (0, 2, 1))  # (b, n, 2) -> (b, 2, n)
        inside = ops.equal(count_ends(token_ids, self.separator), 1)
        inside = ops.logical_and(inside, ops.not_equal(token_ids, self.separator))
        first = ops.equal(ops.cumsum(ops.ones_like(token_ids), axis=1), 1)
        return mask_scores(scores, ops.logical_or(inside, first)[:, None, :])

    def compute_mask(self, inputs, previous_mask=None):
        return None  # the outputs are not the tokens

    def compute_output_shape(self, inputs_shape, token_ids_shape=None):
        return inputs_shape[0], 2, inputs_shape[1]


@dataclasses.dataclass(frozen=True)
class QuestionAnswering(TextTask):
    """Finds the answers of `Questions` in their texts.

    Attributes:
        length: Tokens in a window: the question and a part of the text.
    """

    length: int = 384

    name = "question_answering"
    headline = "accuracy"
    unit = "windows"
    ranges: ClassVar = {"length": (lambda length: length >= 32, "at least 32")}
    kind = "a model for questions"
    logits_rank = 3
    output = "logits of the first and the last token of the answer"
    example = '("Who lives in Rome?", "A cat lives in Rome.")'
    limits = ("It marks a part of the text, even if that does not answer.",)

    def samples_per_epoch(self, data):
        return len(data.encode("train", self.length)[0])

    def evaluate(self, model, data, split="test", samples=-1, verbose=0):
        logits = model.predict(self.evaluation_batches(data, split), verbose=0)
        questions = getattr(data, split)
        found = find_answers(data.tokenizer, questions, self.length, logits)
        scores = super().evaluate(model, data, split, samples, verbose)
        return {**scores, **score_answers(questions, found)}

    @classmethod
    def encode(cls, model, samples):
        windows = make_windows(model.tokenizer, samples, model.length)
        return {"token_ids": np.array([window.ids for _, window in windows], "int32")}

    @classmethod
    def find(cls, model, questions):
        """Returns what `find_answers` returns for a loaded model."""
        logits = model.run(**cls.encode(model, questions))
        return find_answers(model.tokenizer, questions, model.length, logits)

    @classmethod
    def predict(cls, model, question, context, may_be_none=False):
        """Returns the most probable answer, a dict: `answer`, `start`, `end`, `score`.

        `score` is its probability among all answers that were found and no answer.
        """
        (places,) = cls.find(model, [Question(question, context)])
        highest = max(places.values())
        total = sum(np.exp(score - highest) for score in places.values())
        start, end = next((p for p in places if p != (0, 0) or may_be_none), (0, 0))
        score = float(np.exp(places[start, end] - highest) / total)
        return {"answer": context[start:end], "start": start, "end": end, "score": score}


def train(options):
    """Fine-tunes a language model on questions; resumes a run that was stopped."""
    opened = keras_gmlp.load(options.weights)
    if opened.model is None:
        raise ValueError(f"{options.weights}: expected a .keras file.")
    data = Questions(
        options.data,
        read_questions(options.data, "train"),
        read_questions(options.test or options.data, "validation"),
        opened.tokenizer,
    )
    recipe = keras_gmlp.Recipe(
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=options.learning_rate,
        weight_decay=0.01,
        ema=0.0,
        precision=options.precision,
        seed=options.seed,
        task=QuestionAnswering(length=options.length),
    )
    adapted = text.adapt(opened.model, options.length, dropout=0.1, dtype=options.precision)
    token_ids, tokens = encoder(adapted)
    head = SpanHead(opened.tokenizer.sep_id, dtype="float32", name="head")
    model = keras.Model(token_ids, head(tokens, token_ids), name=adapted.name)
    metrics = keras_gmlp.train(model, data, recipe, options.out, extra={"weights": options.weights})
    print(f"exact match: {metrics['test_exact_match']:.2f} %, F1: {metrics['test_f1']:.2f} %")
    if options.export:
        # In this process: another one knows no layer of this file.
        formats = ["tflite", "tflite_float16", "tflite_float32"]
        export_run(options.out, formats, (data.test[:CHECKED], None), print)


def evaluate(options):
    """Prints exact match and F1 of a model."""
    questions = read_questions(options.data, "validation")
    found = QuestionAnswering.find(keras_gmlp.load(options.model), questions)
    print(json.dumps({"questions": len(questions), **score_answers(questions, found)}))


def answer(options):
    """Prints the answer to each question."""
    model, context = keras_gmlp.load(options.model), Path(options.context).read_text("utf-8")
    for question in options.questions:
        found = model(question, context, may_be_none=options.may_be_none)
        print(f"{question} {found['answer'] or '(no answer)'} ({100 * found['score']:.0f} %)")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    data = "squad or another set of TFDS, or a .json file in SQuAD's format"

    trains = commands.add_parser("train", help="fine-tune a language model")
    trains.add_argument("--data", default="squad", help=data)
    trains.add_argument("--test", help="the same, to test on; default: the set's validation split")
    trains.add_argument("--weights", default="saved_models/amlp_nano-wiki/model.keras")
    trains.add_argument("--out", default="runs/questions", help="folder of the run")
    trains.add_argument("--length", type=int, default=384, help="tokens in a window")
    trains.add_argument("--epochs", type=int, default=2)
    trains.add_argument("--batch-size", type=int, default=32)
    trains.add_argument("--learning-rate", type=float, default=3e-4)
    trains.add_argument("--precision", default="mixed_bfloat16")
    trains.add_argument("--seed", type=int, default=0)
    trains.add_argument("--export", action="store_true", help="write .tflite files, too")
    trains.set_defaults(run=train)

    evaluates = commands.add_parser("evaluate", help="score a model")
    evaluates.add_argument("model", help="folder of a run, or a file")
    evaluates.add_argument("--data", default="squad", help=data)
    evaluates.set_defaults(run=evaluate)

    answers = commands.add_parser("answer", help="answer questions about a text")
    answers.add_argument("model", help="folder of a run, or a file")
    answers.add_argument("questions", nargs="+", metavar="question")
    answers.add_argument("--context", required=True, help="file with the text")
    answers.add_argument("--may-be-none", action="store_true", help="as SQuAD 2.0 has questions")
    answers.set_defaults(run=answer)

    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except (OSError, ValueError) as error:
        sys.exit(f"questions: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main()
