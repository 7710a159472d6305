"""A run that can begin: its data are open and its model is built."""

import contextlib
import dataclasses
import shutil
from pathlib import Path

import keras

from keras_gmlp.runs.choice import Choice
from keras_gmlp.runs.settings import Settings
from keras_gmlp.training import run_directory
from keras_gmlp.training import train as training
from keras_gmlp.training.devices import single_device, whole_batches
from keras_gmlp.training.processes import run_once
from keras_gmlp.training.recipes import Recipe
from keras_gmlp.training.settings import COMMAND
from keras_gmlp.utils.files import write_json
from keras_gmlp.weights.pretrained import Pretrained


@dataclasses.dataclass
class PreparedRun:
    """A run whose data are loaded and whose model is built.

    Attributes:
        settings: `RunSettings`, with the preset of the weights; or the settings of a run on text.
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

    settings: Settings
    recipe: Recipe
    data: object
    model: keras.Model
    origin: dict
    transfer: object = None
    source: Pretrained | None = None
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
        settings = self.settings
        extra = {"preset": self.origin.get("preset"), **settings.record()}
        extra[COMMAND] = settings.command()
        if self.choice is not None:
            extra["choice"] = self.choice.record()
        options |= {"extra": extra, "origin": self.origin, "vectors": self.vectors}
        return training.train(self.model, self.data, self.recipe, settings.directory, **options)

    def export(self, formats=("tflite",)):
        """Writes and checks further formats of the model; returns what was measured, a dict."""
        from keras_gmlp.export.verify import export_run

        with single_device():
            return export_run(self.settings.directory, list(formats), self.data)


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
    task, place, added = run.recipe.task, Path(run.settings.directory), {}
    if before is not None:
        validated = task.validation_split(run.data) == "validation"
        added[f"{'validation_' * validated}{task.headline}_before"] = before[task.headline]
    if run.choice is not None and "candidates" not in metrics:
        added["candidates"] = run.choice.candidates
    if added:
        metrics |= added
        write_json(place / "metrics.json", metrics)
    if run.choice is not None:
        with contextlib.suppress(ValueError):  # the user's files may have come since
            run_directory.check_candidates(place)
            shutil.rmtree(place / run_directory.CANDIDATES, ignore_errors=True)
    # Texts are checked with other data.
    if export and task.domain != "texts" and "tflite" not in metrics.get("exports", {}):
        metrics["exports"] = run.export()
