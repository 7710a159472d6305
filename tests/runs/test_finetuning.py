"""`keras_gmlp.finetune`: from a folder to a model in one call."""

import dataclasses
import json

import numpy as np
import pytest
from own_images import write_folder, write_start

import keras_gmlp
from keras_gmlp import runs
from keras_gmlp.models.structure import find_zooms
from keras_gmlp.runs import choosing


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    place = tmp_path_factory.mktemp("own")
    return write_start(place / "start.keras"), write_folder(place / "photos", noise=60)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(choosing, "plan_training", lambda images: {"epochs": 1, "batch_size": 8})


def test_model_and_metrics(places, tmp_path):
    weights, folder = places
    options = {"directory": tmp_path, "precision": "float32", "verbose": 0}
    model, metrics = keras_gmlp.finetune(folder, weights, **options)
    assert metrics["labels"] == ["blue", "green", "red"]
    assert metrics["directory"] == str(tmp_path)
    data = keras_gmlp.data.load(folder, (8, 8))
    images, labels = data.test.arrays()
    accuracy = float(np.mean(model.predict(images, verbose=0).argmax(1) == labels))
    assert accuracy == pytest.approx(metrics["test_accuracy"], abs=1e-5)
    assert keras_gmlp.finetune(folder, weights, **options)[1] == metrics  # loaded


def test_the_head_alone_on_image_data(places, tmp_path, capsys):
    weights, folder = places
    data = keras_gmlp.data.load(folder, (8, 8))
    _, metrics = keras_gmlp.finetune(data, weights, directory=tmp_path, epochs=0, flip=False)
    recipe = json.loads((tmp_path / "recipe.json").read_text())
    assert (metrics["epochs"], len(metrics["candidates"])) == (0, 1)
    assert recipe["fit_head"] == metrics["candidates"][0]["fit_head"]
    assert "linear head" in capsys.readouterr().out


def test_pictures_in_files_are_seen_at_several_zooms(places, tmp_path, monkeypatch):
    weights, folder = places
    monkeypatch.setattr("keras_gmlp.runs.settings.DEFAULT_BACKBONE", weights)
    options = {"epochs": 0, "precision": "float32", "verbose": 0}
    model, metrics = keras_gmlp.finetune(folder, weights, directory=tmp_path / "a", **options)
    assert (model.input_shape, find_zooms(model)) == ((None, 16, 16, 3), (1, 0.75, 0.5))
    repeated = dataclasses.replace(runs.read_run(tmp_path / "a"), out=str(tmp_path / "b"))
    assert runs.train_run(repeated, export=False, verbose=0)["test_loss"] == metrics["test_loss"]
    model, _ = keras_gmlp.finetune(
        folder, weights, directory=tmp_path / "c", image_size=8, **options
    )
    assert find_zooms(model) == (1,)
