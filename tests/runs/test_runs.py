"""Runs from Python: settings, their JSON, what is built, trained and written."""

import dataclasses
import importlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import keras_gmlp
from keras_gmlp import runs
from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.runs import RunSettings
from keras_gmlp.runs.prepare import load_data, prepare
from keras_gmlp.training.recipes import differences
from keras_gmlp.utils.card import read_card

OURS = str(Path(keras_gmlp.__file__).parent)  # where the files of the package are
SMALL = {"epochs": 1, "precision": "float32"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The settings of a complete run and its metrics."""
    directory = str(tmp_path_factory.mktemp("run"))
    sizes = {"image_size": 8, "fraction": 0.1, "set_model": {"depth": 1}}
    settings = RunSettings(**sizes, **SMALL, seed=5, out=directory)
    return settings, runs.train_run(settings, export=False, verbose=0)


def test_defaults():
    settings = RunSettings()
    found = settings.model, settings.data, settings.recipe, settings.out
    assert found == ("gmlp_n4_32", "digits", "quick", "runs/gmlp_n4_32-digits")
    tuned = RunSettings(weights="runs/a/model.keras", data="photos/birds/")
    assert (tuned.model, tuned.recipe) == (None, "finetune")
    assert tuned.out.endswith("-birds")
    text = RunSettings(prepared="runs/text/")
    found = text.model, text.data, text.recipe, text.out
    assert found == ("gmlp_nano", None, "quick", "runs/gmlp_nano-text")
    recipe = RunSettings(recipe="standard", seed=4, set={"mixup": 0.1}).make_recipe()
    assert (recipe.epochs, recipe.seed, recipe.task.augmentation.mixup) == (36, 4, 0.1)


def test_settings_survive_json():
    for settings in (
        RunSettings(model="vit_n4_32", weights="w.keras", patch_size=8, fraction=0.5, freeze=True),
        RunSettings(data="photos", image_size=(96, 160), fit="pad", set={"mixup": 0.2}),
        RunSettings(model="bert_nano", prepared="runs/x", seed=3, set_model={"dim": 16}),
        RunSettings(weights="runs/a", task="a.csv", column=["a", "b"], label="c", test="b.csv"),
        RunSettings(weights="runs/a", task="sst2", column="a", hold_out=0.1, dropout=0.0, epochs=0),
    ):
        assert RunSettings(**json.loads(json.dumps(settings.to_dict()))) == settings


def test_settings_that_cannot_work():
    for make, reason in (
        (lambda: RunSettings(recipe="fast").check(), "recipe .*fast"),
        (lambda: prepare(RunSettings(patience=5)), "validation images"),
        (lambda: RunSettings(fraction=0.0), "fraction"),
        (lambda: RunSettings(image_size=(8, 0)), "image_size"),
        (lambda: RunSettings(image_size=(8, 8, 3)), "image_size"),
        (lambda: RunSettings(fit="fill"), "crop, stretch, pad"),
        (lambda: RunSettings(fold=1), "fold must"),
        (lambda: RunSettings(folds=2, fold=3), "fold must"),
        (lambda: RunSettings(model=5), "model must be"),
        (lambda: RunSettings(task="sst2"), "weights"),
        (lambda: RunSettings(data="photos", prepared="runs/text"), "different runs"),
        (lambda: RunSettings(prepared="runs/text", image_size=8), "image_size"),
        (lambda: RunSettings(set_model={"classes": 3}), "classes"),
    ):
        with pytest.raises(ValueError, match=reason):
            make()


def test_run_and_its_card_are_recorded(run):
    settings, metrics = run
    recorded = json.loads((Path(settings.out) / "recipe.json").read_text())
    names = ("preset", "recipe", "fraction", "weights", "patch_size", "patch_window", "seed")
    assert [recorded[name] for name in names] == ["gmlp_n4_32", "quick", 0.1, None, None, None, 5]
    assert recorded["fit"] == "crop"
    assert metrics["epochs"] == 1
    card = read_card(f"{settings.out}/model.keras")
    assert "fit" not in card  # as in older files, which mean crop
    assert card["arguments"] == {"input_shape": [8, 8, 1], "classes": 10, "depth": 1}
    rebuilt = keras_gmlp.build(card["preset"], **card["arguments"])
    saved = keras_gmlp.load_model(settings.out)
    assert [w.shape for w in rebuilt.weights] == [w.shape for w in saved.weights]


def test_run_is_rebuilt_from_its_record(run, tmp_path):
    settings, metrics = run
    first, again = (prepare(settings) for _ in range(2))
    assert runs.read_run(settings.out) == first.settings == settings
    for a, b in zip(first.model.get_weights(), again.model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)  # the seed draws them
    moved = shutil.copytree(settings.out, tmp_path / "moved")
    assert runs.read_run(moved) == dataclasses.replace(settings, out=str(moved))
    again = runs.train_run(runs.read_run(moved), export=False, verbose=0)  # its folder may move
    assert again == metrics
    (moved / "recipe.json").write_text("{}")  # as `keras_gmlp.train` begins a run
    with pytest.raises(ValueError, match="settings"):
        runs.read_run(moved)
    for command in ({"set": 3}, {"program": "train_text", "task": 1}):
        (moved / "recipe.json").write_text(json.dumps({"command": command}))
        with pytest.raises(ValueError, match=r"recipe\.json"):
            runs.read_run(moved)


def test_run_of_a_sweep_that_fails_gives_the_reason(tmp_path, monkeypatch):
    program = importlib.import_module("keras_gmlp.runs.__main__")
    monkeypatch.setattr(program, "stop_with_parent", lambda: None)
    settings = RunSettings(data="./nowhere/", out=str(tmp_path / "run"))
    with pytest.raises(SystemExit, match=r"^\./nowhere/: no such folder\.$"):
        program.main([json.dumps(settings.to_dict())])
    assert list(tmp_path.iterdir()) == []


def test_validation_images_belong_to_the_settings_of_a_run():
    settings = RunSettings(image_size=8, validation=0.2)
    dataset = load_data(settings)
    assert (len(dataset.validation), len(dataset.test)) == (289, 360)  # rounded in each class
    whole = RunSettings(image_size=8).record()
    assert differences(whole, settings.record()) == ["validation None there, 0.2 here"]


def test_run_of_a_folder_decodes_each_image_once(tmp_path, monkeypatch):
    read = []

    def read_and_count(path, *arguments, **options):
        if not isinstance(path, np.ndarray):  # scaled, not decoded
            read.append(path)
        return read_image(path, *arguments, **options)

    def export_run(directory, formats, dataset):
        return {"images": len(dataset.test)}

    monkeypatch.setattr("keras_gmlp.data.images.samples.read_image", read_and_count)
    monkeypatch.setattr("keras_gmlp.export.verify.export_run", export_run)
    for number in range(40):
        path = tmp_path / "photos" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 128, (9, 9, 3)) + 128 * (number % 2)
        Image.fromarray(pixels.astype("uint8")).save(path)
    # The first layer adapts to training images before the training begins; later the head does.
    model = {"model": "convnet_8_32", "set_model": {"widths": (8, 8, 8)}}
    shared = {"data": str(tmp_path / "photos"), "image_size": 32, "validation": 0.25, **SMALL}
    first = RunSettings(**model, **shared, out=str(tmp_path / "first"))
    places = {"weights": first.out, "out": str(tmp_path / "further")}
    further = RunSettings(**places, **shared, set={"fit_head": 1.0})
    for settings, export in ((first, False), (further, True)):
        read.clear()
        metrics = runs.train_run(settings, export=export, verbose=0)
        assert len(read) == 40
        assert {Path(path) for path in read} == set((tmp_path / "photos").rglob("*.png"))
    assert metrics["exports"] == {"images": 8}
