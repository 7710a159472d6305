"""The table and the charts of a plan: `python -m keras_gmlp.comparison.plan_report PLAN.json`.

Reads the folders of the runs that `keras_gmlp.runs.queue` trained from the plan and writes
results.csv, results.md and, as far as the runs allow, two charts: capacity.png, the score of each
family over its number of parameters, and epochs.png. Runs that differ in the seed alone count as
one line. Each line is compared, seed by seed, with the earlier one whose settings are the nearest,
so that a plan of single changes becomes a table of what each change gives. Runs that are not
complete are named below the table.
"""

import argparse
import csv
import dataclasses
import math
import re
import statistics
import sys
from pathlib import Path

from keras_gmlp.comparison import charts
from keras_gmlp.comparison.results import trained_on
from keras_gmlp.comparison.texts import ACCURACY, Measure, measure_of
from keras_gmlp.models.presets import PRESETS
from keras_gmlp.models.text_families import TEXT_PRESETS
from keras_gmlp.runs.queue import read_plan
from keras_gmlp.runs.settings import DataSettings
from keras_gmlp.runs.text import FineTuningSettings, LanguageRunSettings
from keras_gmlp.training.run_directory import read_history, read_metrics, read_recipe
from keras_gmlp.utils import plotting
from keras_gmlp.utils.errors import first_line
from keras_gmlp.utils.files import atomic_write

COLUMNS = ("name", "seed", "family", "parameters", "measure", "score", "epochs", "seconds", "state")

PERPLEXITY = Measure("perplexity", "test_perplexity", 1.0, None)

DISTANT = 100  # another preset is further away than any number of changes to one

GROWTH = 1.5  # a family has several sizes if the largest is that many times the smallest


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
    """Reads the runs of a plan.

    Args:
        path: Path of the plan; the folders it names are relative to the working directory.

    Returns:
        A list of `PlannedRun`, in the order of the plan.

    Raises:
        ValueError: If the plan, or a file of a run, cannot be read. One line.
    """
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
    build = (PRESETS | TEXT_PRESETS).get(preset, (None,))[0]
    state = "complete" if metrics else f"{len(history)} epochs so far" if recorded else "not begun"
    return PlannedRun(
        name=re.sub(r"-s?\d+$", "", directory.name),
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


def to_markdown(lines, command):
    """Returns the table as Markdown, then the runs that are not complete.

    Args:
        lines: What `group` returns.
        command: Command that made the table.
    """
    done = [line for line in lines if line.complete]
    circumstances = dict.fromkeys(run.circumstances for line in done for run in line.complete)
    text = [*circumstances, "", f"Made by `{command}`.", ""]
    text += [
        "| run | parameters | epochs | seeds | measure | score | next to | what differs "
        "| difference |",
        "|---|---:|---:|---:|---|---|---|---|---|",
    ]
    for line in done:
        base = line.base if line.differences() else None
        cells = (
            f"`{line.name}`",
            f"{line.parameters:,}",
            f"{line.complete[0].metrics['epochs']}",
            f"{len(line.scores)}",
            line.runs[0].measure.name,
            _score(line),
            f"`{base.name}`" if base else "",
            line.changes() if base else "",
            _difference(line.differences()),
        )
        text.append(f"| {' | '.join(cells)} |")
    text += [
        "",
        "A score is the mean over the seeds, with the standard deviation; a difference is taken "
        "seed by seed, with the standard error of its mean. One seed says little about differences "
        "below a point.",
    ]
    rest = [run for line in lines for run in line.runs if not run.metrics]
    if rest:
        text += ["", "Not in the table:", ""]
        text += [f"- `{run.name}`, seed {run.seed}: {run.state}" for run in rest]
    return "\n".join(text) + "\n"


def _score(line):
    scores = list(line.scores.values())
    spread = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
    return f"{statistics.mean(scores):.2f}{spread}"


def _difference(values):
    if not values:
        return ""
    error = ""
    if len(values) > 1:
        error = f" ± {statistics.stdev(values) / math.sqrt(len(values)):.2f}"
    return f"{statistics.mean(values):+.2f}{error}"


def draw_capacity(lines, path):
    """Draws the score of each family over its parameters, gMLP's own figure.

    Args:
        lines: What `group` returns.
        path: Path of the PNG file.

    Returns:
        The path, or `None` if no family has several sizes.
    """
    families = {}
    for line in lines:
        if line.complete and line.runs[0].family:
            families.setdefault(line.runs[0].family, []).append(line)
    for of in families.values():
        of.sort(key=lambda line: line.parameters)
    if not any(of[-1].parameters >= GROWTH * of[0].parameters for of in families.values()):
        return None
    figure, (axes,) = charts.make_figure()
    ends = []
    for name, colour in charts.choose_colours(families).items():
        sizes = [line.parameters / 1e6 for line in families[name]]
        scores = [list(line.scores.values()) for line in families[name]]
        means = [statistics.mean(values) for values in scores]
        spreads = [statistics.stdev(values) if len(values) > 1 else 0 for values in scores]
        axes.errorbar(sizes, means, yerr=spreads, color=colour, marker="o", capsize=2)
        ends.append((sizes[-1], means[-1], name, colour))
    axes.set_xscale("log")
    measure = next(iter(families.values()))[0].runs[0].measure
    axes.set(xlabel="parameters (millions)", ylabel=f"test {measure.name}")
    charts.label_ends(axes, ends)
    return plotting.save(figure, path)


def draw_epochs(lines, path):
    """Draws the test accuracy over epochs; returns the path, or `None` without image models."""
    runs = [
        run for line in lines for run in line.complete if run.family and run.measure == ACCURACY
    ]
    if not runs:
        return None
    colours = charts.choose_colours(dict.fromkeys(run.name for run in runs))
    return charts.draw_epochs(runs, colours, path)


def write_report(plan, directory, command):
    """Writes results.csv, results.md and the charts of a plan.

    Args:
        plan: Path of the plan.
        directory: Output folder. Charts there that the runs do not allow are deleted.
        command: Command that made the report.

    Returns:
        The paths of the files, a list.

    Raises:
        ValueError: If the plan or a run cannot be read, or no run is complete. One line.
    """
    runs = read_runs(plan)
    if not any(run.metrics for run in runs):
        raise ValueError(
            f"{plan}: none of its {len(runs)} runs is complete. Train them with "
            f"`python -m keras_gmlp.runs.queue {plan}`."
        )
    lines, directory = group(runs), Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / "results.csv", directory / "results.md"]
    with atomic_write(paths[0]) as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(run.row() for run in runs)
    with atomic_write(paths[1]) as temporary:
        temporary.write_text(to_markdown(lines, command), "utf-8")
    for draw, name in ((draw_capacity, "capacity.png"), (draw_epochs, "epochs.png")):
        (directory / name).unlink(missing_ok=True)
        if drawn := draw(lines, directory / name):
            paths.append(drawn)
    return paths


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m keras_gmlp.comparison.plan_report",
        description=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("plan", metavar="PLAN.json", help="for example docs/plans/capacity.json")
    parser.add_argument("--out", metavar="DIR", help="default: runs/PLAN-report")
    options = parser.parse_args(arguments)
    out = options.out or f"runs/{Path(options.plan).stem}-report"
    command = f"python -m keras_gmlp.comparison.plan_report {options.plan} --out {out}"
    try:
        paths = write_report(options.plan, out, command)
    except ValueError as error:
        print(f"plan_report: {first_line(error)}", file=sys.stderr)
        return 1
    for path in paths:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
