"""The table of a sweep, from the folders of its runs: each run once, averages, costs of exports."""

import csv
import statistics
from pathlib import Path

from keras_gmlp.comparison.plan import format_mean, group_by
from keras_gmlp.comparison.sweep import run_name
from keras_gmlp.training.settings import describe
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


def to_row(run, costs=None):
    """Returns a run's row of the table, a dict with `COLUMNS` as keys."""
    recipe, metrics = run.recorded, run.metrics
    row = {
        **metrics,
        **run.conditions(),
        "data": recipe.get("data", ""),
        "recipe": describe(recipe),
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
    lines += make_table(HEAD, table)
    lines += ["", "Not in the table:", ""] if len(complete) < len(rows) else []
    lines += [
        f"- `{row['preset']}`, seed {row['seed']}, {100 * row['fraction']:g} %: {row['status']}"
        for row in rows
        if row["status"] != "complete"
    ]
    return "\n".join(lines) + "\n"


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
