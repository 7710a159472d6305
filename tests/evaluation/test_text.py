"""Scores of text models on labelled texts and plain text."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from read_table import read_table
from small_text import LENGTH, LINES, small_text_model

from keras_gmlp.data.run_folder import SAMPLES, Sample, record_samples
from keras_gmlp.data.text.corpus import build_corpus
from keras_gmlp.data.text.labelled_texts import TextSource, open_texts
from keras_gmlp.data.text.masking import validation_set
from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.evaluation.scoring import evaluate, write_report
from keras_gmlp.inference.text import TextModel, from_keras
from keras_gmlp.objectives.losses import MaskedCrossEntropy
from keras_gmlp.objectives.metrics import Perplexity
from keras_gmlp.utils.errors import DataWarning
from keras_gmlp.utils.tables import write_table


def constant_model(task, tokenizer, logits, labels=(), pairs=None, length=LENGTH):
    """A model whose logits do not depend on the text."""

    def run(token_ids, **_):
        return np.repeat(np.array([logits], "float32"), len(token_ids), axis=0)

    return TextModel(run, task, tokenizer, length, labels, Path("constant"), pairs)


def classifier(tokenizer, *labels, logits=(1.0, 0.0), pairs=None):
    labels = labels or ("good", "bad")
    return constant_model("text_classification", tokenizer, logits, labels, pairs)


def write_rows(path, rows):
    path.write_text("\n".join(["text,label", *rows]) + "\n")
    return str(path)


@pytest.fixture
def reviews(tmp_path):
    rows = ["a gem,good", "a film,good", "a bore,bad", "dull,bad", "no idea,unsure"]
    return write_rows(tmp_path / "reviews.csv", [*rows, *rows])


def test_a_classifier_by_hand(reviews, tokenizer, tmp_path):
    # The model has the classes in another order and does not know "unsure".
    report, predictions = evaluate([classifier(tokenizer)], reviews)
    (scores,) = report["models"]
    assert (report["split"], report["unknown_classes"]) == ("all", ["unsure"])
    assert (scores["texts"], scores["cut"]) == (8, 0)
    assert scores["texts"] == predictions.labels.size
    good = np.mean([predictions.classes[i] == "good" for i in predictions.labels])
    assert scores["accuracy"] == pytest.approx(good, abs=1e-6)
    assert scores["matthews_correlation"] == 0
    likelihood = good * np.log(1 / (1 + np.exp(-1))) + (1 - good) * np.log(1 / (1 + np.e))
    assert scores["log_likelihood"] == pytest.approx(likelihood, abs=1e-6)
    assert {row["label"] for row in scores["classes"]} == {"good", "bad"}
    write_report(tmp_path / "report", report, predictions)
    rows = read_table(tmp_path / "report" / "predictions.csv")
    assert len(rows) == scores["texts"]
    assert {row["prediction"] for row in rows} == {"good"}
    assert {path.name for path in (tmp_path / "report").iterdir()} == {
        *("report.json", "predictions.csv", "confusion.png", "reliability.png")
    }


def test_validation_texts_are_those_that_the_run_held_out(tmp_path, tokenizer):
    rows = [f"a film of {n} winters,{'good' if n % 2 else 'bad'}" for n in range(40)]
    reviews, model = write_rows(tmp_path / "many.csv", rows), classifier(tokenizer)
    counts = []
    for split, share in (("train", 0.5), ("validation", 0.5), ("train", 0.0)):
        report, _ = evaluate([model], TextSource(reviews, validation=share), split)
        counts.append(report["models"][0]["texts"])
    assert counts[0] + counts[1] == counts[2]
    with pytest.raises(ValueError, match="validation"):
        evaluate([model], reviews, "validation")


def test_other_model_that_was_trained_on_test_texts_is_named(tmp_path, tokenizer):
    rows = [f"a film of {n} winters,{'good' if n % 2 else 'bad'}" for n in range(20)]
    source = TextSource(write_rows(tmp_path / "many.csv", rows), validation=0.5)
    own = classifier(tokenizer)
    (tmp_path / "model.tflite").touch()
    write_table(tmp_path / SAMPLES, [Sample._fields, *record_samples(open_texts(source))])
    other = dataclasses.replace(own, path=tmp_path / "model.tflite")
    evaluate([own, other], source, "train")
    with pytest.warns(DataWarning, match="trained on"):
        evaluate([own, other], source, "validation")


def test_classes_that_do_not_fit(reviews, tokenizer):
    own, pairs = classifier(tokenizer), classifier(tokenizer, pairs=True)
    masks = constant_model("masked_lm", tokenizer, np.zeros((8, tokenizer.size)))
    for models, split, reason in (
        ([classifier(tokenizer, "cat", "dog")], None, "none of its classes"),
        ([pairs], None, "pairs"),
        ([own, masks], None, "a masked language model"),
        ([own], "valid", "split"),
    ):
        with pytest.raises(ValueError, match=reason):
            evaluate(models, reviews, split)


def test_models_are_scored_on_the_classes_that_all_know(reviews, tokenizer):
    models = [classifier(tokenizer), classifier(tokenizer, "good", "unsure")]
    report, _ = evaluate(models, reviews)
    assert report["unknown_classes"] == ["bad", "unsure"]
    assert [row["texts"] for row in report["models"]] == [4, 4]
    assert [row["accuracy"] for row in report["models"]] == [1, 1]
    equal = classifier(tokenizer, "good", "good", logits=(0.0, 1.0))  # count as one
    assert evaluate([equal], reviews)[0]["models"][0]["accuracy"] == 1


def test_a_limit_draws_from_all_classes(tmp_path, tokenizer):
    rows = [f"{label} {n},{label}" for label in ("bad", "good") for n in range(50)]
    place = write_rows(tmp_path / "rows.csv", rows)
    report, predictions = evaluate([classifier(tokenizer)], place, limit=20)
    assert report["models"][0]["texts"] == 20
    assert 5 < predictions.labels.sum() < 15


def test_long_texts_are_counted(tmp_path, tokenizer):
    long = "the old house by the river " * 9
    place = write_rows(tmp_path / "rows.csv", [f"{long},good", "a gem,bad"])
    report, _ = evaluate([classifier(tokenizer)], place)
    assert report["models"][0]["cut"] == 1


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
    report, none = evaluate([from_keras(model, tokenizer)], text_file)
    assert none is None
    (scores,) = report["models"]
    assert scores["perplexity"] == pytest.approx(expected["perplexity"], rel=1e-4)
    assert scores["windows"] == len(targets)
    assert scores["masked_tokens"] == weights.sum()


def test_more_masks_than_a_call_takes(text_file, tokenizer):
    logits = np.zeros((8, tokenizer.size))
    model = constant_model("masked_lm", tokenizer, logits, length=96)  # up to 15 masks
    report, _ = evaluate([model], text_file)
    assert report["models"][0]["perplexity"] == pytest.approx(tokenizer.size, rel=1e-6)
    assert report["models"][0]["masked_tokens"] > 8
    # A model of 48 tokens makes windows of 48 for both.
    short = constant_model("masked_lm", tokenizer, logits)
    report, _ = evaluate([model, short], text_file, limit=2)
    assert [row["windows"] for row in report["models"]] == [2, 2]
    assert len({row["masked_tokens"] for row in report["models"]}) == 1


def test_text_that_does_not_fit_a_language_model(text_file, tokenizer, tmp_path):
    model = constant_model("masked_lm", tokenizer, np.zeros((8, tokenizer.size)))
    stranger = TextModel(**{**vars(model), "tokenizer": Tokenizer.train(["a storm"], 128)})
    (strange := tmp_path / "strange.txt").write_text("\U0001f600 \U0001f600\n", "utf-8")
    for models, given, reason in (
        ([model, stranger], text_file, "tokenizers differ"),
        ([model], strange, "no token to mask"),
    ):
        with pytest.raises(ValueError, match=reason):
            evaluate(models, given)
