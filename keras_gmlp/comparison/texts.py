"""A comparison of language models: pre-trains each, fine-tunes it on tasks, and tabulates."""

import csv
import dataclasses
import math
import statistics
from pathlib import Path

from keras_gmlp.models.presets import find
from keras_gmlp.models.text_families import TEXT_PRESETS
from keras_gmlp.runs.queue import work
from keras_gmlp.runs.text import FineTuningSettings, LanguageRunSettings
from keras_gmlp.training.run_directory import has_progress
from keras_gmlp.training.settings import differences
from keras_gmlp.utils import plotting
from keras_gmlp.utils.files import atomic_write, read_json


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
    ):
        self.presets, self.tasks = list(dict.fromkeys(presets)), list(dict.fromkeys(tasks))
        self.seeds = list(dict.fromkeys(seeds))
        directory, changes = Path(directory), dict(changes or {})
        longer = {} if epochs is None else {"epochs": epochs}
        self.models, self.tuned = {}, {}
        for preset in self.presets:
            find(preset, TEXT_PRESETS)
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
                        place, task, changes=own, directory=out
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
        """Returns a dict for each preset.

        `preset`; `parameters` and `perplexity`, `None` without a complete run; and `scores`, a dict
        from the task to a dict from the seed to the score of a complete run.
        """
        rows = []
        for preset, settings in self.models.items():
            found = _metrics(settings)
            scores = {task: {} for task in self.tasks}
            for (owner, task, seed), tuned in self.tuned.items():
                if owner == preset and (metrics := _metrics(tuned)):
                    measure = measure_of(task)
                    scores[task][seed] = measure.factor * metrics[measure.key]
            rows.append(
                {
                    "preset": preset,
                    "parameters": found.get("parameters"),
                    "perplexity": found.get("test_perplexity"),
                    "scores": scores,
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


def best_floor(task, floors):
    """Returns the name and the score of the best simple classifier.

    Args:
        task: Name of the task.
        floors: What `data.text.floors.compute_floors` returns.
    """
    measure = measure_of(task)
    name = max(floors, key=lambda classifier: floors[classifier][measure.floor])
    return name, measure.factor * floors[name][measure.floor]


def write_results(rows, directory, command, floors=None):
    """Writes results.csv, one row per score, results.md and tasks.png; returns their paths.

    Args:
        rows: What `TextSweep.rows` returns.
        directory: Folder for the files.
        command: Command that made them.
        floors: Dict from a task to what `best_floor` returns.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / "results.csv", directory / "results.md"]
    with atomic_write(paths[0]) as temporary, open(temporary, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["preset", "parameters", "perplexity", "task", "measure", "seed", "score"])
        for row in rows:
            start = [row["preset"], row["parameters"], row["perplexity"]]
            for task, scores in row["scores"].items():
                for seed, score in scores.items():
                    writer.writerow([*start, task, measure_of(task).name, seed, round(score, 4)])
    with atomic_write(paths[1]) as temporary:
        temporary.write_text(to_markdown(rows, command, floors or {}), "utf-8")
    if any(row["perplexity"] and any(row["scores"].values()) for row in rows):
        paths.append(draw_tasks(rows, directory / "tasks.png", floors))
    return paths


def to_markdown(rows, command, floors):
    """Returns the tables: scores with what they must beat, and differences to the first model."""
    tasks = list(rows[0]["scores"])
    header = ["model", "parameters", "perplexity"]
    header += [f"{task}, {measure_of(task).name}" for task in tasks]
    lines = [header, ["---"] * len(header)]
    if floors:
        shown = [f"{floors[t][1]:.1f} ({floors[t][0]})" if t in floors else "" for t in tasks]
        lines.append(["without a network", "", "", *shown])
    for row in rows:
        size = "" if row["parameters"] is None else f"{row['parameters']:,}"
        perplexity = "" if row["perplexity"] is None else f"{row['perplexity']:.2f}"
        lines.append([row["preset"], size, perplexity, *map(_mean, row["scores"].values())])
    text = ["# Language models", "\n".join("| " + " | ".join(line) + " |" for line in lines)]
    text.append("Mean and standard deviation over the seeds; their number in brackets.")
    if differences := _differences(rows):
        text += ["## Differences", differences]
        text.append(
            f"To {rows[0]['preset']}, seed by seed: mean and standard error. A difference within "
            "two standard errors says little. Each model was pre-trained once, with one seed: the "
            "errors leave out what another pre-training would change."
        )
    text.append(f"```\n{command}\n```")
    return "\n\n".join(text) + "\n"


def _mean(scores):
    values = list(scores.values())
    if not values:
        return ""
    if len(values) == 1:
        return f"{values[0]:.1f} (1)"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f} ({len(values)})"


def _differences(rows):
    """Returns a table of the differences to the first model; empty without two seeds of two."""
    first, lines = rows[0], []
    for row in rows[1:]:
        cells = [
            _difference(row["scores"][task], first["scores"][task]) for task in first["scores"]
        ]
        if any(cells):
            lines.append([row["preset"], *cells])
    if not lines:
        return ""
    header = ["model", *first["scores"]]
    lines = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _difference(scores, base):
    shared = [scores[seed] - base[seed] for seed in scores if seed in base]
    if len(shared) < 2:
        return ""
    error = statistics.stdev(shared) / math.sqrt(len(shared))
    return f"{statistics.mean(shared):+.1f} ± {error:.1f}"


def draw_tasks(rows, path, floors=None):
    """Draws each task's score over the perplexity (gMLP, figure 7); returns the path."""
    tasks = [task for task in rows[0]["scores"] if any(row["scores"][task] for row in rows)]
    figure, (cells,) = plotting.figure((4.2 * len(tasks), 3.8), columns=len(tasks))
    for axes, task in zip(cells, tasks, strict=True):
        for row in rows:
            if row["perplexity"] and (scores := list(row["scores"][task].values())):
                mean = statistics.mean(scores)
                spread = statistics.stdev(scores) if len(scores) > 1 else 0
                axes.errorbar(row["perplexity"], mean, spread, fmt="o", capsize=3)
                axes.annotate(row["preset"], (row["perplexity"], mean), fontsize=8)
        if task in (floors or {}):
            axes.axhline(floors[task][1], color="0.6", linestyle=":", label="without a network")
            axes.legend(fontsize=8)
        axes.margins(0.2)
        axes.set(xlabel="perplexity", ylabel=measure_of(task).name, title=task)
        axes.grid(alpha=0.3)
    plotting.save(figure, path)
    return path
