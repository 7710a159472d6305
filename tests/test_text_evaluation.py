"""Scores of text models on labelled texts, questions and plain text."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from small_text import LENGTH, LINES, small_text_model, small_tokenizer

from keras_gmlp.data.text.corpus import build_corpus, prepare_corpus
from keras_gmlp.data.text.masking import validation_set
from keras_gmlp.losses import MaskedCrossEntropy, Perplexity
from keras_gmlp.text_evaluation import evaluate_texts, write_text_report
from keras_gmlp.text_inference import TextModel, from_keras


@pytest.fixture(scope="module")
def tokenizer():
    return small_tokenizer()


def constant_model(task, tokenizer, logits, labels=(), pairs=None):
    """A model whose logits do not depend on the text."""

    def run(token_ids, **_):
        return np.repeat(np.array([logits], "float32"), len(token_ids), axis=0)

    return TextModel(run, task, tokenizer, LENGTH, labels, Path("constant"), pairs)


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.csv"
    rows = ["a gem,good", "a film,good", "a bore,bad", "dull,bad", "no idea,unsure"]
    path.write_text("\n".join(["text,label", *rows, *rows]) + "\n")
    return str(path)


def test_a_classifier_by_hand(reviews, tokenizer, tmp_path):
    # The model has the classes in another order and does not know "unsure".
    model = constant_model("text_classification", tokenizer, [1.0, 0.0], ("good", "bad"))
    ((scores, predictions),) = evaluate_texts([model], reviews, "train")
    assert scores["texts"] == predictions.labels.size
    good = np.mean([predictions.classes[i] == "good" for i in predictions.labels])
    assert scores["accuracy"] == pytest.approx(good, abs=1e-6)
    assert scores["matthews_correlation"] == 0
    likelihood = good * np.log(1 / (1 + np.exp(-1))) + (1 - good) * np.log(1 / (1 + np.e))
    assert scores["log_likelihood"] == pytest.approx(likelihood, abs=1e-6)
    assert {row["label"] for row in scores["classes"]} == {"good", "bad"}
    write_text_report(tmp_path / "report", {"models": [scores]}, predictions)
    with open(tmp_path / "report" / "predictions.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == scores["texts"]
    assert {row["prediction"] for row in rows} == {"good"}
    assert {path.name for path in (tmp_path / "report").iterdir()} == {
        *("report.json", "predictions.csv", "confusion.png", "reliability.png")
    }


def test_classes_that_do_not_fit(reviews, tokenizer):
    model = constant_model("text_classification", tokenizer, [1.0, 0.0], ("cat", "dog"))
    with pytest.raises(ValueError, match=r"knows none of its classes; received bad, good"):
        evaluate_texts([model], reviews)
    model = constant_model("text_classification", tokenizer, [1.0, 0.0], ("good", "bad"), True)
    with pytest.raises(ValueError, match=r"has single texts; constant classifies pairs\."):
        evaluate_texts([model], reviews)
    other = from_keras(small_text_model("masked_lm", tokenizer), tokenizer)
    with pytest.raises(ValueError, match="is a masked language model; expected a text classifier"):
        evaluate_texts([model, other], reviews)


def questions_file(folder, *answers):
    """Writes questions on "Rome has a cat.", one for each answer, `None` for no answer."""
    qas = [
        {
            "id": str(number),
            "question": "Who?",
            "is_impossible": text is None,
            "answers": [] if text is None else [{"text": text, "answer_start": 0}],
        }
        for number, text in enumerate(answers)
    ]
    paragraphs = [{"context": "Rome has a cat.", "qas": qas}]
    path = folder / "questions.json"
    path.write_text(json.dumps({"data": [{"title": "Rome", "paragraphs": paragraphs}]}))
    return path


def span_model(tokenizer, null):
    """Answers "Rome", the first word of the text, with score 4; no answer has the score `null`."""
    logits = np.full((2, 48), -9.0)
    start = len(tokenizer.encode("Who?"))
    logits[:, start], logits[:, 0] = 2.0, null / 2
    model = constant_model("question_answering", tokenizer, logits)
    return TextModel(**{**vars(model), "length": 48})


@pytest.mark.parametrize(
    ("null", "exact"),
    [(3.0, 100 / 3), (5.0, 200 / 3)],  # always "Rome", right once in three; never an answer
)
def test_questions_without_answers_by_hand(tmp_path, tokenizer, null, exact):
    path = questions_file(tmp_path, "Rome", None, None)
    model = span_model(tokenizer, null)
    ((scores, rows),) = evaluate_texts([model], str(path), columns={"test": str(path)})
    assert scores["questions"] == 3
    assert scores["exact_match"] == scores["f1"] == pytest.approx(exact, abs=1e-4)
    assert scores["threshold"] == 0
    assert scores["best_f1"] == pytest.approx(200 / 3, abs=1e-4)
    assert [row["answer"] for row in rows] == ["Rome" if null < 4 else ""] * 3
    # A threshold between the scores turns the answers round.
    options = {"threshold": null - 4 + (-0.5 if null < 4 else 0.5)}
    ((scores, rows),) = evaluate_texts([model], str(path), columns={"test": str(path)}, **options)
    assert [row["answer"] for row in rows] == ["" if null < 4 else "Rome"] * 3


def test_answers_only_if_all_questions_have_one(tmp_path, tokenizer):
    path = questions_file(tmp_path, "Rome", "cat")
    model = span_model(tokenizer, 9.0)
    ((scores, _),) = evaluate_texts([model], str(path), columns={"test": str(path)})
    assert scores == {"questions": 2, "exact_match": 50.0, "f1": 50.0}


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "valid.txt"
    path.write_text("\n".join(LINES * 3), "utf-8")
    return path


def test_perplexity_equals_that_of_training(text_file, tokenizer, tmp_path):
    model = small_text_model("masked_lm", tokenizer)
    corpus = build_corpus([text_file], tokenizer, tmp_path / "corpus")
    inputs, targets, weights = validation_set(corpus, LENGTH)
    model.compile("sgd", MaskedCrossEntropy(), weighted_metrics=[Perplexity()])
    expected = model.evaluate(inputs, targets, sample_weight=weights, verbose=0, return_dict=True)
    ((scores, none),) = evaluate_texts([from_keras(model, tokenizer)], text_file)
    assert none is None
    assert scores["perplexity"] == pytest.approx(expected["perplexity"], rel=1e-4)
    assert scores["windows"] == len(targets)
    assert scores["masked_tokens"] == weights.sum()


def test_more_masks_than_a_call_takes(text_file, tokenizer):
    sizes = tokenizer.size
    model = constant_model("masked_lm", tokenizer, np.zeros((8, sizes)))
    model = TextModel(**{**vars(model), "length": 96})  # up to 15 masks
    ((scores, _),) = evaluate_texts([model], text_file)
    assert scores["perplexity"] == pytest.approx(sizes, rel=1e-6)
    ((first, _),) = evaluate_texts([model], text_file, limit=1)
    assert first["windows"] == 1
    assert first["masked_tokens"] < scores["masked_tokens"] or scores["windows"] == 1


def test_a_corpus_with_another_tokenizer(text_file, tokenizer, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("A storm came over the sea. Every boat went home.\n" * 9, "utf-8")
    prepare_corpus([other], 128, tmp_path / "prepared", valid=[text_file])
    model = constant_model("masked_lm", tokenizer, np.zeros((8, tokenizer.size)))
    with pytest.raises(ValueError, match="was prepared with another tokenizer"):
        evaluate_texts([model], tmp_path / "prepared")
