"""Recipes: their ranges, the named ones, changes by name, and the records of runs."""

import dataclasses
import json
from pathlib import Path

import pytest

from keras_gmlp.data.batches.augmentation import Augmentation
from keras_gmlp.runs.run import read_run
from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.training.recipes import (
    RECIPES,
    Recipe,
    differences,
    find_recipe,
    override,
    setting_names,
)

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]
RECORDS = sorted(ROOT.glob("saved_models/*/recipe.json"))


def test_recipe_out_of_range():
    for field, value in (("optimizer", "adam"), ("epochs", 0), ("ema", 1.0), ("patience", 0)):
        with pytest.raises(ValueError, match=field):
            Recipe(**{field: value})
    with pytest.raises(ValueError, match="layer_decay"):
        Recipe(layer_decay=0.5, optimizer="muon")
    with pytest.raises(ValueError, match="label_smoothing"):
        ImageClassification(label_smoothing=1.0)
    for name, value in (("mixpu", 1), ("mixup", 3)):
        with pytest.raises(ValueError, match=name):
            override(RECIPES["quick"], {name: value})


def test_changes_reach_recipe_task_and_augmentation():
    changes = {"epochs": 3, "label_smoothing": 0.2, "mixup": 0.4}
    recipe = override(RECIPES["standard"], changes)
    assert (recipe.epochs, recipe.task.label_smoothing) == (3, 0.2)
    assert recipe.task.augmentation == Augmentation(mixup=0.4, cutmix=0.5)
    assert recipe.optimizer == RECIPES["standard"].optimizer


def test_differences_of_a_nested_setting():
    recorded = json.loads(json.dumps(RECIPES["quick"].settings()))
    assert differences(recorded, RECIPES["quick"].settings()) == []
    other = override(RECIPES["quick"], {"mixup": 0.1, "epochs": 5})
    found = differences(recorded, other.settings())
    assert found == ["epochs 12 there, 5 here", "mixup 0.0 there, 0.1 here"]
    recorded["pipeline"] = "device"
    left = dataclasses.replace(RECIPES["quick"], pipeline="auto")  # to the run
    assert differences(recorded, left.settings()) == []


def test_committed_records_are_recipes_with_changes():
    for path in RECORDS:
        recorded = json.loads(path.read_text())
        task = recorded.get("task", ImageClassification.name)
        settings = find_recipe(recorded["recipe"], task)
        names = setting_names(settings)
        changes = {name: value for name, value in recorded.items() if name in names}
        settings = override(settings, {**changes, **recorded.get("augmentation", {})}).settings()
        assert differences(recorded, settings) == [], path
        again = read_run(path.parent)
        here = {**again.make_recipe().settings(), **again.record()}
        assert differences(recorded, here) == [], path
