"""The runs of a sweep and their table: presets x seeds x fractions of the training set.

`training.train` fills and resumes a folder per run. The table is made from the folders, so that a
sweep that was killed resumes and lists each run once.
"""

import csv
import dataclasses
import statistics
from pathlib import Path

from keras_gmlp.training.run_directory import has_progress
from keras_gmlp.training.settings import describe, differences
from keras_gmlp.utils.environment import accelerators
from keras_gmlp.utils.files import atomic_write, read_json

FAILURE = "failed.txt"  # in a run's folder: one line, the reason

COLUMNS = (
    "preset",
    "seed",
    "fraction",
    "status",
    "test_accuracy",
    "train_accuracy",
    "parameters",
    "flops",
    "latency_ms",
    "epochs",
    "seconds",
    "images_per_second",
    "data",
    "recipe",
    "backend",
    "processor",
    "versions",
)


@dataclasses.dataclass(frozen=True)
class SweepRun:
    """One training run of a sweep, in a separate folder under `root`."""

    preset: str
    seed: int
    fraction: float
    root: Path

    @property
    def directory(self):
        part = "" if self.fraction == 1 else f"-{self.fraction:g}"
        return Path(self.root) / f"{self.preset}{part}-seed{self.seed}"

    @property
    def name(self):
        return self.directory.name

    @property
    def complete(self):
        return (self.directory / "metrics.json").exists()

    @property
    def begun(self):
        """Whether an epoch is done; the run then resumes with the same settings only."""
        return has_progress(self.directory)

    @property
    def failed(self):
        return not self.complete and (self.directory / FAILURE).exists()

    def fail(self, reason):
        """Records why the run failed."""
        with atomic_write(self.directory / FAILURE) as temporary:
            temporary.write_text(" ".join(reason.split()) + "\n")

    def forget_failure(self):
        (self.directory / FAILURE).unlink(missing_ok=True)

    def differences(self, settings):
        """Returns a phrase for each setting that differs from the run's `recipe.json`."""
        recorded = read_json(self.directory / "recipe.json", {})
        if "environment" in recorded:
            recorded["backend"] = recorded["environment"]["backend"]
        if "image_shape" in recorded:
            recorded["image_size"] = recorded["image_shape"][:2]
        return differences(recorded, settings)

    def history(self):
        """Returns the rows of `history.csv`, dicts; none before the first epoch."""
        path = self.directory / "history.csv"
        if not path.exists():
            return []
        with path.open(newline="") as file:
            return list(csv.DictReader(file))

    def row(self, costs=None):
        """Returns the run's row of the table, a dict with `COLUMNS` as keys."""
        recipe = read_json(self.directory / "recipe.json", {})
        metrics = read_json(self.directory / "metrics.json", {})
        environment = recipe.get("environment", {})
        row = {
            **{name: metrics[name] for name in COLUMNS if name in metrics},
            "data": recipe.get("data", ""),
            "recipe": describe(recipe),
            "backend": environment.get("backend"),
            "processor": trained_on(environment),
            **(costs or {}).get(self.preset, {}),
            "preset": self.preset,
            "seed": self.seed,
            "fraction": self.fraction,
            "status": self._status(),
            "versions": " ".join(f"{k}={v}" for k, v in environment.get("versions", {}).items()),
        }
        return {name: row.get(name, "") for name in COLUMNS}

    def _status(self):
        if self.complete:
            return "complete"
        if self.failed:
            return "failed: " + (self.directory / FAILURE).read_text().strip()
        return f"{len(self.history())} epochs so far"


def trained_on(environment):
    """Returns the accelerators, or the processor if there are none."""
    names = accelerators(environment.get("devices", []))
    return ", ".join(names) or environment.get("processor")


def plan_runs(presets, seeds, fractions, root):
    """Returns all runs of a sweep, the first seed and the whole training set first."""
    return [
        SweepRun(preset, seed, fraction, Path(root))
        for seed in seeds
        for fraction in sorted(fractions, reverse=True)
        for preset in presets
    ]


def write_results(runs, path, costs=None):
    """Writes the table as CSV, one row per run; returns the rows.

    Args:
        runs: List of `SweepRun`.
        path: Path of the CSV file.
        costs: For each preset a dict with `flops` and `latency_ms`, where known.
    """
    rows = [run.row(costs) for run in runs]
    with atomic_write(path) as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return rows


def find_left_out(path, rows):
    """Returns the names of the complete runs in an earlier table that these rows lack."""
    if not Path(path).exists():
        return []
    key = ("preset", "seed", "fraction")
    here = {tuple(str(row[name]) for name in key) for row in rows}
    with open(path, newline="") as file:
        before = [row for row in csv.DictReader(file) if row.get("status") == "complete"]
    return [
        SweepRun(row["preset"], int(row["seed"]), float(row["fraction"]), ".").name
        for row in before
        if tuple(row[name] for name in key) not in here
    ]


def summarize(rows):
    """Averages complete rows over their seeds, the most accurate first.

    Returns:
        Dicts with the preset, the fraction, the number of seeds, and the mean of each figure over
        the seeds; `spread` is the standard deviation of the test accuracy (`None` for one seed).
    """
    groups = {}
    for row in rows:
        if row["status"] == "complete":
            groups.setdefault((row["preset"], row["fraction"]), []).append(row)
    summary = []
    for (preset, fraction), group in groups.items():
        accuracies = [row["test_accuracy"] for row in group]
        means = {
            name: statistics.mean(values)
            for name in COLUMNS
            if (values := [r[name] for r in group if isinstance(r[name], int | float)])
        }
        spread = statistics.stdev(accuracies) if len(group) > 1 else None
        summary.append(
            {**means, "preset": preset, "fraction": fraction, "seeds": len(group), "spread": spread}
        )
    return sorted(summary, key=lambda s: (-s["fraction"], -s["test_accuracy"]))


def to_markdown(rows, command, processor):
    """Returns the table as Markdown: a line per preset and fraction, then the failed runs."""
    summary = summarize(rows)
    circumstances = dict.fromkeys(
        f"{row['data']}, recipe `{row['recipe']}`, Keras on {row['backend']}, {row['processor']} "
        f"({row['versions']})."
        for row in rows
        if row["status"] == "complete"
    )
    lines = [
        *circumstances,
        "",
        f"Made by `{command}`.",
        "",
        "Images/s is the training speed, possibly on a busy machine. ms per image is the latency "
        f"of the 8-bit TFLite file on one thread of {processor}; the models take turns.",
        "",
        "| preset | data | seeds | test accuracy | on training images | parameters | MFLOPs "
        "| ms per image | epochs | images/s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for line in summary:
        spread = "" if line["spread"] is None else f" ± {100 * line['spread']:.2f}"
        cells = (
            f"`{line['preset']}`",
            f"{100 * line['fraction']:g} %",
            str(line["seeds"]),
            f"{100 * line['test_accuracy']:.2f}{spread} %",
            f"{100 * line['train_accuracy']:.2f} %" if "train_accuracy" in line else "",
            f"{line['parameters']:,.0f}",
            f"{line['flops'] / 1e6:.0f}" if "flops" in line else "",
            f"{line['latency_ms']:.2f}" if "latency_ms" in line else "",
            f"{line['epochs']:g}",
            f"{line['images_per_second']:.0f}" if "images_per_second" in line else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    unfinished = [row for row in rows if row["status"] != "complete"]
    if unfinished:
        lines += ["", "Not in the table:", ""]
        lines += [
            f"- `{row['preset']}`, seed {row['seed']}, {100 * row['fraction']:g} %: {row['status']}"
            for row in unfinished
        ]
    return "\n".join(lines) + "\n"


def exports_to_markdown(runs):
    """Returns the cost of exporting as Markdown: a line per run and format that was checked."""
    lines = []
    for run in runs:
        exports = read_json(run.directory / "metrics.json", {}).get("exports", {})
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
            lines.append(f"| {' | '.join(cells)} |")
    if not lines:
        return ""
    head = [
        "",
        "Exports, on all test images: accuracy, points above Keras, the same class as Keras.",
        "",
        "| run | format | accuracy | points | same class | MB | ms per image |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *lines]) + "\n"
