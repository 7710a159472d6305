"""From `RunSettings` to a `PreparedRun`."""

import contextlib
import dataclasses
import json
import os
from pathlib import Path

import keras

from keras_gmlp import data
from keras_gmlp.data.datasets import check_path, holds_files
from keras_gmlp.data.validation import PARTS, divide_training
from keras_gmlp.layers.zoomed_views import view_share
from keras_gmlp.models.presets import lookup
from keras_gmlp.runs.prepared import PreparedRun
from keras_gmlp.tasks.multi_label_classification import match_labels
from keras_gmlp.training.callbacks import require_validation
from keras_gmlp.training.processes import run_once
from keras_gmlp.training.run_directory import LOCK_TIMEOUT
from keras_gmlp.utils.files import directory_lock
from keras_gmlp.utils.shipped import DEFAULT_BACKBONE
from keras_gmlp.weights import pretrained

ZOOMS = [1, 0.75, 0.5]  # of the included backbone on pictures in files


def prepare(settings, seed_process=True, dataset=None):
    """Loads the data and builds the model of a run.

    Args:
        settings: `RunSettings`, or those of a run on text.
        seed_process: Whether to draw the initial weights from the recipe's seed. Keras then seeds
            the generators of the whole process (`keras.utils.set_random_seed`).
        dataset: An `ImageData` in place of the one that the settings name; `None` to load that.

    Returns:
        A `PreparedRun`.

    Raises:
        ValueError: If the settings cannot work, the data or the weights cannot be loaded, or
            another process uses the directory.
    """
    settings.check()
    recipe = settings.make_recipe()
    if recipe.task.domain == "texts":
        if seed_process:
            keras.utils.set_random_seed(recipe.seed)
        return PreparedRun(settings, recipe, *settings.build(recipe))
    if dataset is None:
        check_path(settings.data.name)  # before weights are downloaded
    run_once(lambda: _check_directory(settings.directory))
    source = None
    if settings.model.weights:
        source = pretrained.load(settings.model.weights, settings.model.preset)
        named = dataclasses.replace(settings.model, preset=source.preset)
        fit = settings.data.fit or source.preparation.get("fit")
        chosen = dataclasses.replace(settings.data, fit=fit)
        if dataset is None:
            named = _zoom(named, chosen)
        settings = dataclasses.replace(settings, model=named, data=chosen)
    dataset = load_data(settings, source.model.input_shape[1:] if source else None, dataset)
    require_validation(recipe, dataset)
    return build(settings, recipe, source, dataset, seed_process)


def build(settings, recipe, source, dataset, seed_process=True):
    """Builds the preset's model, or adapts the one of the weights, for the data and the recipe."""
    if seed_process:
        keras.utils.set_random_seed(recipe.seed)
    recipe = match_labels(recipe, dataset)
    chosen = {"input_shape": dataset.image_shape, **settings.model.patches()}
    chosen |= settings.model.overrides
    chosen |= recipe.model_arguments()
    if source:
        model, transfer = source.adapt(dataset.labels, **chosen)
    else:
        classes = len(dataset.labels)
        model, transfer = pretrained.build(settings.model.preset, classes=classes, **chosen), None
    # What a loaded model was built with; None if its file does not say.
    origin = {"preset": settings.model.preset}
    arguments = getattr(source, "arguments", None) if source else {}
    if arguments is not None:
        arguments = {**arguments, **chosen, "classes": len(dataset.labels)}
        for training_only in ("dtype", "stochastic_depth"):  # the saved model is float32
            arguments.pop(training_only, None)
        origin["arguments"] = json.loads(json.dumps(arguments))  # as the card holds them
    return PreparedRun(settings, recipe, dataset, model, origin, transfer, source)


def _zoom(model, pictures):
    """Lets the included backbone look closer at pictures in files, which have more pixels."""
    own = pictures.image_size is None and holds_files(pictures.name)
    if model.weights != DEFAULT_BACKBONE or not own:
        return model
    return dataclasses.replace(model, overrides={"zooms": ZOOMS, **model.overrides})


def load_data(settings, image_shape=None, dataset=None):
    """Loads the data of a run, and divides the training images."""
    chosen = settings.data
    if dataset is None:
        shape = image_shape or lookup(settings.model.preset)[1]["input_shape"]
        share = view_share(settings.model.overrides.get("zooms"))
        size = chosen.size or tuple(round(side / share) for side in shape[:2])
        channels = image_shape[2] if image_shape else None
        dataset = data.load(chosen.name, size, chosen.data_dir, channels, chosen.groups, chosen.fit)
    parts = {name: getattr(chosen, name) for name in PARTS}
    return divide_training(dataset, **parts, groups=chosen.groups)


def _check_directory(directory):
    """Raises a `ValueError` if another process uses the directory; leaves no empty folders."""
    place = Path(os.path.realpath(directory))
    new = [folder for folder in (place, *place.parents) if not folder.exists()]
    with directory_lock(directory, LOCK_TIMEOUT):
        pass
    with contextlib.suppress(OSError):  # another run may have started in one
        for folder in new:
            folder.rmdir()
