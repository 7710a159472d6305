"""The data of a run, as programs load it again."""

import os
from types import SimpleNamespace

import pytest
from colours import LABELS, colour_model
from load_app import load_app
from PIL import Image
from refused import refused

from keras_gmlp.data.datasets import load_recorded, recorded_division, same_data
from keras_gmlp.export import verify
from keras_gmlp.runs.prepare import load_data
from keras_gmlp.runs.settings import DataSettings, RunSettings
from keras_gmlp.utils.card import write_card
from keras_gmlp.utils.files import write_json

GROUPS = r"/(\d+)-"


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Nine bursts of two pictures for each class."""
    root = tmp_path_factory.mktemp("photos")
    for label in LABELS:
        (root / label).mkdir()
        for burst in range(9):
            for name in "ab":
                Image.new("RGB", (8, 8), (burst, 0, 0)).save(root / label / f"{burst}-{name}.png")
    return root


def record(**division):
    """Returns the settings of a run and the dict in its `recipe.json`."""
    settings = RunSettings(data=DataSettings(image_size=8, **division))
    return settings, {**settings.record(), "data": settings.data.name}


def test_each_split_is_that_of_the_run(photos):
    for division in (
        {},
        {"groups": GROUPS},
        {"groups": GROUPS, "validation": 0.3},
        {"folds": 3, "fold": 2, "validation": 0.2, "fraction": 0.8},
    ):
        settings, recipe = record(name=str(photos), **division)
        expected = load_data(settings, (8, 8, 3)).splits()
        found = load_recorded(recipe, (8, 8, 3)).splits()
        assert {n: s.paths for n, s in found.items()} == {n: s.paths for n, s in expected.items()}


def test_other_data_are_not_divided(photos, tmp_path):
    _, recipe = record(name=str(photos), groups=GROUPS, validation=0.3)
    assert load_recorded({**recipe, "data": str(tmp_path)}, (8, 8, 3), photos).validation is None
    assert recorded_division(recipe, photos, groups="x") == {"groups": "x", "parts": {}}
    assert recorded_division({}, photos) == {"groups": None, "parts": {}}


def test_data_of_a_damaged_record(photos):
    for found in (None, [{}]):
        with refused(r"recipe\.json is damaged: its data is .*; expected a name"):
            load_recorded({"data": found}, (8, 8, 3), str(photos))
        with refused("data: received .*; expected a data set's name or a path"):
            load_recorded({"data": found}, (8, 8, 3))


def test_a_folder_is_the_same_by_any_name(photos, monkeypatch, tmp_path):
    monkeypatch.chdir(photos.parent)
    os.symlink(photos, tmp_path / "link")
    for name in (photos.name, f"./{photos.name}/", tmp_path / "link"):
        assert same_data(name, str(photos))
    assert same_data("cifar10", "cifar10")
    assert not same_data("cifar10", "digits")
    assert not same_data(photos, tmp_path)


@pytest.fixture(scope="module")
def run(photos, tmp_path_factory):
    """A run that held bursts out."""
    directory, model = tmp_path_factory.mktemp("run"), colour_model()
    model.save(directory / "model.keras")
    write_card(directory / "model.keras", model, LABELS)
    write_json(directory / "recipe.json", record(name=str(photos), groups=GROUPS)[1])
    return directory


@pytest.mark.parametrize("program", ["export", "visualize"])
def test_programs_test_on_the_images_that_the_run_held_out(run, photos, monkeypatch, program):
    held_out = load_recorded(record(name=str(photos), groups=GROUPS)[1], (8, 8, 3)).test
    app, found = load_app(program), []
    if program == "export":
        monkeypatch.setattr(
            verify, "export_run", lambda place, kinds, data, *_, **__: found.append(data)
        )
        app.main([str(run), "--formats", "tflite"])
    else:
        names = tuple(sorted(LABELS))
        classifier = SimpleNamespace(
            image_shape=(8, 8, 3), preparation={}, labels=names, thresholds=None
        )
        chosen = SimpleNamespace(data=None, data_dir=None)
        found.append(app.load_test_images(chosen, run, classifier))
    assert [data.test.paths for data in found] == [held_out.paths]
