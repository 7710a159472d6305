"""Masks, classes and answers from files, with results like those of the Hugging Face pipelines."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from check_layer import to_numpy
from refused import refused
from small_text import LABELS, LENGTH, LINES, save_small_model, small_text_model

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.export.writing import export
from keras_gmlp.inference.card_update import copy_archive
from keras_gmlp.inference.text import TextModel, from_keras
from keras_gmlp.tasks.masked_lm import MASKS
from keras_gmlp.weights.loading import load

FRANCE = "Paris is the [MASK] of France."
TASKS = ("masked_lm", "text_classification")


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory):
    """A folder with `TASK.keras` and `TASK.tflite` of each task."""
    place = tmp_path_factory.mktemp("text")
    for task in TASKS:
        model, labels = save_small_model(place / f"{task}.keras", task, tokenizer)
        texts = {"tokenizer": tokenizer, "length": LENGTH}
        files = export(model, place, ["tflite_float32"], labels, **texts)
        files["tflite_float32"].rename(place / f"{task}.tflite")
    return place


@pytest.fixture(params=[".keras", ".tflite"])
def open_task(request, folder):
    return lambda task: load(folder / f"{task}{request.param}")


def test_fill_mask(open_task, tokenizer):
    model = open_task("masked_lm")
    found = model.fill_mask(FRANCE, top=3, pieces=True)
    scores = [entry["score"] for entry in found]
    assert scores == sorted(scores, reverse=True)
    assert len(found) == 3
    for entry in found:
        assert set(entry) == {"score", "token", "token_str", "sequence"}
        assert entry["token_str"] == tokenizer.tokens[entry["token"]]
        assert entry["token"] not in tokenizer.special_ids
    ids = np.array([tokenizer.encode(FRANCE, length=LENGTH).ids])
    place = int(np.flatnonzero(ids[0] == tokenizer.mask_id)[0])
    inputs = {"token_ids": ids, "mask_positions": np.array([[place]], "int32")}
    logits = to_numpy(small_text_model("masked_lm", tokenizer)(inputs)).ravel().astype("float64")
    expected = np.exp(logits - logits.max())
    token = found[0]["token"]
    assert found[0]["score"] == pytest.approx(expected[token] / expected.sum(), rel=1e-3)


def test_several_masks_give_a_list_for_each(folder):
    model = load(folder / "masked_lm.tflite")
    text = "[MASK] " * (MASKS + 2) + "France."
    found = model.fill_mask(text, top=2, pieces=True)
    assert [len(entries) for entries in found] == [2] * (MASKS + 2)
    for place, entries in enumerate(found):
        before = entries[0]["sequence"].partition(entries[0]["token_str"].removeprefix("##"))[0]
        assert before.count("[MASK]") == place
        assert entries[0]["sequence"].count("[MASK]") == MASKS + 1


def test_logits_without_probabilities(tokenizer):
    model = small_text_model("masked_lm", tokenizer)
    for weight in model.trainable_weights:
        weight.assign(np.full(weight.shape, np.nan))
    with pytest.raises(ValueError, match="its logits are NaN or infinite"):
        from_keras(model, tokenizer)(FRANCE)


def test_the_word_takes_the_place_of_the_mask(tokenizer):
    def run(token_ids, mask_positions):
        logits = np.zeros((1, MASKS, tokenizer.size), "float32")
        logits[:, :, tokenizer.tokens.index("capital")] = 9
        logits[:, :, tokenizer.tokens.index("##s")] = 8
        logits[:, :, tokenizer.tokens.index(".")] = 7
        logits[:, :, tokenizer.tokens.index("of")] = 6
        logits[:, :, tokenizer.tokens.index("rome")] = 5
        return logits

    model = TextModel(run, "masked_lm", tokenizer, 16, (), Path("here"))
    text = "Paris, the [MASK] of  France"
    first, second, third = model.fill_mask(text, top=3, pieces=True)
    assert first["sequence"] == "Paris, the capital of  France"
    assert (second["token_str"], second["sequence"]) == ("##s", "Paris, thes of  France")
    assert third["token_str"] == "."
    assert [e["token_str"] for e in model.fill_mask(text, 2)] == ["capital", "of"]
    every = [e["token_str"] for e in model.fill_mask(text, 10**6)]
    assert len(every) == tokenizer.are_words.sum() < tokenizer.size - 5
    assert all(word.isalnum() for word in every)


def test_classify(open_task, tokenizer):
    model = open_task("text_classification")
    assert (model.length, model.labels) == (LENGTH, LABELS)
    found = model.classify("a gem of a film")
    assert sorted(entry["label"] for entry in found) == sorted(LABELS)
    assert sum(entry["score"] for entry in found) == pytest.approx(1)
    assert found[0]["score"] >= found[1]["score"]
    assert model.classify("a gem of a film", top=1) == found[:1]
    assert model.classify(["a gem of a film", "a"]) == [found, model.classify("a")]
    ids = np.array([tokenizer.encode("a gem of a film", "a bore", length=LENGTH).ids])
    logits = to_numpy(small_text_model("text_classification", tokenizer)(ids))[0]
    pair = model.classify("a gem of a film", "a bore")
    assert pair[0]["label"] == LABELS[logits.argmax()]
    assert pair[0]["score"] == pytest.approx(1 / (1 + np.exp(-np.ptp(logits))), rel=1e-3)


def test_long_text_is_reported_and_cut(folder):
    lines, long = [], " ".join(LINES * 3)
    for task, given in (("masked_lm", f"[MASK] {long}"), ("text_classification", long)):
        model = load(folder / f"{task}.tflite", warn=lines.append)
        assert model(given)
        whole = len(model.tokenizer.encode(given).ids)
        assert lines.pop().startswith(f"the text has {whole} tokens, the model takes {LENGTH}; ")
    assert not lines


@pytest.mark.filterwarnings("ignore:the text has")
def test_mistakes(folder):
    masked, classifier = (load(folder / f"{task}.tflite") for task in TASKS)
    for use, given, reason in (
        (masked.fill_mask, [f"{LINES[0] * 5} [MASK]"], "first 46 tokens"),
        (masked.fill_mask, ["\udcff [MASK]"], "UTF-8"),
        (masked.fill_mask, ["Paris is [mask]."], "no .MASK."),
        (masked.classify, ["a"], "a masked language model"),
        (classifier.classify, [" \n"], "the text is empty"),
        (classifier.classify, [["a", "b"], ["c"]], "shorter"),
        (dataclasses.replace(classifier, pairs=True).classify, ["a"], "pairs of texts"),
        (dataclasses.replace(classifier, pairs=False).classify, ["a", "b"], "single texts"),
    ):
        with refused(reason):
            use(*given)


def test_files_with_the_tokenizer_of_another_model(folder, tokenizer, tmp_path):
    model = small_text_model("masked_lm", tokenizer)
    model.save(tmp_path / "model.keras")
    with refused("has no tokenizer"):
        load(tmp_path)
    other = Tokenizer.train(["another text with other words"], vocabulary_size=128)
    with refused(f"{tokenizer.size} tokens"):
        from_keras(model, other)
    copy_archive(
        folder / "masked_lm.tflite", tmp_path / "other.tflite", "tokenizer.json", other.text
    )
    with refused("hash"):
        load(tmp_path / "other.tflite")


def test_model_in_memory(tokenizer, folder):
    model = small_text_model("text_classification", tokenizer)
    opened = from_keras(model, tokenizer, LABELS)
    expected = load(folder / "text_classification.keras").classify("a gem")
    assert opened.classify("a gem") == expected
    assert {entry["label"] for entry in from_keras(model, tokenizer).classify("a")} == {"0", "1"}
    opened = from_keras(model, tokenizer, ["very_bad", "good"])
    assert {entry["label"] for entry in opened.classify("a")} == {"very bad", "good"}
