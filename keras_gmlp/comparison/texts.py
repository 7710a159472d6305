"""A comparison of language models: pre-trains each and fine-tunes it on tasks."""

import dataclasses
import math
from pathlib import Path

from keras_gmlp.models.presets import TEXT_PRESETS, lookup
from keras_gmlp.runs.queue import work
from keras_gmlp.runs.text import FineTuningSettings, LanguageRunSettings
from keras_gmlp.training.run_directory import has_progress
from keras_gmlp.training.settings import differences
from keras_gmlp.utils.files import read_json


@dataclasses.dataclass(frozen=True)
class Measure:
    """How a task is scored.

    Attributes:
        name: As the table names it.
        key: In metrics.json.
        factor: From there to the table.
        floor: Key in the scores of `data.text.floors.compute_floors`; `None` without floors.
        published: Name and score of a classifier without a network, from a paper; `None` if
            `compute_floors` measures one.
    """

    name: str
    key: str
    factor: float = 100.0
    floor: str | None = "accuracy"
    published: tuple | None = None


ACCURACY = Measure("accuracy (%)", "test_accuracy")
MEASURES = {
    "cola": Measure(
        "Matthews correlation (x 100)", "test_matthews_correlation", 100.0, "matthews_correlation"
    ),
    "squad": Measure(
        "F1 (%)", "test_f1", 1.0, None, ("logistic regression, arXiv 1606.05250", 51.0)
    ),
}
ANSWERS = Measure("F1 (%)", "test_f1", 1.0, None)

# Small sets require more passes, pairs more tokens.
CHANGES = {"mrpc": {"epochs": 10, "length": 128}, "cola": {"epochs": 10}}


class TextSweep:
    """Language models on one text, and each fine-tuned on tasks over seeds.

    Each run is a folder in the sweep's. Complete runs are not trained again, so that a sweep that
    was stopped resumes. A preset is pre-trained once, with the first seed.

    Args:
        presets: Keys of `keras_gmlp.text.PRESETS`. Differences are to the first one.
        corpus: Folder that `python -m keras_gmlp.data.text.corpus` wrote.
        tasks: Sets as `runs.text.FineTuningSettings` takes them, such as `"sst2"`.
        directory: Folder of the runs.
        seeds: Seeds of the fine-tuning.
        recipe: Recipe of the pre-training.
        changes: Settings that differ from those of the recipes of all runs, a dict, such as
            `{"precision": "float32"}`.
        epochs: Epochs of the pre-training; `None` for the recipe's.
        data_dir: Folder of TensorFlow Datasets; `None` for its own.

    Raises:
        ValueError: If the settings cannot work. One line.
    """

    def __init__(
        self,
        presets,
        corpus,
        tasks,
        directory,
        *,
        seeds=(0,),
        recipe="quick",
        changes=None,
        epochs=None,
        data_dir=None,
    ):
        self.presets, self.tasks = list(dict.fromkeys(presets)), list(dict.fromkeys(tasks))
        self.seeds = list(dict.fromkeys(seeds))
        directory, changes = Path(directory), dict(changes or {})
        longer = {} if epochs is None else {"epochs": epochs}
        self.models, self.tuned = {}, {}
        for preset in self.presets:
            lookup(preset, TEXT_PRESETS)
            place = str(directory / preset)
            first = {**changes, **longer, "seed": self.seeds[0]}
            self.models[preset] = LanguageRunSettings(
                preset, str(corpus), recipe, changes=first, directory=place
            )
            for task in self.tasks:
                for seed in self.seeds:
                    own = {**CHANGES.get(_short(task), {}), **changes, "seed": seed}
                    out = str(directory / f"{preset}-{_short(task)}-{seed}")
                    self.tuned[preset, task, seed] = FineTuningSettings(
                        place, task, changes=own, directory=out, data_dir=data_dir
                    )
        places = [settings.directory for settings in self.runs]
        for settings in self.runs:
            settings.check()
            if places.count(settings.directory) > 1:
                raise ValueError(
                    f"two runs would have the folder {settings.directory}; give the files of the "
                    "tasks different names."
                )

    @property
    def runs(self):
        """The settings of all runs, pre-training first."""
        return [*self.models.values(), *self.tuned.values()]

    def check_recorded(self):
        """Raises a `ValueError` if a run was started with other settings."""
        for settings in self.runs:
            recorded = read_json(Path(settings.directory) / "recipe.json")
            if recorded is None or not has_progress(settings.directory):
                continue
            asked = {**settings.make_recipe().settings(), **settings.record()}
            asked.pop("pipeline")  # a run records its own choice
            if differing := differences(recorded, asked):
                raise ValueError(
                    f"{settings.directory} holds a run with other settings "
                    f"({'; '.join(differing)}). Give the same settings, or choose another folder."
                )

    def work(self, say=print, verbose=2):
        """Trains all runs that are not complete; returns a reason for each that failed."""
        left = [settings for settings in self.runs if not is_complete(settings)]
        results = work(left, math.inf, verbose=verbose, say=say)
        return {
            place: found["state"]
            for place, found in results.items()
            if found["state"] != "complete"
        }

    def rows(self):
        """Returns a dict for each preset."""
        rows = []
        for preset, settings in self.models.items():
            found = _metrics(settings)
            scores = {task: {} for task in self.tasks}
            single = {task: [] for task in self.tasks}
            for (owner, task, seed), tuned in self.tuned.items():
                if owner == preset and (metrics := _metrics(tuned)):
                    measure = measure_of(task)
                    scores[task][seed] = measure.factor * metrics[measure.key]
                    if metrics.get("test_predicted_classes") == 1:
                        single[task].append(seed)
            rows.append(
                {
                    "preset": preset,
                    "parameters": found.get("parameters"),
                    "perplexity": found.get("test_perplexity"),
                    "scores": scores,
                    "single": single,
                }
            )
        return rows


def is_complete(settings):
    """Returns whether the run of some settings is complete."""
    return bool(_metrics(settings))


def measure_of(task):
    """Returns the `Measure` of a task."""
    name = _short(task).removesuffix("-v1.1")
    if name in MEASURES:
        return MEASURES[name]
    return ANSWERS if FineTuningSettings("", task).answers else ACCURACY


def _short(task):
    path = Path(task)
    return path.stem if path.exists() else task.removeprefix("glue/").replace("/", "-")


def _metrics(settings):
    return read_json(Path(settings.directory) / "metrics.json") or {}
