"""The task of finding answers in texts."""

import dataclasses
from pathlib import Path

import numpy as np

from keras_gmlp.data.text.chosen_splits import choose_questions, open_questions
from keras_gmlp.data.text.names import missing_file
from keras_gmlp.data.text.squad import Question, has_questions, load_squad
from keras_gmlp.data.text.squad_answers import (
    best_answers,
    best_threshold,
    score_answer,
    squad_scores,
)
from keras_gmlp.data.text.squad_features import MAX_ANSWER, QUESTION, STRIDE, span_features
from keras_gmlp.tasks.confidence import Confidence
from keras_gmlp.tasks.scores import round_score, round_scores
from keras_gmlp.tasks.task import CHECKED
from keras_gmlp.tasks.text_task import (
    FINE_TUNING,
    TextTask,
    check_count,
    draw_places,
    run_with_progress,
)
from keras_gmlp.utils.errors import check_text, check_top

LABELLED = {"text", "label"}  # columns that questions do not have


@dataclasses.dataclass(frozen=True)
class SpanAnswering(TextTask):
    """Finds the answers of a `TokenizedQuestions` in their texts.

    Attributes:
        length: Tokens in a window: the question and a part of the text.
        stride: Tokens from one window of a text to the next, at most.
    """

    length: int = 384
    stride: int = 128

    name = "question_answering"
    headline = "accuracy"
    unit = "windows"
    kind = "a model for questions"
    method = "answer"
    program = "apps/answer.py"
    architecture = "BertForQuestionAnswering"
    logits_rank = 3
    figures = {  # noqa: RUF012 (in percent, as SQuAD's program gives them)
        "test_exact_match": "exact match: {:.2f} %",
        "test_f1": "F1: {:.2f} %",
    }
    choices = ("split", "threshold")
    compared = ("exact_match", "f1")
    tested_together = 64

    def __post_init__(self):
        super().__post_init__()
        self.check_settings(stride=check_count(self.stride))

    @classmethod
    def recipes(cls):
        return {"finetune": {**FINE_TUNING, "epochs": 2, "task": cls()}}

    @classmethod
    def takes(cls, name):
        return has_questions(name)

    @classmethod
    def check_columns(cls, name, columns):
        if named := LABELLED & set(columns):
            if name.endswith(".json") and not Path(name).expanduser().exists():
                raise ValueError(missing_file(name))
            raise ValueError(f"{name} has questions and no column of a {min(named)}; leave it out.")

    @classmethod
    def open_data(cls, tokenizer, source):
        from keras_gmlp.data.text.sentence_batches import TokenizedQuestions

        return TokenizedQuestions(open_questions(source), tokenizer)

    @classmethod
    def summarize_data(cls, data):
        return f"{len(data.train):,} + {len(data.test):,} questions"

    @classmethod
    def read_texts(cls, data, count):
        return [question.context for question in data.train[:count]]

    @classmethod
    def add_head(cls, encoder, data, dropout):
        from keras_gmlp.models.language_model import span_classifier

        return span_classifier(encoder, data.tokenizer.sep_id)

    def check_fit(self, model, data):
        super().check_fit(model, data)
        if not data.train:
            raise ValueError(f"{data.name} has no training questions; expected some, as in squad.")

    def size(self, data):
        return len(self._features(data, "train"))

    def encode(self, data, split):
        features = self._features(data, split)
        return features.token_ids, features.targets

    def validation_batches(self, data):
        return self.evaluation_batches(data, samples=1024)

    def curves(self):
        return ("accuracy", "first and last tokens right (%)", 100), ("loss", "cross-entropy", 1)

    def measure(self, model, data):
        """Returns SQuAD's exact match and F1 on the test questions, in percent."""
        batches = self.evaluation_batches(data)
        logits = model.predict(batches, verbose=0)
        loss = model.evaluate(batches, verbose=0, return_dict=True)["loss"]
        features = self._features(data, "test")
        found = best_answers(data.test, features, logits[:, 0], logits[:, 1], whole_words=True)
        # Sets with questions that have no answer compare the best answer with none.
        threshold = 0.0 if data.questions.unanswerable else None
        scores = squad_scores(data.test, [prediction.answer(threshold) for prediction in found])
        scores = {f"test_{name}": round(value, 4) for name, value in scores.items()}
        return {**scores, "test_loss": round_score(loss)}

    def _features(self, data, split):
        return data.features(split, self.length, self.stride)

    @classmethod
    def answer(cls, model, question, context, top=5, threshold=None):
        """Returns the most probable answers to a question in a text; see `TextModel.answers`."""
        check_top(top)
        asked = Question(check_text(question), check_text(context))
        most = question_length(model.length)
        features = span_features([asked], model.tokenizer, model.length, model.length // 2, most)
        model.report_cut("question", features.cut[0], most)
        logits = model.run(token_ids=features.token_ids)
        scores = logits[:, 0], logits[:, 1]
        (found,) = best_answers([asked], features, *scores, whole_words=True, overlaps=False)
        if not found.spans:
            raise ValueError("the context has no words; expected text that answers the question.")
        scores = np.array([*(span.score for span in found.spans), found.null_score])
        scores = Confidence().probabilities(scores)
        rows = [
            {"score": float(score), "start": span.start, "end": span.end, "answer": span.text}
            for span, score in zip(found.spans, scores, strict=False)
        ]
        if threshold is not None and found.difference > threshold:
            rows.insert(0, {"score": float(scores[-1]), "start": 0, "end": 0, "answer": ""})
        return rows[:top]

    @classmethod
    def sentences(cls, recipe, metrics):
        say, length = super().sentences(recipe, metrics), recipe.get("length")
        return {
            **say,
            "title": "A model that finds answers in a text",
            "output": "logits of the first and the last token of the answer",
            "call": '.answer("Who lives in Rome?", "A cat lives in Rome.")',
            "prints": "It prints the answer with its place in the text and its probability.",
            "limits": [
                "It marks a part of the text, even if the text has no answer.",
                f"It reads a text in overlapping parts, {length} tokens at a time.",
                *say["limits"][1:],
            ],
        }

    @classmethod
    def load_check_samples(cls, model, name, columns=None):
        data = load_squad(name, **(columns or {}))
        return [(q.question, q.context) for q in data.test[:CHECKED]], None

    @classmethod
    def check_inputs(cls, model, samples):
        asked, length = [Question(*pair) for pair in samples], model.length
        most = question_length(length)
        return {"token_ids": span_features(asked, model.tokenizer, length, length, most).token_ids}

    @classmethod
    def load_samples(cls, models, source, split=None, limit=None):
        questions, split = choose_questions(source, split)
        if not any(question.answers for question in questions):
            raise ValueError(f"{source.name}: no question has a known answer; expected some.")
        unanswerable = any(not question.answers for question in questions)
        questions = [questions[place] for place in draw_places(len(questions), limit)]
        return (questions, unanswerable), {"split": split}

    @classmethod
    def score(cls, model, samples, threshold=None):
        questions, unanswerable = samples
        if threshold is None and unanswerable:
            threshold = 0.0
        most, stride = question_length(model.length), min(STRIDE, model.length // 2)
        features = span_features(questions, model.tokenizer, model.length, stride, most)
        logits = run_with_progress(model, "answering", {"token_ids": features.token_ids})
        found = best_answers(questions, features, logits[:, 0], logits[:, 1], whole_words=True)
        answers = [prediction.answer(threshold) for prediction in found]
        scores = {"questions": len(questions), **round_scores(squad_scores(questions, answers))}
        if threshold is not None:
            best = best_threshold(questions, found)
            chosen = squad_scores(questions, [prediction.answer(best) for prediction in found])
            scores |= {"threshold": threshold, "best_threshold": best}
            scores["best_f1"] = round(chosen["f1"], 4)
        scores["cut"] = sum(map(bool, features.cut))
        rows = []
        for question, prediction, answer in zip(questions, found, answers, strict=True):
            exact, f1 = score_answer(question, answer)
            row = {"id": question.id, "question": question.question, "answer": answer}
            row |= {"exact_match": int(exact), "f1": round(f1, 4)}
            rows.append({**row, "difference": round(float(prediction.difference), 4)})
        return scores, rows


def question_length(length):
    """Returns how many tokens of a question a model of a length takes."""
    room = length - MAX_ANSWER - 4  # [CLS], two [SEP], and one token of the text
    if room < 1:
        raise ValueError(f"the model takes {length} tokens; questions require {MAX_ANSWER + 5}.")
    return min(QUESTION, room)
