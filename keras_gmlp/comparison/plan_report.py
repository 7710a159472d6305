"""The table and the charts of a plan, from the folders of its runs.

Runs that differ in the seed only are one line. Each line is compared, seed by seed, with the
earlier one whose settings are the nearest, so that a plan of single changes becomes a table of what
each change gives. Runs that are not complete are named below.
"""

import math
import re
import statistics
from pathlib import Path

from keras_gmlp.comparison.charts import draw_series
from keras_gmlp.comparison.plan import MEASURES
from keras_gmlp.models.presets import PRESETS
from keras_gmlp.runs.settings import KINDS
from keras_gmlp.utils.environment import accelerators
from keras_gmlp.utils.files import atomic_write
from keras_gmlp.utils.tables import make_table, write_table

COLUMNS = (
    *("name", "preset", "seed", "fraction", "status", "measure", "score", "test_accuracy"),
    *("train_accuracy", "parameters", "flops", "latency_ms", "epochs", "seconds"),
    *("images_per_second", "data", "recipe", "backend", "processor", "versions"),
)
HEAD = ("run", "parameters", "epochs", "seeds", "measure", "score")
HEAD += ("next to", "what differs", "difference")
# Further columns, of the runs that have them: name, factor and digits of a mean.
FURTHER = {
    "train_accuracy": ("on training images (%)", 100, 2),
    "flops": ("MFLOPs", 1e-6, 0),
    "latency_ms": ("ms per image", 1, 2),
    "images_per_second": ("images/s", 1, 0),
}
NOTE = (
    "A score is the mean over the seeds, with the standard deviation; a difference is taken seed "
    "by seed, with the standard error of its mean. One seed says little about differences below a "
    "point. Images/s is the training speed, possibly on a busy machine; ms per image is the "
    "latency of the 8-bit TFLite file on one thread, and the models take turns."
)
COSTS = {
    "parameters": ("parameters (millions)", 1e-6),
    "flops": ("FLOPs an image (millions)", 1e-6),
    "latency_ms": ("latency of one image, 8-bit TFLite on one thread (ms)", 1),
}
SCORES = "test accuracy (%), ± standard deviation over seeds"
GROWTH = 1.5  # a family has several sizes if the largest is that many times the smallest
DISTANT = 100  # another preset is further away than any number of changes to one


class Line:
    """Runs that differ in the seed only, and the earlier line that is the nearest, or `None`."""

    def __init__(self, runs, settings, rows, earlier):
        self.runs, self.settings, self.rows = runs, settings, rows
        self.name = re.sub(r"-(s|seed)?\d+$", "", runs[0].name)
        self.preset, self.measure = runs[0].preset, runs[0].measure
        self.family, _ = PRESETS.get(self.preset, ("", {}))
        self.scores = {run.seed: run.score for run in runs}
        self.subject = self.measure, *(settings.get(kind) for kind in KINDS)
        alike = [line for line in earlier if line.subject == self.subject]
        self.base = min(alike, key=self._distance, default=None)

    def mean(self, column):
        """Returns the mean of a column over the runs, or `None` without values."""
        values = [row[column] for row in self.rows if isinstance(row[column], int | float)]
        return statistics.mean(values) if values else None

    def point(self, x):
        """Returns the point of the line in a chart: x, and the scores' mean and deviation."""
        scores = list(self.scores.values())
        mean, spread = statistics.mean(scores), statistics.stdev(scores) if scores[1:] else 0
        return x, mean, mean - spread, mean + spread

    def cells(self):
        """Returns the line of the table, up to the difference."""
        single = sum(run.metrics.get("test_predicted_classes") == 1 for run in self.runs)
        note = f" ({single} of {len(self.runs)} predict{'s' * (single == 1)} one class)"
        score = format_mean(list(self.scores.values()), 2) + note * bool(single)
        cells = [f"`{self.name}`", f"{self.mean('parameters'):,.0f}", f"{self.mean('epochs'):g}"]
        cells += [f"{len(self.scores)}", MEASURES[self.measure][0], score]
        others = self.base.scores if self.base else {}
        differences = [score - others[n] for n, score in self.scores.items() if n in others]
        cells += [f"`{self.base.name}`", self._changes()] if differences else ["", ""]
        return [*cells, format_mean(differences, 2, "+", len(differences))]

    def _distance(self, other):
        mine, others = self.settings, other.settings
        different = {key for key in mine.keys() | others.keys() if mine.get(key) != others.get(key)}
        return len(different) + DISTANT * ("model" in different)

    def _changes(self):
        """Returns the settings that differ from the base, a text."""
        mine, others = self.settings, self.base.settings
        texts = [f"{key}={mine[key]}" for key in mine if mine[key] != others.get(key)]
        return ", ".join([*texts, *(f"{key} as usual" for key in others if key not in mine)])


def group(rows):
    """Groups the complete runs, given rows by run, that differ in the seed only, as `Line`s."""
    groups, lines = {}, []
    for run in rows:
        settings = run.settings.to_dict()
        own = {**settings.pop("set", {}), **settings.pop("set_model", {})}
        settings = {k: v for k, v in {**settings, **own}.items() if k not in ("out", "seed")}
        groups.setdefault(repr(sorted(settings.items())), (settings, []))[1].append(run)
    for settings, members in groups.values():
        if done := [run for run in members if run.complete]:
            lines.append(Line(done, settings, [rows[run] for run in done], list(lines)))
    return lines


def to_row(run, costs=None):
    """Returns a run's row of results.csv, a dict with `COLUMNS` as keys."""
    metrics, found = run.metrics, run.recorded.get("environment", {})
    changes = {k: v for k, v in run.settings.changes.items() if k not in ("epochs", "seed")}
    row = {**metrics, **(costs or {}).get(run.preset, {})}
    row |= {name: getattr(run, name) for name in ("name", "preset", "seed", "fraction", "status")}
    row["data"] = run.recorded.get("data", "")
    row["recipe"] = ", ".join([run.settings.recipe, *(f"{k}={v}" for k, v in changes.items())])
    row["backend"] = found.get("backend")
    row["processor"] = ", ".join(accelerators(found.get("devices", []))) or found.get("processor")
    row["versions"] = " ".join(f"{k}={v}" for k, v in found.get("versions", {}).items())
    if metrics:
        row |= {"measure": MEASURES[run.measure][0], "score": round(run.score, 4)}
    return {name: row.get(name, "") for name in COLUMNS}


def format_mean(values, digits, sign="", count=1):
    """Returns the mean and, of several values, their deviation divided by the root of a count."""
    if not values:
        return ""
    several = len(values) > 1
    error = f" ± {statistics.stdev(values) / math.sqrt(count):.{digits}f}" if several else ""
    return f"{statistics.mean(values):{sign}.{digits}f}{error}"


def to_markdown(lines, rows, command):
    """Returns the table as Markdown, then the runs that are not complete."""
    form = "{data}, recipe `{recipe}`, Keras on {backend}, {processor} ({versions})."
    complete = [row for row in rows if row["status"] == "complete"]
    text = [*dict.fromkeys(form.format(**row) for row in complete), "", f"Made by `{command}`.", ""]
    further = [name for name in FURTHER if any(line.mean(name) is not None for line in lines)]
    table = []
    for line in lines:
        means = [(line.mean(name), *FURTHER[name][1:]) for name in further]
        cells = ["" if m is None else f"{factor * m:.{digits}f}" for m, factor, digits in means]
        table.append([*line.cells(), *cells])
    head = (*HEAD, *(FURTHER[name][0] for name in further))
    text += [*make_table(head, table, numbers=(1, 2, 3)), "", NOTE]
    if rest := [row for row in rows if row["status"] != "complete"]:
        text += ["", "Not in the table:", ""]
        text += [f"- `{row['name']}`: {row['status']}" for row in rest]
    return "\n".join(text) + "\n"


def draw_charts(lines, directory):
    """Draws what the lines allow; deletes other charts of earlier reports."""
    lines = [line for line in lines if line.measure == "accuracy"]
    whole = [line for line in lines if line.mean("fraction") == 1]
    # Runs that held out validation images have no test accuracy in their histories.
    tested = [line for line in lines if line.family and "validation" not in line.settings]
    epochs = {line.name: points for line in tested if (points := _list_epochs(line.runs))}
    measured = [line for line in whole if line.mean("flops") is not None]
    costs = [
        (label, SCORES, {line.name: [line.point(unit * line.mean(name))] for line in measured})
        for name, (label, unit) in COSTS.items()
        if measured and all(line.mean(name) is not None for line in measured)
    ]
    sizes = _list_series([line for line in whole if line.family], "family", "parameters", 1e-6)
    grown = any(points[-1][0] >= GROWTH * points[0][0] for points in sizes.values())
    shares = _list_series(lines, "preset", "fraction", 100)
    shares = {name: points for name, points in shares.items() if points[-1][0] > points[0][0]}
    paths = []
    for name, panels, options in (
        ("epochs", [("epoch", "test accuracy (%), worst to best", epochs)] * bool(epochs), {}),
        ("costs", costs, {"front": True}),
        ("capacity", [(COSTS["parameters"][0], SCORES, sizes)] * grown, {"log": True}),
        (
            "fractions",
            [("training images (% of the set)", SCORES, shares)] * bool(shares),
            {"log": True},
        ),
    ):
        path = directory / f"{name}.png"
        path.unlink(missing_ok=True)
        if panels:
            paths.append(draw_series(panels, path, **options))
    return paths


def _list_epochs(runs):
    """Returns points `(epoch, mean, lowest, highest)` of the epochs that all runs have."""
    histories = [
        [100 * float(row["val_accuracy"]) for row in rows]
        for run in runs
        if (rows := run.history())
    ]
    columns = enumerate(zip(*histories, strict=False), 1)
    return [(epoch, statistics.mean(c), min(c), max(c)) for epoch, c in columns]


def _list_series(lines, key, column, unit):
    """Returns the sorted points of the lines by an attribute, with x from a column."""
    series = {}
    for line in lines:
        points = series.setdefault(getattr(line, key), [])
        points.append(line.point(unit * line.mean(column)))
    return {name: sorted(points) for name, points in series.items()}


def write_report(runs, directory, command="", costs=None):
    """Writes the tables and the charts of a plan's runs; returns the rows and the paths."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    rows = {run: to_row(run, costs) for run in runs}
    lines = group(rows)
    paths = [directory / "results.csv", directory / "results.md"]
    write_table(paths[0], [COLUMNS, *(row.values() for row in rows.values())])
    with atomic_write(paths[1]) as temporary:
        temporary.write_text(to_markdown(lines, rows.values(), command), "utf-8")
    return list(rows.values()), [*paths, *draw_charts(lines, directory)]
