"""A plan: the runs that are compared, each a folder, and how they are scored."""

import dataclasses
import functools
import math
import statistics
from pathlib import Path

from keras_gmlp.comparison.workers import Workers, available_cores
from keras_gmlp.data.run_folder import Run
from keras_gmlp.data.text.chosen_splits import open_texts
from keras_gmlp.runs.queue import read_plan
from keras_gmlp.runs.settings import short_task
from keras_gmlp.training.recipes import differences
from keras_gmlp.training.run_directory import (
    check_samples,
    has_progress,
    read_history,
)
from keras_gmlp.utils.csv_tables import write_dicts
from keras_gmlp.utils.environment import accelerators
from keras_gmlp.utils.files import atomic_write

FAILURE = "failed.txt"  # in a run's folder: one line, the reason


@dataclasses.dataclass(frozen=True)
class Measure:
    """How a task is scored."""

    name: str  # in the table
    key: str  # in metrics.json
    factor: float = 100.0  # from there to the table


ACCURACY = Measure("accuracy (%)", "test_accuracy")
PERPLEXITY = Measure("perplexity", "test_perplexity", 1.0)
MATTHEWS = Measure("Matthews correlation (x 100)", "test_matthews_correlation")


def measure_of(task):
    """Returns the `Measure` of a task."""
    return MATTHEWS if short_task(task) == "cola" else ACCURACY


class PlannedRun:
    """A run of a plan: the settings it is trained from, and what its folder holds."""

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
        if self.settings.kind == "task":
            return measure_of(self.settings.task)
        return PERPLEXITY if self.settings.kind == "prepared" else ACCURACY

    @property
    def metrics(self):
        """`metrics.json`, a dict; empty if the run is not complete."""
        names = (self.measure.key, "parameters", "epochs")
        return Run(self.directory).require_numbers(names) if self.complete else {}

    @property
    def score(self):
        return self.measure.factor * self.metrics[self.measure.key]

    @property
    def one_class(self):
        """Whether the model predicts the same class for everything."""
        return self.metrics.get("test_predicted_classes") == 1

    @property
    def recorded(self):
        return Run(self.directory).recipe

    def conditions(self):
        """Returns what a run was trained on, texts for the table."""
        found = self.recorded.get("environment", {})
        names = accelerators(found.get("devices", []))
        return {
            "backend": found.get("backend"),
            "processor": ", ".join(names) or found.get("processor"),
            "versions": " ".join(f"{k}={v}" for k, v in found.get("versions", {}).items()),
        }

    @property
    def complete(self):
        return Run(self.directory).complete

    @property
    def begun(self):
        """Whether an epoch is done; the run then resumes with the same settings only."""
        return has_progress(self.directory)

    @property
    def failed(self):
        return not self.complete and (self.directory / FAILURE).exists()

    @property
    def status(self):
        if self.failed:
            return "failed: " + (self.directory / FAILURE).read_text().strip()
        return "complete" if self.complete else f"{len(self.history())} epochs so far"

    def fail(self, reason):
        """Records why the run failed."""
        with atomic_write(self.directory / FAILURE) as temporary:
            temporary.write_text(" ".join(reason.split()) + "\n")

    def forget_failure(self):
        (self.directory / FAILURE).unlink(missing_ok=True)

    def history(self):
        """Returns the rows of `history.csv`, dicts; none before the first epoch."""
        return read_history(self.directory / "history.csv", ())


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
        for place, runs in group_by(self.runs, lambda run: run.directory).items():
            if len(runs) > 1:
                raise ValueError(
                    f"two runs would have the folder {place}; give the files of the tasks "
                    "different names."
                )

    @classmethod
    def read(cls, path):
        """Returns the plan in a JSON file, as `keras_gmlp.runs.queue` reads it."""
        return cls(read_plan(path))

    @property
    def complete(self):
        return [run for run in self.runs if run.complete]

    @functools.cached_property
    def backend(self):
        """Keras backend of the runs."""
        import keras  # here, so that a program refuses wrong options before

        return self._backend or keras.backend.backend()

    def work(self):
        """Trains all runs that are neither complete nor failed, if the data are still the same."""
        from keras_gmlp.runs.prepare import load_data  # which imports Keras

        self.check_recorded()
        for run in (run for run in self.runs if run.begun and Run(run.directory).samples):
            texts = run.settings.kind == "task"
            data = open_texts(run.settings.text_source) if texts else load_data(run.settings)
            check_samples(run.directory, data)
        Workers(self.runs, self.jobs, self.backend).train()

    def check_recorded(self):
        """Raises a `ValueError` if a run was started with other settings."""
        for run in (run for run in self.runs if run.begun):
            recorded = run.recorded
            if "environment" in recorded:
                recorded["backend"] = recorded["environment"]["backend"]
            if "image_shape" in recorded:
                recorded["image_size"] = recorded["image_shape"][:2]
            if differing := differences(recorded, self.describe(run.settings)):
                raise ValueError(
                    f"{run.directory} holds a run with other settings ({'; '.join(differing)}). "
                    "Give the same settings, or choose another directory."
                )

    def describe(self, settings):
        """Returns what `recipe.json` says of a run with these settings."""
        return {**settings.make_recipe().settings(), **settings.record()}


def group_by(items, key):
    """Returns lists of the items with the same key, in a dict."""
    groups = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def mean_and_spread(values):
    """Returns the mean and the standard deviation, 0 of one value."""
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0


def format_mean(values, digits, sign="", count=1):
    """Returns the mean and, of several values, their deviation divided by the root of a count."""
    if not values:
        return ""
    several = len(values) > 1
    error = f" ± {statistics.stdev(values) / math.sqrt(count):.{digits}f}" if several else ""
    return f"{statistics.mean(values):{sign}.{digits}f}{error}"


def format_difference(values, digits):
    """Returns the mean of differences with its standard error, as `"+2.00 ± 1.00"`."""
    return format_mean(values, digits, "+", len(values))


def note_single(number, total):
    """Returns a note on the runs that predict a single class; empty for none."""
    return f"{number} of {total} predict{'s' * (number == 1)} one class" if number else ""


def list_left_out(lines):
    """Returns the end of a table: a list of the runs that are not in it, if there are any."""
    return ["", "Not in the table:", "", *lines] if lines else []


def write_tables(directory, columns, rows, text):
    """Writes rows, dicts, to results.csv and a text to results.md; returns the paths, a list."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / "results.csv", directory / "results.md"]
    write_dicts(paths[0], columns, rows)
    with atomic_write(paths[1]) as temporary:
        temporary.write_text(text, "utf-8")
    return paths
