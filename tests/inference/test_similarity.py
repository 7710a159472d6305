"""The images, or texts, that are most similar to another."""

import dataclasses
import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from check_layer import to_numpy
from load_app import ROOT
from other_backend import run_under
from pictures import compress, scene
from random_models import random_model
from refused import refused
from small_text import LENGTH, LINES, small_text_model

from keras_gmlp import text
from keras_gmlp.export.writing import export
from keras_gmlp.inference.opening import open_keras
from keras_gmlp.inference.similarity import embed, find_nearest, make_embedder
from keras_gmlp.tasks.classifier import Classifier, make_classifier
from keras_gmlp.utils.sources import (
    DEFAULT_BACKBONE,
    DEFAULT_LANGUAGE_MODEL,
    FEATURES_FIRST,
    find_model,
    find_shipped,
)
from keras_gmlp.weights.loading import load


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Six pictures, a copy of the query in another format, and a broken file."""
    folder = tmp_path_factory.mktemp("similar") / "pictures"
    (folder / "more").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number in range(6):
        scene(rng).save(folder / f"{number:02}.png")
    query = scene(rng)
    query.save(folder / "query.png")
    compress(query).save(folder / "more" / "copy.jpg")
    (folder / "broken.png").write_bytes(b"broken")
    return folder


@pytest.fixture(scope="module")
def model(pictures):
    path = pictures.parent / "model.keras"
    random_model("gmlp", depth=1).save(path)
    return path


def test_nearest_by_hand():
    vectors = np.array([[0, 2], [0, 0], [3, 3], [-1, 0], [5, 0]], "float32")
    found = find_nearest(np.array([2, 0], "float32"), vectors, 4)
    places, cosines = zip(*found, strict=True)
    assert places == (4, 2, 0, 3)
    np.testing.assert_allclose(cosines, [1, 0.5**0.5, 0, -1], atol=1e-6)


def test_vectors_are_what_the_head_takes(model):
    classifier = load(model)
    images = np.random.default_rng(0).integers(0, 256, (70, *classifier.image_shape), "uint8")
    logits = to_numpy(classifier.model.get_layer("head")(embed(classifier, images)))
    np.testing.assert_allclose(logits, classifier.logits(images), atol=1e-5)
    other = keras.Sequential([keras.Input((8, 8, 1))], name="other")
    with pytest.raises(ValueError, match="head"):
        make_embedder(SimpleNamespace(model=other))


def check_threads(call, inputs):
    """Checks that eight threads at once get the answers of one."""
    expected = [call(one) for one in inputs]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(call, inputs * 2))
    for each, own in zip(found, expected * 2, strict=True):
        np.testing.assert_allclose(each, own, atol=1e-4)


def test_threads_share_a_classifier_and_its_embedder(model):
    for source in (model, find_shipped(DEFAULT_BACKBONE)):  # Keras and LiteRT
        classifier = load(source)
        embedder, shape = make_embedder(classifier), (4, 1, *classifier.image_shape)
        images = np.random.default_rng(0).integers(0, 256, shape, "uint8")
        calls = [(call, image) for image in images for call in (classifier.logits, embedder)]
        check_threads(lambda pair: pair[0](pair[1])[0], calls)


def test_threads_share_a_text_model():
    model = load(find_shipped(DEFAULT_LANGUAGE_MODEL))
    texts = [f"{'The ' * n} capital of France is [MASK]." for n in range(1, 5)]
    check_threads(lambda text: [each["score"] for each in model.fill_mask(text)], texts)


def test_planted_copy_is_first_and_the_query_is_left_out(pictures, model, app, tmp_path):
    query, sheet = pictures / "query.png", tmp_path / "sheet.png"
    given = ("--data", pictures, "--model", model.parent, "--out", sheet, "--json")
    code, out, error = app("similar", query, *given)
    assert (code, error.count("\n")) == (1, 1)
    assert "broken.png: not an image" in error
    found = json.loads(out)["similar"]
    assert found[0]["file"] == str(pictures / "more" / "copy.jpg")
    assert len(found) == 7  # without the query
    values = [row["similarity"] for row in found]
    assert 1 >= values[0] >= values[-1] >= -1
    assert sheet.stat().st_size > 1000


def test_what_is_not_compared(pictures, app, model, small_model):
    broken = random_model("gmlp", depth=1)
    broken.get_layer("norm").gamma.assign(np.full(32, np.nan))
    classifier, query = make_classifier(open_keras(broken, "m.keras")), pictures / "query.png"
    with refused("its features are NaN or infinite", "m.keras"):
        embed(classifier, [query])
    with refused("not an image"):
        embed(classifier, [pictures / "broken.png"])
    with refused("the text is empty"):
        embed(small_model, ["a gem", ""])
    with refused("no features", "m.onnx"):
        embed(Classifier(None, (16, 16, 3), ("a", "b"), "m.onnx", "image_classification"), [query])
    code, _, error = app("similar", query, "--data", query, "--model", model)
    assert (code, "no images" in error) == (1, True)


NOTES = [
    "Paris is the capital of France.",
    "The films of this winter: a gem, a bore, and a bad joke.",
    "",
    "In the old house by the river lives a cat.",
    "Rome is the capital of Italy.",
]
QUERY = "A cat lives in the old house by the river."


@pytest.fixture(scope="module")
def small_model(tokenizer):
    return text.from_keras(small_text_model("masked_lm", tokenizer), tokenizer)


def test_vectors_are_means_of_encoded_tokens_without_padding(small_model, tokenizer):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # such as one about masks
        found = embed(small_model, [QUERY, "a gem"])
    assert (found.shape, found.dtype) == ((2, 8), np.float32)
    model = small_model.model
    (token_ids,) = (tensor for tensor in model.inputs if tensor.name == "token_ids")
    encoded = keras.Model(token_ids, model.get_layer("norm").output)
    for line, vector in zip((QUERY, "a gem"), found, strict=True):
        tokens = to_numpy(encoded(np.array([tokenizer.encode(line).ids])))  # has no padding
        np.testing.assert_allclose(vector, tokens[0].mean(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(embed(small_model, "a gem"), found[1], rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def features_file(small_model, tokenizer, tmp_path_factory):
    texts = {"tokenizer": tokenizer, "length": LENGTH}
    folder = tmp_path_factory.mktemp("texts")
    return export(small_model.model, folder, ["features"], **texts)["features"]


def test_tflite_vectors_equal_those_of_keras(small_model, features_file):
    small = load(features_file)
    assert small.model is None
    expected, found = embed(small_model, LINES), embed(small, LINES)
    cosines = np.sum(found * expected, axis=1)  # large tables of weights have 8 bits in the file
    cosines /= np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
    np.testing.assert_allclose(cosines, 1, atol=1e-3)


def test_cut_texts_are_one_warning(small_model, tokenizer):
    lines = []
    model = dataclasses.replace(small_model, warn=lines.append)
    long = " ".join(LINES * 3)
    both = embed(model, [long, "a gem", long + " more"])
    (line,) = lines
    assert line.startswith(f"texts with more than the {LENGTH} tokens that the model takes: 2;")
    np.testing.assert_allclose(both[0], both[2], atol=1e-5)
    ids = np.array([tokenizer.encode(long, length=LENGTH).ids])
    np.testing.assert_allclose(make_embedder(model)(ids)[0], both[0], atol=1e-5)


def test_tflite_files_require_no_keras(features_file, pictures, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("\n".join(NOTES), "utf-8")
    program = """
import sys
import keras_gmlp
from keras_gmlp import inference, text
_, query, notes, masked, image, copy, other, features, cat, folder = sys.argv
heavy = {"keras", "tensorflow", "jax", "torch", "transformers", "PIL"}
keras_gmlp.load(masked).fill_mask("Paris is the [MASK] of France.")
text.embed(keras_gmlp.load(masked), "a gem")
keras_gmlp.load("amlp_nano-sst2").classify("a gem")
print(sorted(heavy & set(sys.modules)))
print(keras_gmlp.load("gmlp_n4_32-cifar10").classify(cat)[0][0])
print(inference.find_similar(keras_gmlp.load(features), image, [other, copy])[0][0])
from keras_gmlp.programs.similar import main
print(main([query, "--data", notes, "--model", masked, "--top", "1"]))
from keras_gmlp.programs.evaluate import main
print(main(["gmlp_n4_32-cifar10", "--data", folder, "--split", "all", "--json"]))
print(sorted((heavy - {"PIL"}) & set(sys.modules)))
"""
    for label in ("cat", "frog"):
        (tmp_path / "animals" / label).mkdir(parents=True)
        (tmp_path / "animals" / label / "0.png").symlink_to(pictures / "00.png")
    images = (pictures / name for name in ("query.png", "more/copy.jpg", "00.png"))
    features, _ = find_model(DEFAULT_BACKBONE, FEATURES_FIRST)
    given = (QUERY, notes, features_file, *images, features, ROOT / "docs/cat.jpg")
    printed = run_under("tensorflow", program, *given, tmp_path / "animals").splitlines()
    texts, best, nearest, first, *codes, rest = printed
    assert (texts, best, nearest, rest) == ("[]", "cat", "1", "[]")
    assert "In the old house by the river" in first
    assert (codes[0], json.loads(codes[1])["images"], codes[2]) == ("0", 2, "0")
