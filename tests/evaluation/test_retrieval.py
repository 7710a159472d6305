"""Ranks of the texts that belong to questions, by vectors and by words."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from small_text import LINES, save_small_model, small_text_model, small_tokenizer

from keras_gmlp.evaluation.retrieval import (
    compare_vectors,
    compare_words,
    evaluate_retrieval,
    make_windows,
    score_ranks,
)
from keras_gmlp.inference.text import from_keras

QUESTIONS = ["capital of France", "a gem and a bad joke", "Who lives in Rome?"]


@pytest.fixture(scope="module")
def tokenizer():
    return small_tokenizer()


@pytest.fixture
def squad(tmp_path):
    """A file of three questions, each about a line."""
    paragraphs = [
        {"context": line, "qas": [{"question": question, "id": str(number), "answers": []}]}
        for number, (line, question) in enumerate(zip(LINES, QUESTIONS, strict=True))
    ]
    path = tmp_path / "questions.json"
    path.write_text(json.dumps({"data": [{"title": "a", "paragraphs": paragraphs}]}))
    return path


@pytest.mark.parametrize("together", [512, 2])
def test_shares_of_ranks_by_hand(monkeypatch, together):
    monkeypatch.setattr("keras_gmlp.evaluation.retrieval.TOGETHER", together)
    similarities = np.array([[0.9, 0.1, 0.2], [0.5, 0.4, 0.3], [0.7, 0.7, 0.1]])
    assert score_ranks(lambda part: similarities[part], [0, 1, 1]) == {
        "top1": pytest.approx(1 / 3, abs=1e-6),  # what is equally near comes before
        "top5": 1.0,
        "top10": 1.0,
    }


def test_words_by_hand():
    texts = ["a red cat", "a dog", "a red dog"]
    found = compare_words(["Red cat, cat", "unknown"], texts)(slice(0, 2))
    # 1 + log(4 / (1 + texts with the word)): "a" is in all three, "red" and "dog" in two, "cat" in
    # one. Twice in a text counts 1 + log 2.
    red, cat = 1 + np.log(4 / 3), 1 + np.log(2)
    asked = np.array([0, red, (1 + np.log(2)) * cat, 0])  # a, red, cat, dog
    rows = np.array([[1, red, cat, 0], [1, 0, 0, red], [1, red, 0, red]])
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(asked)
    np.testing.assert_allclose(found[0], rows @ asked / lengths, rtol=1e-6)
    np.testing.assert_array_equal(found[1], [0, 0, 0])


def test_windows_hold_all_tokens(tokenizer):
    text = " ".join(LINES)
    whole = tokenizer.encode(text).ids
    windows, starts = make_windows(tokenizer, ["a gem", text, "a bore"], 12)
    assert starts[:2] == [0, 1]
    assert starts[2] == len(windows) - 1
    assert windows.dtype == np.int32
    np.testing.assert_array_equal(windows[0], tokenizer.encode("a gem", length=12).ids)
    for row in windows[1:-1]:
        assert (row[0], row[-1]) == (tokenizer.cls_id, tokenizer.sep_id)
    np.testing.assert_array_equal(windows[1][:-1], whole[:11])
    np.testing.assert_array_equal(windows[-2][1:], whole[-11:])
    np.testing.assert_array_equal(windows[2][1:6], windows[1][6:11])  # half of a window


def test_a_long_text_counts_by_its_nearest_window(tokenizer):
    def embed(ids):  # one number for the word "river", one for all texts
        river = np.isin(ids, tokenizer.encode("river").ids[1:-1]).any(1)
        return np.stack([river, np.ones(len(ids))], 1).astype("float32")

    model = SimpleNamespace(tokenizer=tokenizer, length=12, path="a model")
    texts = ["a gem " * 20 + "river", "a gem " * 20]
    found = compare_vectors(embed, model, ["river", "a gem"], texts)(slice(0, 2))
    half = 2**-0.5
    np.testing.assert_allclose(found, [[1, half], [1, 1]], atol=1e-6)


def test_report_of_a_model_and_of_words(tokenizer, squad):
    model = from_keras(small_text_model("masked_lm", tokenizer), tokenizer)
    report = evaluate_retrieval([model], str(squad))
    counts = {name: report[name] for name in ("split", "questions", "candidates")}
    assert counts == {"split": "all", "questions": 3, "candidates": 3}
    own, words = report["models"]
    assert words == {"model": "TF-IDF", "top1": 1.0, "top5": 1.0, "top10": 1.0}
    assert own["top5"] == 1  # of three texts
    fewer = evaluate_retrieval([model], str(squad), limit=2)
    assert (fewer["questions"], fewer["candidates"]) == (2, 3)
    with pytest.raises(ValueError, match="has no questions to rank texts for"):
        evaluate_retrieval([model], "sst2")


def test_program(tokenizer, squad, tmp_path, app):
    path = tmp_path / "model.keras"
    save_small_model(path, "masked_lm", tokenizer)
    given = ["evaluate_text", path, "--data", squad, "--retrieval"]
    code, output, _ = app(*given, "--out", tmp_path / "report")
    assert (code, output.splitlines()[-1].split()) == (0, ["TF-IDF", *["100.00", "%"] * 3])
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert [row["model"] for row in report["models"]] == [str(path), "TF-IDF"]
    assert json.loads(app(*given, "--json")[1]) == report
    for wrong, reason in (
        ((squad, "--threshold", "1"), "not for --retrieval"),
        ((squad, "--label", "x"), "not for --retrieval"),
        (("sst2",), "'sst2': has no questions to rank texts for"),
    ):
        code, _, errors = app("evaluate_text", "no-model", "--retrieval", "--data", *wrong)
        assert (code, reason in errors) == (2, True), errors  # before a model is opened
