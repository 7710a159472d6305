"""Data to check exported files with."""

from pathlib import Path

from keras_gmlp.data.datasets import load_recorded
from keras_gmlp.inference import images as inference
from keras_gmlp.inference import text as text_inference
from keras_gmlp.models.saved import model_path
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.utils.card import read_card
from keras_gmlp.utils.files import read_json


def load_check_data(directory, name=None):
    """Returns the data that `export_run` checks files with: a run's own, or others by name."""
    path, recipe = model_path(directory), read_json(Path(directory) / "recipe.json", {})
    card = read_card(path)
    task = find_task(card.get("task"))
    if task.domain == "texts":
        columns = {} if name else recipe.get("columns")
        if name is None and "split" in task.choices:  # else a name does not say where the data are
            name = recipe.get("data")
        if not name:
            raise ValueError(
                f"{directory}: give --data FILE, a text to check the files with, or --no-check."
            )
        return task.load_check_samples(text_inference.load(path), name, columns)
    name = name or recipe.get("data") or card.get("data")
    if not name:
        raise ValueError(
            f"{path}: the data set for the checks is unknown; give --data or --no-check."
        )
    shape = recipe.get("image_shape") or inference.load(path).image_shape
    return load_recorded(recipe, shape, name, card.get("fit", "crop"))
