"""From the settings of a run to a `PreparedRun`: its data are open and its model is built."""

import contextlib
import dataclasses
import json
import os
from pathlib import Path

import keras

from keras_gmlp import data
from keras_gmlp.data.datasets import check_path, holds_files
from keras_gmlp.data.run_folder import Run
from keras_gmlp.data.validation import PARTS, divide_training
from keras_gmlp.layers.zoomed_views import view_share
from keras_gmlp.models.presets import lookup
from keras_gmlp.runs.settings import RunSettings
from keras_gmlp.runs.text import adapt_language_model, build_language_model
from keras_gmlp.tasks.multi_label_classification import match_labels
from keras_gmlp.training import run_directory
from keras_gmlp.training import train as training
from keras_gmlp.training.callbacks import require_validation
from keras_gmlp.training.devices import single_device, whole_batches
from keras_gmlp.training.processes import run_once
from keras_gmlp.training.recipes import Recipe
from keras_gmlp.utils.files import directory_lock, write_json
from keras_gmlp.utils.shipped import DEFAULT_BACKBONE
from keras_gmlp.weights import pretrained

ZOOMS = [1, 0.75, 0.5]  # of the included backbone on pictures in files


@dataclasses.dataclass
class PreparedRun:
    """A run whose data are loaded and whose model is built.

    Attributes:
        settings: `RunSettings`, with the preset of the weights.
        recipe: `Recipe`.
        data: The data set.
        model: `keras.Model`.
        origin: `preset` and `arguments` with which `keras_gmlp.build` or `keras_gmlp.text.build`
            rebuilds the model, a dict; without those that are not known.
        transfer: Report on the weights that were transferred, or `None`.
        source: The trained model that the weights come from, or `None`.
        choice: How the recipe was chosen, a `Choice`, or `None`.
        vectors: What `read_features` returned for these training images, or `None`.
    """

    settings: RunSettings
    recipe: Recipe
    data: object
    model: keras.Model
    origin: dict
    transfer: object = None
    source: pretrained.Pretrained | None = None
    choice: object = None
    vectors: tuple | None = None

    @property
    def complete(self):
        """Whether the directory holds the complete run."""
        return Run(self.settings.out).complete

    @property
    def testable(self):
        """Whether the model knows the classes before training."""
        return self.transfer is not None and not self.transfer.fresh

    def evaluate(self, verbose=0):
        """Returns loss and metrics on the validation images, or on the test images, a dict."""
        split = self.recipe.task.validation_split(self.data)
        with whole_batches():
            return self.recipe.task.evaluate(self.model, self.data, split, verbose=verbose)

    def train(self, **options):
        """Trains the model, or resumes; returns the metrics. Options are those of `train`."""
        settings = self.settings
        extra = {"preset": self.origin.get("preset"), **settings.record()}
        extra["command"] = settings.to_dict()
        if self.choice is not None:
            extra["choice"] = dataclasses.asdict(self.choice)
        options |= {"extra": extra, "origin": self.origin, "vectors": self.vectors}
        return training.train(self.model, self.data, self.recipe, settings.out, **options)

    def export(self, formats=("tflite",)):
        """Writes and checks further formats of the model; returns what was measured, a dict."""
        from keras_gmlp.export.verify import export_run

        with single_device():
            return export_run(self.settings.out, list(formats), self.data)


def prepare(settings, seed_process=True, dataset=None):
    """Loads the data and builds the model of a run.

    Args:
        settings: `RunSettings`.
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
        make = adapt_language_model if settings.task else build_language_model
        return PreparedRun(settings, recipe, *make(settings, recipe))
    if dataset is None:
        check_path(settings.data)  # before weights are downloaded
    run_once(lambda: _check_directory(settings.out))
    source = None
    if settings.weights:
        source = pretrained.load(settings.weights, settings.model)
        fit, arguments = settings.fit or source.preparation.get("fit"), settings.set_model
        in_files = dataset is None and settings.image_size is None and holds_files(settings.data)
        if in_files and settings.weights == DEFAULT_BACKBONE:  # such pictures have more pixels
            arguments = {"zooms": ZOOMS, **arguments}
        found = {"model": source.preset, "fit": fit, "set_model": arguments}
        settings = dataclasses.replace(settings, **found)
    dataset = load_data(settings, source.model.input_shape[1:] if source else None, dataset)
    require_validation(recipe, dataset)
    return build(settings, recipe, source, dataset, seed_process)


def build(settings, recipe, source, dataset, seed_process=True):
    """Builds the preset's model, or adapts the one of the weights, for the data and the recipe."""
    if seed_process:
        keras.utils.set_random_seed(recipe.seed)
    recipe = match_labels(recipe, dataset)
    chosen = {"input_shape": dataset.image_shape, **settings.patches, **settings.set_model}
    chosen |= recipe.model_arguments()
    if source:
        model, transfer = source.adapt(dataset.labels, **chosen)
    else:
        classes = len(dataset.labels)
        model, transfer = pretrained.build(settings.model, classes=classes, **chosen), None
    # What a loaded model was built with; None if its file does not say.
    origin = {"preset": settings.model}
    arguments = getattr(source, "arguments", None) if source else {}
    if arguments is not None:
        arguments = {**arguments, **chosen, "classes": len(dataset.labels)}
        for training_only in ("dtype", "stochastic_depth"):  # the saved model is float32
            arguments.pop(training_only, None)
        origin["arguments"] = json.loads(json.dumps(arguments))  # as the card holds them
    return PreparedRun(settings, recipe, dataset, model, origin, transfer, source)


def load_data(settings, image_shape=None, dataset=None):
    """Loads the data of a run, and divides the training images."""
    groups = settings.groups
    if dataset is None:
        shape = image_shape or lookup(settings.model)[1]["input_shape"]
        share = view_share(settings.set_model.get("zooms"))
        size = settings.size or tuple(round(side / share) for side in shape[:2])
        channels = image_shape[2] if image_shape else None
        place = settings.data, size, settings.data_dir
        dataset = data.load(*place, channels, groups, settings.fit)
    return divide_training(dataset, **{n: getattr(settings, n) for n in PARTS}, groups=groups)


def _check_directory(directory):
    """Raises a `ValueError` if another process uses the directory; leaves no empty folders."""
    place = Path(os.path.realpath(directory))
    new = [folder for folder in (place, *place.parents) if not folder.exists()]
    with directory_lock(directory, run_directory.LOCK_TIMEOUT):
        pass
    with contextlib.suppress(OSError):  # another run may have started in one
        for folder in new:
            folder.rmdir()


def finish(run, metrics, before=None, export=True):
    """Adds the evaluation before training, candidates and exports to the metrics of a run.

    Args:
        run: `PreparedRun` that was trained.
        metrics: What training returned.
        before: What `run.evaluate` returned before training, or `None`.
        export: Whether to write and check `model.tflite`.

    Returns:
        The metrics, a dict; if several processes train, complete in the first one.
    """
    run_once(lambda: _finish(run, metrics, before, export))
    return metrics


def _finish(run, metrics, before, export):
    task, place, added = run.recipe.task, Path(run.settings.out), {}
    if before is not None:
        validated = task.validation_split(run.data) == "validation"
        added[f"{'validation_' * validated}{task.headline}_before"] = before[task.headline]
    if run.choice is not None and "candidates" not in metrics:
        added["candidates"] = run.choice.candidates
    if added:
        metrics |= added
        write_json(place / "metrics.json", metrics)
    # Texts are checked with other data.
    if export and task.domain != "texts" and "tflite" not in metrics.get("exports", {}):
        metrics["exports"] = run.export()
