"""Recipes: their ranges, the named ones, changes by name, and the records of runs."""

import dataclasses
import json
from pathlib import Path

import pytest

from keras_gmlp.data.batches.augmentation import Augmentation
from keras_gmlp.runs.run import read_run
from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.tasks.task import Task
from keras_gmlp.training.recipes import RECIPES, Recipe, find_recipe
from keras_gmlp.training.settings import COMMAND, describe, differences, override, setting_names

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]
RECORDS = sorted(ROOT.glob("saved_models/*/recipe.json"))
# As every run before tasks recorded it.
KEYS = (
    *("epochs", "batch_size", "optimizer", "learning_rate", "adam_ratio", "warmup"),
    *("weight_decay", "clip_norm", "label_smoothing", "layer_decay", "freeze", "ema"),
    *("precision", "stochastic_depth", "augmentation", "seed"),
)
NEW_KEYS = ("balance", "fit_head", "patience", "pipeline", "teacher", "teacher_share", "teaching")
NEW_KEYS += ("temperature", "feature_weight")


def test_recipe_out_of_range():
    for field, value in (
        *(("optimizer", "adam"), ("epochs", 0), ("ema", 1.0), ("warmup", -0.1)),
        *(("stochastic_depth", 1.5), ("weight_decay", -1.0), ("clip_norm", 0.0)),
        *(("adam_ratio", 0.0), ("task", "images")),
    ):
        with pytest.raises(ValueError, match=f"{field} .*received '?{value}"):
            Recipe(**{field: value})
    with pytest.raises(ValueError, match=r"label_smoothing must be in .* received 1\.0"):
        ImageClassification(label_smoothing=1.0)


def test_unknown_recipe_names_the_known_ones():
    assert find_recipe("quick") is RECIPES["quick"]
    with pytest.raises(ValueError, match=r"recipe 'fast'\. Expected one of: quick, standard"):
        find_recipe("fast")


def test_settings_have_the_keys_of_all_runs():
    settings = json.loads(json.dumps(RECIPES["standard"].settings()))
    assert set(settings) == {*KEYS, *NEW_KEYS}
    assert settings["augmentation"]["cutmix"] == 0.5


def test_changes_reach_recipe_task_and_augmentation():
    changes = {"epochs": 3, "label_smoothing": 0.2, "mixup": 0.4}
    recipe = override(RECIPES["standard"], changes)
    assert (recipe.epochs, recipe.task.label_smoothing) == (3, 0.2)
    assert recipe.task.augmentation == Augmentation(mixup=0.4, cutmix=0.5)
    assert recipe.optimizer == RECIPES["standard"].optimizer


def test_changes_that_cannot_be():
    for name in ("mixpu", "task", "augmentation"):
        with pytest.raises(ValueError, match=f"{name}: no such setting; expected .*mixup"):
            override(RECIPES["quick"], {name: 1})
    with pytest.raises(ValueError, match=r"mixup must be a number in \[0, 1\]; received 3"):
        override(RECIPES["quick"], {"mixup": 3})


@dataclasses.dataclass(frozen=True)
class Other(Task):
    masked: float = 0.15

    name = "other"


def test_settings_of_another_task():
    recipe = Recipe(task=Other())
    assert (recipe.settings()["task"], recipe.settings()["masked"]) == ("other", 0.15)
    assert "augmentation" not in recipe.settings()
    assert {"masked", "epochs"} <= setting_names(recipe)
    assert override(recipe, {"masked": 0.3}).task == Other(0.3)


def test_runs_of_another_task_differ():
    images, other = Recipe().settings(), Recipe(task=Other()).settings()
    assert differences(images, other) == ["task 'image_classification' there, 'other' here"]


def test_differences_of_a_nested_setting():
    recorded = json.loads(json.dumps(RECIPES["quick"].settings()))
    assert differences(recorded, RECIPES["quick"].settings()) == []
    other = override(RECIPES["quick"], {"mixup": 0.1, "epochs": 5})
    found = differences(recorded, other.settings())
    assert found == ["epochs 12 there, 5 here", "mixup 0.0 there, 0.1 here"]


def test_setting_left_to_the_run_takes_what_it_recorded():
    recorded = {**Recipe().settings(), "pipeline": "device"}
    assert differences(recorded, Recipe(pipeline="auto").settings()) == []
    (difference,) = differences(recorded, Recipe(pipeline="host").settings())
    assert difference == "pipeline 'device' there, 'host' here"


def test_description_names_what_differs_from_the_recipe():
    settings = {"recipe": "quick", "seed": 3, "epochs": 2, "ema": 0.05, "precision": "float32"}
    settings["augmentation"] = {"flip": True, "mixup": 0.3}
    assert describe(settings) == "quick, precision=float32, mixup=0.3"
    assert describe({**settings, "recipe": "mine"}) == "mine"
    assert describe({}) == ""


def test_committed_records_are_recipes_with_changes():
    for path in RECORDS:
        recorded = json.loads(path.read_text())
        task = recorded.get("task", ImageClassification.name)
        settings = find_recipe(recorded["recipe"], task)
        names = setting_names(settings)
        changes = {name: value for name, value in recorded.items() if name in names}
        settings = override(settings, {**changes, **recorded.get("augmentation", {})}).settings()
        assert differences(recorded, settings) == [], path
        if COMMAND in recorded:
            again = read_run(path.parent).make_recipe().settings()
            assert differences(recorded, again) == [], path
        if task == ImageClassification.name:
            assert set(KEYS) <= {*recorded, "adam_ratio", "layer_decay", "freeze"}, path
        else:
            assert set(settings) - {"patience"} <= set(recorded), path  # newer than these runs


def test_named_recipes():
    names = "quick standard long finetune resolution imagenet airbench"
    assert set(RECIPES) == set(names.split())
    imagenet = RECIPES["imagenet"]
    assert (imagenet.epochs, imagenet.batch_size, imagenet.learning_rate) == (300, 4096, 1e-3)
    regularized = imagenet.weight_decay, imagenet.clip_norm, imagenet.task.label_smoothing
    assert regularized == (0.05, 1.0, 0.1)
