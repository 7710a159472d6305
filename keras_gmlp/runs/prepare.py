"""From `RunSettings` to a trained, exported model."""

import contextlib
import dataclasses
import json
import shutil
from pathlib import Path

import keras

from keras_gmlp import data
from keras_gmlp.data.datasets import check_path
from keras_gmlp.data.validation import PARTS, divide_training
from keras_gmlp.export.verify import export_run
from keras_gmlp.models.presets import lookup
from keras_gmlp.runs.choice import Choice
from keras_gmlp.runs.settings import RunSettings
from keras_gmlp.tasks.multi_label import match_labels
from keras_gmlp.training import run_directory
from keras_gmlp.training import train as training
from keras_gmlp.training.callbacks import require_validation
from keras_gmlp.training.devices import single_device, whole_batches
from keras_gmlp.training.processes import run_once
from keras_gmlp.training.recipes import Recipe
from keras_gmlp.utils.files import directory_lock, write_json
from keras_gmlp.weights import pretrained


@dataclasses.dataclass
class PreparedRun:
    """A run whose data are loaded and whose model is built.

    Attributes:
        settings: `RunSettings`, with the preset of the weights.
        recipe: `Recipe`.
        data: The data set.
        model: `keras.Model`.
        arguments: Keyword arguments with which `keras_gmlp.build` rebuilds the model, or `None`
            if the source of the weights does not name its own.
        transfer: Report on the weights that were transferred, or `None`.
        source: The trained model that the weights come from, or `None`.
        choice: How the recipe was chosen, a `Choice`, or `None`.
        vectors: What `read_features` returned for these training images, or `None`.
    """

    settings: RunSettings
    recipe: Recipe
    data: object
    model: keras.Model
    arguments: dict | None
    transfer: object = None
    source: pretrained.Pretrained | None = None
    choice: Choice | None = None
    vectors: tuple | None = None

    @property
    def complete(self):
        """Whether the directory holds the complete run."""
        return (Path(self.settings.directory) / "metrics.json").exists()

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
        extra = {**self.settings.record(), "arguments": self.arguments}
        place = self.settings.directory
        if self.choice is not None:
            extra["choice"] = self.choice.record()
        options |= {"extra": extra, "vectors": self.vectors}
        return training.train(self.model, self.data, self.recipe, place, **options)

    def export(self, formats=("tflite",)):
        """Writes and checks further formats of the model; returns what was measured, a dict."""
        with single_device():
            return export_run(self.settings.directory, list(formats), self.data)

    def write_metrics(self, metrics):
        """Replaces `metrics.json`."""
        write_json(Path(self.settings.directory) / "metrics.json", metrics)


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
    if dataset is None:
        check_path(settings.data.name)  # before weights are downloaded
    run_once(lambda: _check_directory(settings.directory))
    source = None
    if settings.model.weights:
        source = pretrained.load(settings.model.weights, settings.model.preset)
        named = dataclasses.replace(settings.model, preset=source.preset)
        fit = settings.data.fit or source.preparation.get("fit")
        chosen = dataclasses.replace(settings.data, fit=fit)
        settings = dataclasses.replace(settings, model=named, data=chosen)
    dataset = load_data(settings, source.model.input_shape[1:] if source else None, dataset)
    require_validation(settings.make_recipe(), dataset)
    if seed_process:
        keras.utils.set_random_seed(settings.make_recipe().seed)
    return build(settings, source, dataset)


def build(settings, source, dataset):
    """Builds the preset's model, or adapts the one of the weights, for the data and the recipe."""
    recipe = match_labels(settings.make_recipe(), dataset)
    chosen = {"input_shape": dataset.image_shape, **settings.model.patches()}
    chosen |= settings.model.overrides
    chosen |= recipe.model_arguments()
    if source:
        model, transfer = source.adapt(dataset.labels, **chosen)
    else:
        classes = len(dataset.labels)
        model, transfer = pretrained.build(settings.model.preset, classes=classes, **chosen), None
    # What a loaded model was built with; None if its file does not say.
    arguments = getattr(source, "arguments", None) if source else {}
    if arguments is not None:
        arguments = {**arguments, **chosen, "classes": len(dataset.labels)}
        for training_only in ("dtype", "stochastic_depth"):  # the saved model is float32
            arguments.pop(training_only, None)
        arguments = json.loads(json.dumps(arguments))  # as the card holds them
    return PreparedRun(settings, recipe, dataset, model, arguments, transfer, source)


def load_data(settings, image_shape=None, dataset=None):
    """Loads the data of a run, and divides the training images."""
    chosen = settings.data
    if dataset is None:
        shape = image_shape or lookup(settings.model.preset)[1]["input_shape"]
        size = chosen.size or shape[:2]
        channels = image_shape[2] if image_shape else None
        dataset = data.load(chosen.name, size, chosen.data_dir, channels, chosen.groups, chosen.fit)
    parts = {name: getattr(chosen, name) for name in PARTS}
    return divide_training(dataset, **parts, groups=chosen.groups)


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
    if before is not None:
        task = run.recipe.task
        validated = task.validation_split(run.data) == "validation"
        name = f"{'validation_' * validated}{task.headline}_before"
        metrics[name] = before[task.headline]
        run.write_metrics(metrics)
    if run.choice is not None:
        if "candidates" not in metrics:
            metrics["candidates"] = run.choice.candidates
            run.write_metrics(metrics)
        place = run.settings.directory
        with contextlib.suppress(ValueError):  # the user's files may have come since
            run_directory.check_candidates(place)
            shutil.rmtree(Path(place, run_directory.CANDIDATES), ignore_errors=True)
    if export and "tflite" not in metrics.get("exports", {}):
        metrics["exports"] = run.export()


def _check_directory(directory):
    """Raises a `ValueError` if another process uses the directory; leaves no empty folders."""
    place = Path(directory).resolve()
    new = [folder for folder in (place, *place.parents) if not folder.exists()]
    with directory_lock(directory, run_directory.LOCK_TIMEOUT):
        pass
    with contextlib.suppress(OSError):  # another run may have started in one
        for folder in new:
            folder.rmdir()
