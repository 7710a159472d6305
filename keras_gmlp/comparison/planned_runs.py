"""The runs of a plan as its folders hold them, and the lines of a table that they make."""

import dataclasses
import re
from pathlib import Path

from keras_gmlp.comparison.results import trained_on
from keras_gmlp.comparison.texts import ACCURACY, Measure, measure_of
from keras_gmlp.models.presets import PRESETS
from keras_gmlp.runs.queue import read_plan
from keras_gmlp.runs.settings import DataSettings
from keras_gmlp.runs.text import FineTuningSettings, LanguageRunSettings
from keras_gmlp.training.run_directory import read_history, read_metrics, read_recipe

PERPLEXITY = Measure("perplexity", "test_perplexity", 1.0, None)

DISTANT = 100  # another preset is further away than any number of changes to one


@dataclasses.dataclass(frozen=True)
class PlannedRun:
    """A run of a plan, from its entry and its folder.

    Attributes:
        name: Name of the folder without the seed.
        seed: Seed of the run.
        settings: What else the entry sets, a flat dict.
        family: Name of the function that builds the model; `""` for a fine-tuned one.
        metrics: `metrics.json`, a dict; empty if the run is not complete.
        measure: How the run is scored, a `Measure`.
        state: `"complete"`, or how far the run is.
        epochs: Rows of `history.csv`.
        circumstances: Recipe, backend and device, a line; `""` before the run begins.
    """

    name: str
    seed: int
    settings: dict
    family: str
    metrics: dict
    measure: Measure
    state: str
    epochs: tuple
    circumstances: str

    @property
    def preset(self):  # as `charts` names the runs of a line
        return self.name

    @property
    def score(self):
        return self.measure.factor * self.metrics[self.measure.key]

    def history(self):
        return self.epochs

    def row(self):
        """Returns the run's row of results.csv, a dict."""
        row = {name: getattr(self, name) for name in ("name", "seed", "family", "state")}
        if self.metrics:
            row |= {name: self.metrics.get(name, "") for name in ("parameters", "seconds")}
            row |= {"epochs": self.metrics["epochs"], "measure": self.measure.name}
            row["score"] = round(self.score, 4)
        return row


@dataclasses.dataclass(frozen=True)
class Line:
    """Runs that differ in the seed alone, and the earlier line that is the nearest.

    Attributes:
        runs: The runs, `PlannedRun`s.
        base: The earlier `Line`, or `None`.
    """

    runs: tuple
    base: object

    @property
    def name(self):
        return self.runs[0].name

    @property
    def complete(self):
        return [run for run in self.runs if run.metrics]

    @property
    def scores(self):
        """The score of each seed whose run is complete, a dict."""
        return {run.seed: run.score for run in self.complete}

    @property
    def parameters(self):
        return self.complete[0].metrics["parameters"]

    def changes(self):
        """Returns the settings that differ from the base, a text."""
        if self.base is None:
            return ""
        mine, others = self.runs[0].settings, self.base.runs[0].settings
        texts = [f"{key}={mine[key]}" for key in mine if mine[key] != others.get(key)]
        texts += [f"{key} as usual" for key in others if key not in mine]
        return ", ".join(texts)

    def differences(self):
        """Returns the score minus the base's for each seed that both have, a list."""
        if self.base is None:
            return []
        base = self.base.scores
        return [score - base[seed] for seed, score in self.scores.items() if seed in base]


def read_runs(path):
    """Reads the runs of a plan."""
    return [_read_run(entry) for entry in read_plan(path)]


def _read_run(entry):
    directory, settings = Path(entry.directory), _settings(entry)
    seed = settings.pop("seed", 0)
    recorded = read_recipe(directory) if (directory / "recipe.json").exists() else {}
    history, metrics, measure = read_history(directory / "history.csv"), {}, _measure(entry)
    if (directory / "metrics.json").exists():
        names = (measure.key, "parameters", "epochs")
        metrics = read_metrics(directory / "metrics.json", names)
    preset = settings.get("preset")
    build = PRESETS.get(preset, (None,))[0]
    state = "complete" if metrics else f"{len(history)} epochs so far" if recorded else "not begun"
    return PlannedRun(
        name=re.sub(r"-(s|seed)?\d+$", "", directory.name),
        seed=seed,
        settings=settings,
        family=build.__name__ if build else "",
        metrics=metrics,
        measure=measure,
        state=state,
        epochs=tuple(history),
        circumstances=_circumstances(recorded),
    )


def _measure(entry):
    if isinstance(entry, FineTuningSettings):
        return measure_of(entry.data)
    return PERPLEXITY if isinstance(entry, LanguageRunSettings) else ACCURACY


def _settings(entry):
    """Returns what an entry of a plan sets, a flat dict without the folder."""
    values = {}
    for field in dataclasses.fields(entry):
        value = getattr(entry, field.name)
        if isinstance(value, DataSettings):
            values |= {"data" if k == "name" else k: v for k, v in _settings(value).items()}
        elif dataclasses.is_dataclass(value):
            values |= _settings(value)
        elif isinstance(value, dict):
            values |= value
        elif field.name != "directory" and value != field.default:
            values[field.name] = value
    return values


def _circumstances(recorded):
    if not recorded:
        return ""
    environment = recorded.get("environment", {})
    device = trained_on(environment)
    versions = " ".join(f"{k}={v}" for k, v in environment.get("versions", {}).items())
    return (
        f"{recorded['data']}, recipe `{recorded['recipe']}`, {recorded['precision']}, Keras on "
        f"{environment.get('backend')}, {device} ({versions})."
    )


def group(runs):
    """Groups runs that differ in the seed alone; returns a list of `Line`."""
    lines, groups = [], {}
    for run in runs:
        groups.setdefault(repr(sorted(run.settings.items())), []).append(run)
    for members in groups.values():
        alike = [line for line in lines if line.complete and _comparable(line.runs[0], members[0])]
        base = min(alike, key=lambda line: _distance(line.runs[0], members[0]), default=None)
        lines.append(Line(tuple(members), base))
    return lines


def _comparable(one, other):
    """Whether the scores of two runs mean the same."""
    one, other = ((run.measure, run.settings.get("data")) for run in (one, other))
    return one == other


def _distance(one, other):
    keys = one.settings.keys() | other.settings.keys()
    different = {key for key in keys if one.settings.get(key) != other.settings.get(key)}
    return len(different) + DISTANT * ("preset" in different)
