"""The images in a folder that are most similar to another."""

import dataclasses
import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from blobs import compress, scene
from check_layer import to_numpy
from load_app import ROOT
from other_backend import run_under
from random_models import random_model
from refused import refused
from small_text import LENGTH, LINES, save_small_model, small_text_model, small_tokenizer

from keras_gmlp.export.formats import export
from keras_gmlp.inference import images as inference
from keras_gmlp.inference import text as text_inference
from keras_gmlp.inference.similarity import (
    embed_all,
    embed_texts,
    find_nearest,
    find_similar,
    find_similar_texts,
    make_embedder,
)
from keras_gmlp.tasks.classifier import Classifier
from keras_gmlp.utils.shipped import (
    DEFAULT_BACKBONE,
    DEFAULT_LANGUAGE_MODEL,
    find_shipped,
    list_shipped,
)
from keras_gmlp.utils.sources import FEATURES_FIRST, find_model


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Twelve pictures, a copy of the query in another format, and a broken file."""
    folder = tmp_path_factory.mktemp("similar") / "pictures"
    (folder / "more").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number in range(12):
        scene(rng).save(folder / f"{number:02}.png")
    query = scene(rng)
    query.save(folder / "query.png")
    compress(query).save(folder / "more" / "copy.jpg")
    (folder / "broken.png").write_bytes(b"broken")
    return folder


@pytest.fixture(scope="module")
def model(pictures):
    path = pictures.parent / "model.keras"
    random_model("gmlp").save(path)
    return path


def test_nearest_by_hand():
    vectors = np.array([[0, 2], [0, 0], [3, 3], [-1, 0], [5, 0]], "float32")
    found = find_nearest(np.array([2, 0], "float32"), vectors, 4)
    assert list(found) == [4, 2, 0, 1]
    np.testing.assert_allclose(list(found.values()), [1, 0.5**0.5, 0, 0], atol=1e-6)


def test_embedder_returns_what_the_head_takes():
    import keras

    model = random_model("gmlp")
    images = np.random.default_rng(0).integers(0, 256, (70, *model.input_shape[1:]))
    embed = make_embedder(SimpleNamespace(model=model))
    features = embed_all(embed, lambda index: images[index], range(70))
    logits = keras.ops.convert_to_numpy(model.get_layer("head")(features))
    np.testing.assert_allclose(logits, to_numpy(model(images)), atol=1e-5)
    other = keras.Sequential([keras.Input((8, 8, 1))], name="other")
    with pytest.raises(ValueError, match="head"):
        make_embedder(SimpleNamespace(model=other))


def check_threads(call, inputs):
    """Checks that eight threads at once get the answers of one."""
    expected = [call(one) for one in inputs]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(call, inputs * 4))
    for each, own in zip(found, expected * 4, strict=True):
        np.testing.assert_allclose(each, own, atol=1e-4)


def check_threads_of(classifier):
    embed = make_embedder(classifier)
    shape = (24, 1, *classifier.image_shape)
    images = np.random.default_rng(0).integers(0, 256, shape, "uint8")
    calls = [(call, image) for image in images for call in (classifier.logits, embed)]
    check_threads(lambda pair: pair[0](pair[1])[0], calls)


@pytest.mark.once
def test_threads_share_a_tflite_classifier_and_its_embedder():
    check_threads_of(inference.load(find_shipped(DEFAULT_BACKBONE)))


def test_threads_share_a_keras_classifier_and_its_embedder(model):
    check_threads_of(inference.load(model))


@pytest.mark.once
def test_threads_share_a_text_model():
    model = text_inference.load(find_shipped(DEFAULT_LANGUAGE_MODEL))
    texts = [f"{'The ' * n} capital of France is [MASK]." for n in range(1, 9)]
    check_threads(lambda text: [each["score"] for each in model.fill_mask(text)], texts)


def test_planted_copy_is_first(pictures, model, app, tmp_path):
    sheet = tmp_path / "sheet.png"
    given = ("similar", pictures / "query.png", "--data", pictures, "--model", model)
    code, out, error = app(*given, "--top", "3", "--out", sheet)
    first, _, _, last = out.splitlines()
    assert (code, first.split()[1]) == (1, str(pictures / "more" / "copy.jpg"))
    assert last.split() == ["to", str(sheet)]
    assert "broken.png: not an image" in error
    assert error.count("\n") == 1
    assert sheet.stat().st_size > 1000


def test_json_of_a_run_leaves_out_the_query(pictures, model, app, tmp_path):
    query, good = str(pictures / "query.png"), tmp_path / "good"
    good.mkdir()
    for path in sorted(pictures.glob("0*.png")):
        (good / path.name).symlink_to(path)
    (good / "link.png").symlink_to(query)
    given = ("--data", good, "--model", model.parent, "--top", "99", "--json")
    code, out, _ = app("similar", query, *given)
    found = json.loads(out)
    assert (code, found["query"]) == (0, query)
    assert {row["file"] for row in found["similar"]} == {str(p) for p in good.glob("0*.png")}
    values = [row["similarity"] for row in found["similar"]]
    assert values == sorted(values, reverse=True)
    assert all(-1 <= value <= 1 for value in values)


def test_what_is_not_compared(pictures):
    broken = random_model("gmlp")
    broken.get_layer("norm").gamma.assign(np.full(32, np.nan))
    classifier, query = inference.from_keras(broken, "m.keras", {}), pictures / "query.png"
    with refused("its features are NaN or infinite", "m.keras"):
        find_similar(classifier, query, [pictures / "00.png"])
    with refused("no other image to compare it with", query):
        find_similar(classifier, query, [query])
    with refused("no features", "model.onnx"):
        make_embedder(Classifier(None, (16, 16, 3), ("a", "b"), "model.onnx"))


NOTES = [
    "Paris is the capital of France.",
    "The films of this winter: a gem, a bore, and a bad joke.",
    "",
    "In the old house by the river lives a cat.",
    "Rome is the capital of Italy.",
]
TASKS = ("masked_lm", "text_classification")
QUERY = "A cat lives in the old house by the river."


@pytest.fixture(scope="module")
def tokenizer():
    return small_tokenizer()


@pytest.fixture(scope="module")
def text_files(tokenizer, tmp_path_factory):
    """A `.keras` and a `.tflite` file with vectors of each task, by the task."""
    folder, files = tmp_path_factory.mktemp("texts"), {}
    for task in TASKS:
        place = folder / task
        place.mkdir()
        model, labels = save_small_model(place / "model.keras", task, tokenizer)
        texts = {"tokenizer": tokenizer, "length": LENGTH}
        written = export(model, place, ["features"], labels, **texts)
        files[task] = place / "model.keras", written["features"]
    return files


def test_vectors_are_means_of_encoded_tokens_without_padding(tokenizer):
    import keras

    model = small_text_model("masked_lm", tokenizer)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # such as one about masks
        opened = text_inference.from_keras(model, tokenizer)
        found = embed_texts(opened, [QUERY, "a gem"])
    assert (found.shape, found.dtype) == ((2, 8), np.float32)
    (token_ids,) = (tensor for tensor in model.inputs if tensor.name == "token_ids")
    encoded = keras.Model(token_ids, model.get_layer("norm").output)
    for text, vector in zip((QUERY, "a gem"), found, strict=True):
        tokens = to_numpy(encoded(tokenizer.encode(text).ids[None]))  # has no padding
        np.testing.assert_allclose(vector, tokens[0].mean(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(embed_texts(opened, "a gem"), found[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("task", TASKS)
def test_tflite_vectors_equal_those_of_keras(text_files, task):
    keras_model, small = map(text_inference.load, text_files[task])
    assert small.model is None
    expected = embed_texts(keras_model, LINES)
    found = embed_texts(small, LINES)  # large tables of weights have 8 bits in the file
    cosines = np.sum(found * expected, axis=1)
    cosines /= np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
    np.testing.assert_allclose(cosines, 1, atol=1e-3)


# Sentences, each before one that says the same in other words or in another order.
PARAPHRASES = """\
The meeting with the bank is on Monday at nine.
On Monday morning we see the people of the bank.
We rowed along the coast and had lunch on the beach.
At the beach we ate lunch after rowing by the coast.
The company sold more cars this year than last year.
This year, the firm's sales of cars were higher.
She plays the violin in the city orchestra.
She is a violinist in the orchestra of the city.
The new law lowers the tax on small farms.
Small farms pay less tax under the new law.
Heavy snow closed the road over the pass for a week.
The mountain road was closed for seven days because of the snow.
He was born in Vienna and studied medicine there.
He went to medical school in Vienna, where he was born.
The team won the last match of the season.
In the final game of the season the team was victorious.
The river floods the lower town every spring.
Each spring the lower part of the town is under water because of the river.
A museum for old trains opened near the station.
Near the station there is now a museum of historic trains.
""".splitlines()


@pytest.mark.skipif(DEFAULT_LANGUAGE_MODEL not in list_shipped(), reason="the model is not here")
def test_included_model_ranks_a_planted_paraphrase_first():
    model = text_inference.load(find_model(DEFAULT_LANGUAGE_MODEL, FEATURES_FIRST)[0])
    notes, paraphrases = PARAPHRASES[::2], PARAPHRASES[1::2]
    vectors = embed_texts(model, [*notes, *paraphrases])
    for number, paraphrase in enumerate(paraphrases):
        found = find_nearest(vectors[len(notes) + number], vectors[: len(notes)], 1)
        assert [*found] == [number], paraphrase
    found = find_similar_texts(model, paraphrases[0], notes, top=1)
    assert [place for place, _ in found] == [0]


def test_cut_texts_are_one_warning(text_files):
    lines = []
    model = text_inference.load(text_files["masked_lm"][0], warn=lines.append)
    long = " ".join(LINES * 3)
    both = embed_texts(model, [long, "a gem", long + " more"])
    (line,) = lines
    assert line.startswith(f"texts with more than the {LENGTH} tokens that the model takes: 2;")
    np.testing.assert_allclose(both[0], both[2], atol=1e-5)
    ids = model.tokenizer.encode(long, length=LENGTH).ids
    np.testing.assert_allclose(make_embedder(model)(ids[None])[0], both[0], atol=1e-5)


def test_texts_that_are_not_compared(text_files):
    model = text_inference.load(text_files["masked_lm"][1])
    for texts, reason in ((["a gem", ""], "the text is empty"), ([], "no texts")):
        with pytest.raises(ValueError, match=reason):
            embed_texts(model, texts)
    with pytest.raises(ValueError, match="no texts"):
        find_similar_texts(model, "a gem", [])
    ((place, _), *_) = find_similar_texts(model, "a gem", iter(["a bore", "a gem"]))
    assert place == 1


def test_files_and_weights_without_vectors(tokenizer):
    model = small_text_model("masked_lm", tokenizer)
    opened = text_inference.from_keras(model, tokenizer)
    without = dataclasses.replace(opened, model=None)
    with pytest.raises(ValueError, match="no features"):
        embed_texts(without, "a gem")
    for weight in model.trainable_weights:
        weight.assign(np.full(weight.shape, np.nan))
    with pytest.raises(ValueError, match="its vectors are NaN or infinite"):
        embed_texts(opened, "a gem")


def test_tflite_files_require_no_keras(text_files, pictures, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("\n".join(NOTES), "utf-8")
    program = """
import sys
from keras_gmlp import inference, text
_, query, notes, masked, classes, image, copy, other, features, cat, folder = sys.argv
heavy = {"keras", "tensorflow", "jax", "torch", "transformers", "PIL"}
text.load(masked).fill_mask("Paris is the [MASK] of France.")
text.embed_texts(text.load(masked), "a gem")
text.load("amlp_nano-sst2").classify("a gem")
text.load(classes).classify("A cat lives in Rome.")
print(sorted(heavy & set(sys.modules)))
print(inference.load("gmlp_n4_32-cifar10").classify(cat)[0][0])
print(inference.find_similar(inference.load(features), image, [other, copy])[0][0] == copy)
from keras_gmlp.programs.similar import main
print(main([query, "--data", notes, "--model", masked, "--top", "1"]))
from keras_gmlp.programs.evaluate import main
from keras_gmlp.utils.sources import FEATURES_FIRST, find_model
print(main(["gmlp_n4_32-cifar10", "--data", folder, "--split", "all", "--json"]))
print(sorted((heavy - {"PIL"}) & set(sys.modules)))
"""
    for label in ("cat", "frog"):
        (tmp_path / "animals" / label).mkdir(parents=True)
        (tmp_path / "animals" / label / "0.png").symlink_to(pictures / "00.png")
    images = (pictures / name for name in ("query.png", "more/copy.jpg", "00.png"))
    files = (text_files[task][1] for task in TASKS)
    given = (
        QUERY,
        notes,
        *files,
        *images,
        find_model(DEFAULT_BACKBONE, FEATURES_FIRST)[0],
        ROOT / "docs/cat.jpg",
    )
    printed = run_under("tensorflow", program, *given, tmp_path / "animals").splitlines()
    texts, best, is_copy, first, *codes, rest = printed
    assert (texts, best, is_copy, rest) == ("[]", "cat", "True", "[]")
    assert "In the old house by the river" in first
    assert (codes[0], json.loads(codes[1])["images"], codes[2]) == ("0", 2, "0")
