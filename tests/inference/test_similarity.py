"""The images in a folder that are most similar to another."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from blobs import compress, scene
from load_app import load_app
from other_backend import run_under
from PIL import Image
from random_models import random_model

from keras_gmlp.export.formats import export
from keras_gmlp.inference import images as inference
from keras_gmlp.inference.similarity import (
    embed_files,
    find_features,
    find_nearest,
    find_similar,
    make_embedder,
)
from keras_gmlp.tasks.classifier import Classifier


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
    features = embed_files(embed, lambda index: images[index], range(70))
    logits = keras.ops.convert_to_numpy(model.get_layer("head")(features))
    np.testing.assert_allclose(logits, model.predict(images, verbose=0), atol=1e-5)
    other = keras.Sequential([keras.Input((8, 8, 1))], name="other")
    with pytest.raises(ValueError, match="no layer named head; expected an image classifier"):
        make_embedder(SimpleNamespace(model=other))


def test_features_of_a_folder(tmp_path):
    assert find_features(tmp_path) == tmp_path
    (tmp_path / "model.tflite").touch()
    (tmp_path / "model.keras").touch()
    assert find_features(str(tmp_path)) == tmp_path / "model.keras"
    (tmp_path / "model_features.tflite").touch()  # requires no Keras
    assert find_features(tmp_path) == tmp_path / "model_features.tflite"
    assert find_features("hf-hub:timm/gmlp_s16_224.ra3_in1k").startswith("hf-hub:")


def test_planted_copy_is_first(pictures, model, capsys, tmp_path):
    sheet = tmp_path / "sheet.png"
    arguments = [str(pictures / "query.png"), "--data", str(pictures), "--model", str(model)]
    assert load_app("similar").main([*arguments, "--top", "3", "--out", str(sheet)]) == 1
    out, error = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].split()[1] == str(pictures / "more" / "copy.jpg")
    assert len(lines) == 4
    assert lines[-1].split() == ["to", str(sheet)]
    assert "broken.png: not an image" in error
    assert error.count("\n") == 1
    with Image.open(sheet) as picture:
        assert np.asarray(picture.convert("L")).std() > 3  # not blank


def test_json_of_a_run_leaves_out_the_query(pictures, model, capsys, tmp_path):
    query, run = str(pictures / "query.png"), str(model.parent)
    good = tmp_path / "good"
    good.mkdir()
    for path in sorted(pictures.glob("0*.png")):
        (good / path.name).symlink_to(path)
    (good / "link.png").symlink_to(query)
    arguments = [query, "--data", str(good), "--model", run, "--top", "99", "--json"]
    assert load_app("similar").main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["query"] == query
    assert {row["file"] for row in found["similar"]} == {str(p) for p in good.glob("0*.png")}
    values = [row["similarity"] for row in found["similar"]]
    assert values == sorted(values, reverse=True)
    assert all(-1 <= value <= 1 for value in values)


def test_tflite_file_imports_no_keras(pictures, tmp_path):
    path = export(random_model("gmlp"), tmp_path, ["features"])["features"]
    program = (
        "import sys\n"
        "from keras_gmlp import inference\n"
        "from keras_gmlp.inference import similarity\n"
        "_, model, query, *paths = sys.argv\n"
        "print(similarity.find_similar(inference.load(model), query, paths)[0][0])\n"
        "print([m for m in ('keras', 'tensorflow') if m in sys.modules])"
    )
    query, copy = pictures / "query.png", pictures / "more" / "copy.jpg"
    out = run_under("tensorflow", program, path, query, pictures / "00.png", copy)
    assert out.split() == [str(copy), "[]"]


def test_features_that_are_no_numbers(pictures, tmp_path):
    broken = random_model("gmlp")
    broken.get_layer("norm").gamma.assign(np.full(32, np.nan))
    classifier = inference.from_keras(broken, tmp_path / "m.keras", {})
    paths = [pictures / "00.png"]
    with pytest.raises(ValueError, match=r"m\.keras: its features are NaN or infinite"):
        find_similar(classifier, pictures / "query.png", paths)


def test_nothing_to_compare(pictures, model):
    query = pictures / "query.png"
    with pytest.raises(ValueError, match=r"query\.png: no other image to compare it with"):
        find_similar(inference.load(model), query, [query])


def test_model_without_features(pictures):
    classifier = Classifier(None, (16, 16, 3), ("a", "b"), "model.onnx")
    with pytest.raises(ValueError, match=r"model\.onnx: has no features; expected a \.keras file"):
        make_embedder(classifier)
