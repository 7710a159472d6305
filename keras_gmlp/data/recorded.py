"""The data of a run, divided as its `recipe.json` records."""

import os

from keras_gmlp.data.datasets import canonical_name, load
from keras_gmlp.data.validation import divide_training, recorded_parts


def same_data(name, other):
    """Returns whether two names are equal, or paths of the same file or folder."""
    if str(name) == str(other):
        return True
    paths = [os.path.expanduser(each) for each in (name, other)]
    return all(map(os.path.exists, paths)) and os.path.samefile(*paths)


def recorded_division(recipe, name, groups=None):
    """Returns how a run divided data: `groups` and `parts`, keyword arguments, a dict.

    Args:
        recipe: Dict as in `recipe.json`.
        name: The data. If they are not those of the run, it did not divide them.
        groups: Regular expression that replaces the one of the run; then its parts do not apply.
    """
    if groups is not None or "data" not in recipe or not same_data(name, recipe["data"]):
        return {"groups": groups, "parts": {}}
    return {"groups": recipe.get("groups"), "parts": recorded_parts(recipe)}


def load_recorded(recipe, image_shape, name=None, data_dir=None, fit="crop"):
    """Loads the data of a run with its training, validation and test images.

    Args:
        recipe: Dict as in `recipe.json`.
        image_shape: `(height, width, channels)`.
        name: Data by name. Defaults to the run's. Other data are not divided.
        data_dir: The folder of TFDS; see `data.load`.
        fit: As for `data.load`.

    Returns:
        An `ImageData`.

    Raises:
        ValueError: If the data cannot be loaded, or can no longer be divided in this way.
    """
    name = canonical_name(recipe["data"] if name is None else name)
    division = recorded_division(recipe, name)
    *size, channels = image_shape
    data = load(name, tuple(size), data_dir, channels, division["groups"], fit)
    return divide_training(data, **division["parts"], groups=division["groups"])
