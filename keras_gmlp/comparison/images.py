"""A comparison of image models: presets x seeds x shares of the training set; their tables."""

import csv
import dataclasses
import statistics
from pathlib import Path

from keras_gmlp.comparison.plan import Plan, format_mean, group_by, list_left_out
from keras_gmlp.data.datasets import canonical_name
from keras_gmlp.data.images.packed import is_packed
from keras_gmlp.models.presets import lookup
from keras_gmlp.runs.settings import OF_RECIPE
from keras_gmlp.utils.csv_tables import write_dicts
from keras_gmlp.utils.markdown import make_table

COLUMNS = (
    *("preset", "seed", "fraction", "status", "test_accuracy", "train_accuracy", "parameters"),
    *("flops", "latency_ms", "epochs", "seconds", "images_per_second"),
    *("data", "recipe", "backend", "processor", "versions"),
)
HEAD = (
    *("preset", "data", "seeds", "test accuracy", "on training images", "parameters", "MFLOPs"),
    *("ms per image", "epochs", "images/s"),
)


class Sweep(Plan):
    """Trains one model for each combination of preset, seed and share of the training set.

    Each run is a folder of its own. `work` trains those that are neither complete nor failed.
    Killing this process ends its runs.

    Args:
        presets: Keys of `keras_gmlp.PRESETS`.
        settings: `RunSettings` that all runs share. Preset, seed, fraction and directory are
            replaced in each run.
        directory: Folder that holds the folders of the runs.
        seeds: Seeds of weights, order and augmentation.
        fractions: Shares of the training samples, in (0, 1].
        jobs: Number of runs at the same time; they share the cores. Several NVIDIA GPUs are dealt
            out among them, so that each run uses one.
        backend: Keras backend of the runs; `None` for that of this process.

    Raises:
        ValueError: If the settings cannot work, or `jobs` exceeds the cores.

    Example:
        sweep = Sweep(["gmlp_n4_32", "vit_n4_32"], RunSettings(data="cifar10"), "runs/sweep")
        sweep.work()
        write_results(sweep.runs, "runs/results.csv")
    """

    def __init__(
        self, presets, settings, directory, *, seeds=(0,), fractions=(1.0,), jobs=1, backend=None
    ):
        super().__init__(plan_runs(presets, settings, directory, seeds, fractions), jobs, backend)

    def describe(self, settings):
        """Returns what `recipe.json` says of a run, with backend and image size."""
        recorded = {**super().describe(settings), "backend": self.backend}
        recorded["data"] = canonical_name(settings.data)
        if settings.image_size:
            recorded["image_size"] = list(settings.size)
        elif not settings.weights:
            recorded["image_size"] = list(lookup(settings.model)[1]["input_shape"][:2])
        if settings.fit:
            recorded["fit"] = settings.fit
        elif not settings.weights and not is_packed(recorded["data"]):
            recorded["fit"] = "crop"
        return recorded


def plan_runs(presets, shared, directory, seeds=(0,), fractions=(1.0,)):
    """Returns the settings of all runs, the first seed and the whole training set first."""
    presets, seeds, fractions = map(dict.fromkeys, (presets, seeds, fractions))
    return [
        dataclasses.replace(
            shared,
            model=preset,
            fraction=fraction,
            seed=seed,
            out=str(Path(directory) / run_name(preset, seed, fraction)),
        )
        for seed in seeds
        for fraction in sorted(fractions, reverse=True)
        for preset in presets
    ]


def run_name(preset, seed, fraction):
    """Returns the name of a run's folder."""
    return f"{preset}{'' if fraction == 1 else f'-{fraction:g}'}-seed{seed}"


def describe(settings):
    """Returns the recipe of a run and what it changes, from the settings that it recorded."""
    changes = {name: settings[name] for name in OF_RECIPE if name in settings}
    changes |= settings.get("set", {})
    changes = {k: v for k, v in changes.items() if k not in ("epochs", "seed")}
    return ", ".join([settings.get("recipe", ""), *(f"{k}={v}" for k, v in changes.items())])


def to_row(run, costs=None):
    """Returns a run's row of the table, a dict with `COLUMNS` as keys."""
    recipe, metrics = run.recorded, run.metrics
    row = {
        **metrics,
        **run.conditions(),
        "data": recipe.get("data", ""),
        "recipe": describe(recipe.get("command", {})),
        **(costs or {}).get(run.preset, {}),
        **{name: getattr(run, name) for name in ("preset", "seed", "fraction", "status")},
    }
    return {name: row.get(name, "") for name in COLUMNS}


def write_results(runs, path, costs=None):
    """Writes the table as CSV, one row per run; returns the rows."""
    rows = [to_row(run, costs) for run in runs]
    write_dicts(path, COLUMNS, rows)
    return rows


def find_left_out(path, rows):
    """Returns the names of the complete runs in an earlier table that these rows lack."""
    if not Path(path).exists():
        return []
    here = {tuple(str(row[name]) for name in ("preset", "seed", "fraction")) for row in rows}
    with open(path, newline="") as file:
        before = [row for row in csv.DictReader(file) if row.get("status") == "complete"]
    keys = [(row["preset"], row["seed"], row["fraction"]) for row in before]
    return [run_name(key[0], key[1], float(key[2])) for key in keys if key not in here]


def summarize(rows):
    """Averages complete rows over their seeds, the most accurate first."""
    complete = [row for row in rows if row["status"] == "complete"]
    summary = []
    for group in group_by(complete, lambda row: (row["preset"], row["fraction"])).values():
        means = {
            name: statistics.mean(values)
            for name in COLUMNS
            if (values := [row[name] for row in group if isinstance(row[name], int | float)])
        }
        accuracies = [row["test_accuracy"] for row in group]
        spread = statistics.stdev(accuracies) if len(group) > 1 else None
        means |= {"preset": group[0]["preset"], "fraction": group[0]["fraction"], "spread": spread}
        summary.append({**means, "seeds": len(group), "accuracies": accuracies})
    return sorted(summary, key=lambda s: (-s["fraction"], -s["test_accuracy"]))


def to_markdown(rows, command, processor):
    """Returns the table as Markdown: a line per preset and fraction, then the failed runs."""
    complete = [row for row in rows if row["status"] == "complete"]
    circumstances = "{data}, recipe `{recipe}`, Keras on {backend}, {processor} ({versions})."
    lines = [
        *dict.fromkeys(circumstances.format(**row) for row in complete),
        *("", f"Made by `{command}`.", ""),
        "Images/s is the training speed, possibly on a busy machine. ms per image is the latency "
        f"of the 8-bit TFLite file on one thread of {processor}; the models take turns.",
        "",
    ]
    table = []
    for line in summarize(rows):
        cells = (
            f"`{line['preset']}`",
            f"{100 * line['fraction']:g} %",
            str(line["seeds"]),
            f"{format_mean([100 * accuracy for accuracy in line['accuracies']], 2)} %",
            f"{100 * line['train_accuracy']:.2f} %" if "train_accuracy" in line else "",
            f"{line['parameters']:,.0f}",
            f"{line['flops'] / 1e6:.0f}" if "flops" in line else "",
            f"{line['latency_ms']:.2f}" if "latency_ms" in line else "",
            f"{line['epochs']:g}",
            f"{line['images_per_second']:.0f}" if "images_per_second" in line else "",
        )
        table.append(cells)
    left_out = [
        f"- `{row['preset']}`, seed {row['seed']}, {100 * row['fraction']:g} %: {row['status']}"
        for row in rows
        if row["status"] != "complete"
    ]
    return "\n".join([*lines, *make_table(HEAD, table), *list_left_out(left_out)]) + "\n"


def exports_to_markdown(runs):
    """Returns the cost of exporting as Markdown: a line per run and format that was checked."""
    lines = []
    for run in runs:
        exports = run.metrics.get("exports", {})
        keras = exports.pop("keras", {}).get("accuracy")
        for name, export in exports.items():
            cells = (
                f"`{run.name}`",
                f"`{name}`",
                f"{100 * export['accuracy']:.2f} %",
                f"{100 * (export['accuracy'] - keras):+.2f}",
                f"{100 * export['top1_agreement']:.2f} %",
                f"{export['megabytes']:.2f}",
                f"{export['latency_ms']:.2f}" if "latency_ms" in export else "",
            )
            lines.append(cells)
    if not lines:
        return ""
    text = "Exports, on all test images: accuracy, points above Keras, the same class as Keras."
    head = ("run", "format", "accuracy", "points", "same class", "MB", "ms per image")
    return "\n".join(["", text, "", *make_table(head, lines)]) + "\n"
