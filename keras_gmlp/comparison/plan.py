"""A plan: the runs that are compared, each a folder, and how they are scored."""

import dataclasses
import functools
import itertools
from pathlib import Path

from keras_gmlp.comparison.workers import Workers, available_cores
from keras_gmlp.data.datasets import canonical_name
from keras_gmlp.data.images.packed import is_packed
from keras_gmlp.data.run_folder import Run
from keras_gmlp.data.text.labelled_texts import open_texts
from keras_gmlp.models.presets import lookup
from keras_gmlp.runs.settings import RunSettings, short_task
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.training.recipes import differences
from keras_gmlp.training.run_directory import check_samples, has_progress, read_history
from keras_gmlp.utils.errors import first_line
from keras_gmlp.utils.files import parse_json

# Of fine-tunings: small sets require more passes, pairs more tokens.
CHANGES = {"mrpc": {"epochs": 10, "length": 128}, "cola": {"epochs": 10}}

# The words of scores in the table, and their factor from metrics.json to there.
MEASURES = {
    "accuracy": ("accuracy (%)", 100),
    "matthews_correlation": ("Matthews correlation (x 100)", 100),
    "mean_average_precision": ("mean average precision (%)", 100),
    "perplexity": ("perplexity", 1),
}


class PlannedRun:
    """A run of a plan: the settings it is trained from, and what its folder holds."""

    failure = ""  # one line, why its training failed

    def __init__(self, settings):
        self.settings, self.directory = settings, Path(settings.out)
        self.name = self.directory.name
        self.preset, self.fraction = settings.model, settings.fraction
        self.seed = settings.changes.get("seed", 0)
        # Folder of the language model that it starts from.
        self.source = Path(settings.weights) if settings.kind == "task" else None

    @functools.cached_property
    def epochs(self):
        return self.settings.make_recipe().epochs

    @property
    def measure(self):
        """The score that runs are compared by, a key of `MEASURES`."""
        if self.settings.kind == "task" and short_task(self.settings.task) == "cola":
            return "matthews_correlation"
        return find_task(self.recorded.get("task")).headline

    @property
    def metrics(self):
        """`metrics.json`, a dict; empty if the run is not complete."""
        return Run(self.directory).metrics if self.complete else {}

    @property
    def score(self):
        return MEASURES[self.measure][1] * self.metrics[f"test_{self.measure}"]

    @property
    def recorded(self):
        return Run(self.directory).recipe

    @property
    def complete(self):
        return Run(self.directory).complete

    @property
    def begun(self):
        """Whether its folder holds work; the run then resumes with the same settings only."""
        return has_progress(self.directory)

    @property
    def status(self):
        if self.failure:
            return f"failed: {self.failure}"
        return "complete" if self.complete else f"{len(self.history())} epochs so far"

    def history(self):
        """Returns the rows of `history.csv`, dicts; none before the first epoch."""
        return read_history(self.directory / "history.csv")

    def describe(self):
        """Returns what `recipe.json` will say of the run, as far as the settings decide it."""
        settings = self.settings
        found = {**settings.make_recipe().settings(), **settings.record()}
        if settings.kind != "data":
            return found
        found["data"] = canonical_name(settings.data)
        shape = () if settings.weights else lookup(settings.model)[1]["input_shape"]
        if size := settings.size or shape[:2]:
            found["image_size"] = list(size)
        usual = None if settings.weights or is_packed(found["data"]) else "crop"
        if fit := settings.fit or usual:
            found["fit"] = fit
        return found


class Plan:
    """Runs that are compared, each in a folder of its own, so that a plan that stopped resumes."""

    def __init__(self, settings, jobs=1, backend=None):
        self.runs = [PlannedRun(each) for each in settings]
        cores = len(available_cores())
        if not 1 <= jobs <= cores:
            raise ValueError(f"jobs must be from 1 to the {cores} cores; received {jobs}.")
        self.jobs, self._backend = jobs, backend
        for each in settings:
            each.check()
        places = [run.directory for run in self.runs]
        if twice := [place for place in places if places.count(place) > 1]:
            raise ValueError(
                f"two runs would have the folder {twice[0]}; give the files of the tasks different "
                "names."
            )

    @functools.cached_property
    def backend(self):
        """Keras backend of the runs."""
        import keras  # here, so that a program refuses wrong options before

        return self._backend or keras.backend.backend()

    def work(self):
        """Trains all runs that are not complete, if the data are still the same."""
        from keras_gmlp.runs.prepare import load_data  # which imports Keras

        self.check_recorded(self.backend)
        for run in (run for run in self.runs if run.begun and Run(run.directory).samples):
            is_text = run.settings.kind == "task"
            data = open_texts(run.settings.text_source) if is_text else load_data(run.settings)
            check_samples(run.directory, data)
        Workers(self.runs, self.jobs, self.backend).train()

    def check_recorded(self, backend=None):
        """Raises a `ValueError` if a run was started with other settings, or on another backend."""
        for run in (run for run in self.runs if run.begun):
            recorded = dict(run.recorded)
            if "environment" in recorded:
                recorded["backend"] = recorded["environment"]["backend"]
            here = {**run.describe(), **({"backend": backend} if backend else {})}
            if find_task(recorded.get("task")).several:  # which the labels of the data decide
                recorded.pop("task")
                here.pop("task", None)
            if "image_shape" in recorded:
                recorded["image_size"] = recorded["image_shape"][:2]
            for name in recorded.get("choice", {}).get("changes", {}):
                if name not in run.settings.changes:
                    recorded.pop(name, None)  # fine-tuning chose it
            if differing := differences(recorded, here):
                raise ValueError(
                    f"{run.directory} holds a run with other settings ({'; '.join(differing)}). "
                    "Give the same settings, or another --out."
                )


def read_plan(path):
    """Returns a list of `RunSettings`, those of the runs in a JSON file."""
    entries = parse_json(Path(path).read_bytes(), path)
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{path}: expected a list of objects, one for each run.")
    runs = []
    for number, entry in enumerate(entries, 1):
        try:
            runs.append(RunSettings(**entry))
            runs[-1].check()
        except Exception as error:  # a value of any type raises what the first use of it raises
            raise ValueError(f"{path}, run {number}: {first_line(error, 1000)}") from None
    return runs


def plan_images(presets, shared, directory, seeds=(0,), fractions=(1.0,)):
    """Plans a run for each preset, seed and share of the training images, the whole set first."""
    presets, seeds, fractions = map(dict.fromkeys, (presets, seeds, fractions))
    planned = []
    for seed, share, preset in itertools.product(seeds, sorted(fractions, reverse=True), presets):
        name = f"{preset}{'' if share == 1 else f'-{share:g}'}-seed{seed}"
        own = {"model": preset, "fraction": share, "seed": seed, "out": str(Path(directory, name))}
        planned.append(dataclasses.replace(shared, **own))
    return planned


def plan_texts(presets, shared, tasks, directory, seeds=(0,)):
    """Plans language models, each pre-trained with the first seed, and fine-tuned on tasks."""
    presets, tasks, seeds = map(list, map(dict.fromkeys, (presets, tasks, seeds)))
    place = {preset: str(Path(directory) / preset) for preset in presets}
    models = [
        dataclasses.replace(shared, model=preset, seed=seeds[0], out=place[preset])
        for preset in presets
    ]
    same = {"precision": shared.precision, "data_dir": shared.data_dir}
    tuned = [
        RunSettings(
            weights=place[preset],
            task=task,
            out=f"{place[preset]}-{short_task(task)}-{seed}",
            **same,
        ).with_changes(**CHANGES.get(short_task(task), {}), seed=seed)
        for preset, task, seed in itertools.product(presets, tasks, seeds)
    ]
    return [*models, *tuned]
