"""Classifiers that the page learned, in Python."""

import dataclasses
import json

import numpy as np
import pytest
from load_app import ROOT
from refused import refused

from keras_gmlp.data.images.read_image import read_views
from keras_gmlp.inference.page_head import add_head
from keras_gmlp.inference.similarity import make_embedder
from keras_gmlp.tasks.confidence import Confidence
from keras_gmlp.utils.card import read_card
from keras_gmlp.utils.sources import DEFAULT_BACKBONE, FEATURES_FIRST, find_model
from keras_gmlp.weights.loading import load

MODEL = find_model(DEFAULT_BACKBONE, FEATURES_FIRST)[0]
CAT = ROOT / "docs" / "cat.jpg"


@pytest.fixture(scope="module")
def classifier():
    return load(MODEL)


@pytest.fixture
def head():
    """The contents of a file with two classes, of which the bias decides for the second."""
    card = read_card(MODEL)
    return {
        "kind": "keras_gmlp.head",
        "labels": ["dögs", "cats"],
        "model": "small",
        "model_sha256": card["model_sha256"],
        "weights": np.random.default_rng(0).normal(0, 0.1, (2, card["features"])).tolist(),
        "bias": [0, 50],
        "parts": [],
    }


def write(folder, head):
    path = folder / "classifier.json"
    path.write_text(json.dumps(head, ensure_ascii=False), "utf-8")
    return path


def test_logits_by_hand(classifier, head, tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (3, *classifier.image_shape), "uint8")
    features = make_embedder(classifier)(images)
    expected = features @ np.array(head["weights"]).T + head["bias"]
    thresholds = (0.5,) * len(classifier.labels)
    several = Confidence(2.0, thresholds=thresholds)
    other = dataclasses.replace(classifier, confidence=several, task="multi_label_classification")
    found = add_head(other, write(tmp_path, head))
    np.testing.assert_allclose(found.logits(images), expected, rtol=1e-5)
    assert found.confidence == Confidence()  # that of the former classes
    assert found.task == "image_classification"


def test_answer_is_the_mean_of_the_views(classifier, head, tmp_path):
    parts = [[0.5, 0, 1], [0.25, 0.5, 0.5]]
    head["bias"] = [0, 0]
    found = add_head(classifier, write(tmp_path, {**head, "parts": parts}))
    views = read_views(CAT, classifier.image_shape, parts)
    features = make_embedder(classifier)(views).mean(0)
    expected = np.exp(features @ np.array(head["weights"]).T)
    assert dict(found.classify(CAT)) == pytest.approx(
        dict(zip(head["labels"], expected / expected.sum(), strict=True)), rel=1e-4
    )
    plain = add_head(classifier, write(tmp_path, head))  # of the whole picture only
    whole = plain.confidence.probabilities(plain.logits(plain.read(CAT)[None])[0])
    assert [p for _, p in plain.classify(CAT)] == pytest.approx(sorted(whole)[::-1], rel=1e-6)
    assert dict(plain.classify(CAT)) != pytest.approx(dict(found.classify(CAT)), rel=1e-2)


def test_classify_with_a_head(head, tmp_path, app):
    given = ("classify", CAT, "--head", write(tmp_path, head), "--json")
    for model in ([], ["--model", MODEL.parent]):  # without: the default one
        code, out, _ = app(*given, *model)
        best, other = json.loads(out)["predictions"]
        assert (code, best["label"], other["label"]) == (0, "cats", "dögs")
    code, _, error = app(*given, "--model", "gmlp_conv_n4_32-cifar10")
    assert (code, error.count("\n")) == (1, 1)
    assert "learned with small" in error


def test_damaged_file_is_one_line(classifier, head, tmp_path):
    for change in (
        {"labels": ["a", "b\nc"]},
        {"weights": [[1], [2, 3]]},
        {"parts": [[0.5, 0.5, 1.5]]},
    ):
        path = write(tmp_path, {**head, **change})
        with refused(r"Download .+ again\.$", path):
            add_head(classifier, path)
