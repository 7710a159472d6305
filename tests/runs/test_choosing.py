"""A fine-tuning chooses its settings on held-out images, and chooses once."""

import dataclasses
import json

import numpy as np
import pytest
from own_images import write_folder, write_start
from tiny_run import Kill, kill_after_an_epoch

import keras_gmlp
from keras_gmlp import runs
from keras_gmlp.data import Samples
from keras_gmlp.runs import RunSettings, choosing
from keras_gmlp.runs.choosing import HEAD, choose_best
from keras_gmlp.runs.prepare import prepare
from keras_gmlp.training.model_card import write_command


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """The path of the weights and that of the folder."""
    place = tmp_path_factory.mktemp("own")
    return write_start(place / "start.keras"), write_folder(place / "photos", train=10)


@pytest.fixture(autouse=True, scope="module")
def short():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "plan_training", lambda images: {"epochs": 2, "batch_size": 8})
        patch.setattr(choosing, "RATES", (1e-3,))
        patch.setattr(choosing, "choose_best", lambda rows: rows[-1])
        yield


def make_settings(places, directory, data=None, **changes):
    weights, folder = places
    settings = RunSettings(weights=weights, data=data or folder, out=str(directory))
    return settings.with_changes(**{"precision": "float32", **changes})


def read(directory, name):
    return json.loads((directory / name).read_text())


@pytest.fixture(scope="module")
def chosen(places, tmp_path_factory):
    """The folder of a complete run."""
    directory = tmp_path_factory.mktemp("run")
    runs.train_run(make_settings(places, directory), export=False, verbose=0)
    return directory


def test_the_candidates_are_recorded(chosen):
    recipe, metrics = read(chosen, "recipe.json"), read(chosen, "metrics.json")
    choice = recipe["choice"]
    assert (choice["images"], choice["held_out"]) == (6, True)
    names = [row["name"] for row in choice["candidates"]]
    assert names == [HEAD, "all layers, rate 0.001"]
    best = choice["candidates"][-1]
    assert recipe["epochs"] == best["epochs"] == metrics["epochs"] == 2
    assert recipe["fit_head"] == best["fit_head"] > 0
    assert recipe["learning_rate"] == best["learning_rate"]
    assert metrics["candidates"] == choice["candidates"]


def test_a_complete_run_is_loaded_and_its_command_repeats_it(places, chosen, tmp_path):
    loaded = runs.train_run(make_settings(places, chosen), export=False, verbose=0)
    assert loaded == read(chosen, "metrics.json")
    prepared = prepare(make_settings(places, chosen, epochs=0))
    for restart, candidates in ((False, 2), (True, 1)):
        choice, _ = choosing.choose(prepared, restart=restart)
        assert len(choice.candidates) == candidates
    command = write_command(read(chosen, "recipe.json")["command"])
    assert "--epochs 2" in command
    assert "fit_head=" in command
    again = dataclasses.replace(runs.read_run(chosen), out=str(tmp_path))
    metrics = runs.train_run(again, export=False, verbose=0)  # chooses nothing
    assert metrics["test_loss"] == read(chosen, "metrics.json")["test_loss"]


def die(*_):
    raise Kill


def test_killed_and_resumed_gives_the_same_weights(places, chosen, tmp_path, monkeypatch):
    settings, lines = make_settings(places, tmp_path), []
    with monkeypatch.context() as patch:
        patch.setattr("keras_gmlp.training.train.prepare_fit", die)
        with pytest.raises(Kill):
            runs.train_run(settings, export=False, verbose=0)
    recorded = read(tmp_path, "recipe.json")
    for other in (0, 1):  # the choice took minutes, and is not replaced
        with pytest.raises(ValueError, match="epochs"):
            runs.train_run(make_settings(places, tmp_path, epochs=other), export=False, verbose=0)
    assert read(tmp_path, "recipe.json") == recorded
    kill_after_an_epoch(runs.train_run, settings, export=False, verbose=0)
    runs.train_run(settings, export=False, verbose=0, report=lines.append)
    assert lines == []  # read, not made again
    expected, found = (
        keras_gmlp.load_model(place / "model.keras").get_weights() for place in (chosen, tmp_path)
    )
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b)
    first, second = (read(place, "recipe.json")["choice"] for place in (chosen, tmp_path))
    assert first == second


def forbid(places):
    raise AssertionError("the test images are read")


def test_test_images_choose_nothing(places, tmp_path):
    prepared = prepare(make_settings(places, tmp_path, learning_rate=0.002))
    test = Samples(prepared.data.test.labels, prepared.data.image_shape, forbid)
    data = dataclasses.replace(prepared.data, test=test)
    choice, _ = choosing.choose(dataclasses.replace(prepared, data=data), verbose=0)
    assert [row["learning_rate"] for row in choice.candidates[1:]] == [0.002]


def test_validation_images_of_the_data_choose(places, tmp_path):
    folder = write_folder(tmp_path / "photos", train=10, validation=3)
    choice, _ = choosing.choose(prepare(make_settings(places, tmp_path / "run", folder)), verbose=0)
    assert (choice.images, choice.held_out) == (9, False)


def test_other_runs_choose_nothing(places, tmp_path):
    for changes in ({"epochs": 1}, {"freeze": True}, {"fit_head": 0}):
        prepared = prepare(make_settings(places, tmp_path, **changes))
        assert choosing.choose(prepared) == (None, None)
    scratch = RunSettings(image_size=8, out=str(tmp_path))
    quick = dataclasses.replace(make_settings(places, tmp_path), recipe="quick")
    single = make_settings(places, tmp_path, write_folder(tmp_path / "single", train=1))
    for settings in (scratch, quick, single):
        assert not choosing.can_choose(prepare(settings))


def test_no_training_is_tried_where_the_head_is_right(places, tmp_path):
    folder = write_folder(tmp_path / "photos", noise=5)
    settings = make_settings(places, tmp_path / "run", folder)
    metrics = runs.train_run(settings, export=False, verbose=0)
    assert [row["name"] for row in metrics["candidates"]] == [HEAD]
    assert metrics["epochs"] == 0
    assert metrics["test_accuracy"] == 1
    assert not (tmp_path / "run" / "curves.png").exists()
    assert "curves.png" not in (tmp_path / "run" / "README.md").read_text()


def test_ties_go_to_the_lower_loss():
    rows = [{"accuracy": 0.9, "loss": 0.3}, {"accuracy": 0.9, "loss": 0.2}]
    assert choose_best([*rows, {"accuracy": 0.8, "loss": 0.1}]) is rows[1]
    # A higher accuracy with a higher loss, or one that is hardly lower, may be chance.
    assert choose_best([rows[1], {"accuracy": 0.92, "loss": 0.25}]) is rows[1]
    assert choose_best([rows[1], {"accuracy": 0.92, "loss": 0.199}]) is rows[1]
    assert choose_best([rows[1], clear := {"accuracy": 0.92, "loss": 0.19}]) is clear
