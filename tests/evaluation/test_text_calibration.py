"""A calibrated text classifier gives the same probabilities in all files, and rejects texts."""

import json
import shutil

import numpy as np
import pytest
from scipy.special import softmax
from small_text import LENGTH, LINES, save_small_model, small_text_model, small_tokenizer

from keras_gmlp.data.text.labelled_texts import TextSource
from keras_gmlp.evaluation.calibration import calibrate_run
from keras_gmlp.evaluation.scoring import evaluate
from keras_gmlp.export.writing import export
from keras_gmlp.inference.text import from_keras
from keras_gmlp.training.model_card import write_model_card
from keras_gmlp.utils.card import read_card, write_text_card
from keras_gmlp.weights.loading import load

LABELS = ("bad", "good")
FILES = ("model.keras", "model_float32.tflite")


@pytest.fixture(scope="module")
def model():
    """A classifier that is too sure."""
    model = small_text_model("text_classification", small_tokenizer())
    head = model.get_layer("head")
    head.kernel.assign(5 * head.kernel)
    return model


@pytest.fixture(scope="module")
def texts(model, tmp_path_factory):
    """Texts of which the model predicts three in four right."""
    rng, classifier = np.random.default_rng(0), from_keras(model, small_tokenizer(), LABELS)
    words = sorted({word for line in LINES for word in line.lower().split() if word.isalpha()})
    drawn = [(" ".join(rng.choice(words, 4)), rng.random() < 0.25) for _ in range(120)]
    best = read_logits(classifier, [text for text, _ in drawn]).argmax(1)
    rows = [f"{text},{LABELS[i ^ wrong]}" for (text, wrong), i in zip(drawn, best, strict=True)]
    path = tmp_path_factory.mktemp("texts") / "reviews.csv"
    path.write_text("\n".join(["text,label", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def exported(model, texts, tmp_path_factory):
    """The folder of a run, with its export."""
    tokenizer, place = small_tokenizer(), tmp_path_factory.mktemp("run")
    model.save(place / "model.keras")
    card = {"length": LENGTH, "pairs": False}
    write_text_card(place / "model.keras", "text_classification", tokenizer, LABELS, card)
    export(model, place, ["tflite_float32"], LABELS, tokenizer=tokenizer, length=LENGTH)
    recipe = {"data": str(texts), "task": "text_classification", "labels": LABELS}
    recipe["command"] = {"hold_out": 0.25}
    recipe |= {"tokenizer": tokenizer.hash, "length": LENGTH, "pairs": False}
    (place / "recipe.json").write_text(json.dumps(recipe))
    (place / "metrics.json").write_text('{"test_accuracy": 0.5}')
    return place


@pytest.fixture
def run(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "run")


def read_logits(model, texts):
    ids = [encoding.ids for encoding in model.tokenizer.encode_batch(texts, LENGTH)]
    return model.run(token_ids=np.stack(ids)).astype("float64")


def test_all_files_have_the_temperature(run, texts, tmp_path):
    before = load(run / "model.keras").classify("a gem of a film")
    result = calibrate_run(run, split="validation")
    assert result["texts"] == 24
    assert result["temperature"] > 1.5
    report, _ = evaluate([load(run / "model.keras")], TextSource(str(texts), held_out=0.25))
    (scores,) = report["models"]
    assert scores["calibration_error"] == pytest.approx(result["calibration_error"], abs=1e-5)
    assert result["calibration_error"] < result["calibration_error_before"]
    assert scores["rejected"] == result["rejected"] <= 0.05
    whole = calibrate_run(run, str(texts), split="test")
    assert whole["temperature"] == result["temperature"]  # the held-out texts are the test
    every = calibrate_run(run, str(shutil.copy(texts, tmp_path / "copy.csv")), reject=None)
    assert every["texts"] == 120
    assert "energy_threshold" not in every
    for name in FILES:
        model = load(run / name)
        (expected,) = softmax(read_logits(model, ["a gem of a film"]) / every["temperature"], 1)
        answer = model.classify("a gem of a film")
        assert [row["label"] for row in answer] == [row["label"] for row in before]
        assert sorted(row["score"] for row in answer) == pytest.approx(sorted(expected))
        assert "known" not in answer[0]


def test_unknown_texts_are_rejected_by_files_and_programs(run, texts, app):
    calibrate_run(run, reject=0.5)
    lines = [line.rpartition(",")[0] for line in texts.read_text().splitlines()[1::4]]
    found = {}
    for name in FILES:
        model = load(run / name)
        found[name] = [model.classify(line)[0]["known"] for line in lines]
        energies = -np.log(np.exp(read_logits(model, lines) / model.confidence.temperature).sum(1))
        np.testing.assert_array_equal(found[name], energies < model.confidence.energy_threshold)
    assert found[FILES[0]] == found[FILES[1]]
    assert 5 < sum(found[FILES[0]]) < 25
    unknown = lines[found[FILES[0]].index(False)]
    code, out, _ = app("classify", unknown, "--model", run / "model_float32.tflite")
    assert (code, "not one of the classes" in out) == (0, True)
    write_model_card(run)
    assert "| texts | 24 |" in (run / "README.md").read_text()


def test_program_and_what_cannot_be_calibrated(run, texts, tmp_path, app):
    code, out, _ = app("calibrate", run, "--reject", "none", "--json")
    assert (code, json.loads(out)["texts"]) == (0, 24)
    assert read_card(run / "model.keras")["energy_threshold"] is None
    code, out, _ = app("calibrate", run)
    assert (code, "texts              24 of" in out) == (0, True)
    assert app("calibrate", run, "--reject=2")[0] == 1
    other = shutil.copy(texts, tmp_path / "other.csv")
    language, recipe = tmp_path / "language", run / "recipe.json"
    language.mkdir()
    save_small_model(language / "model.keras", "masked_lm", small_tokenizer())
    for arguments, reason in (
        ((run, "--split", "all"), "trained on"),
        ((run, "--data", other, "--split", "validation"), "split validation"),
        ((language, "--data", texts), "a masked language model"),
        ((run,), "held no texts out"),
    ):
        if arguments == (run,):
            recipe.write_text(json.dumps({**json.loads(recipe.read_text()), "command": {}}))
        code, _, error = app("calibrate", *arguments)
        assert (code, reason in error) == (1, True), error
