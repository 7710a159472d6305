"""Pictures of another aspect ratio than the model: trained, exported and read with one fit."""

import json

import numpy as np
import pytest
from PIL import Image

from keras_gmlp import runs
from keras_gmlp.data.run_folder import Run
from keras_gmlp.evaluation.labelled import LabelledImages
from keras_gmlp.evaluation.scoring import evaluate
from keras_gmlp.runs import RunSettings
from keras_gmlp.runs.prepare import prepare
from keras_gmlp.training.model_card import write_command
from keras_gmlp.utils.card import read_card
from keras_gmlp.weights.loading import load

SIZES = {"dim": 16, "depth": 1, "hidden_dim": 32}
CHANGES = {"epochs": 1, "batch_size": 16, "precision": "float32"}


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Grey noise, twice as wide as high, with a mark at the left or right edge in its colour."""
    root, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for i in range(60):
        label, side = i % 2, rng.integers(2)
        pixels = rng.integers(0, 100, (24, 48, 1)).repeat(3, axis=-1)
        pixels[:, slice(44, 48) if side else slice(0, 4), label] += 120
        path = root / ("red", "green")[label] / f"{i:03}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(pixels.astype("uint8")).save(path)
    return root


def settings_of(photos, directory, size, fit):
    chosen = {"data": str(photos), "image_size": size, "fit": fit, "validation": 0.1}
    changes = {**CHANGES, "set_model": SIZES, "set": {"crop": 0}}
    return RunSettings(**chosen, **changes, out=str(directory))


@pytest.fixture(scope="module")
def trained(photos, tmp_path_factory):
    """The folder and the metrics of a run on padded pictures."""
    directory = tmp_path_factory.mktemp("run")
    settings = settings_of(photos, directory, 16, "pad")
    return directory, runs.train_run(settings, export=False, verbose=0)


def test_card_recipe_and_command_keep_the_fit(trained):
    directory, metrics = trained
    assert read_card(directory / "model.keras")["fit"] == "pad"
    recipe = json.loads((directory / "recipe.json").read_text())
    assert recipe["fit"] == "pad"
    assert "--fit pad" in write_command(recipe["command"])
    images = LabelledImages(recipe["data"])
    _, result = evaluate([load(directory / "model.keras")], images)
    assert result.correct.mean() == pytest.approx(metrics["test_accuracy"])


def test_programs_read_the_data_with_the_fit(trained, photos):
    directory, _ = trained
    classifier = load(directory / "model.keras")
    shown, _ = Run(directory).load_images(classifier.image_shape, fit="pad").test.arrays()
    name, _, division = Run(directory).data(None, "validation")
    held_out = LabelledImages(name, "validation", **division)  # for calibration
    for images in (shown, next(iter(held_out.batches(classifier)))[0]):
        assert not images[:, :4].any()
        assert images[:, 4:12].any(axis=(1, 2, 3)).all()


def test_further_training_takes_the_fit_of_the_weights(trained, photos, tmp_path):
    chosen = {"weights": str(trained[0]), "data": str(photos), "image_size": (16, 24)}
    prepared = prepare(RunSettings(**chosen, out=str(tmp_path / "run")))
    assert prepared.data.fit == "pad"
    assert prepared.model.input_shape == (None, 16, 24, 3)
