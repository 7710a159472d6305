"""The table and the chart of a comparison of language models."""

import csv
import statistics
from pathlib import Path

from keras_gmlp.comparison.spread import format_difference, format_mean, note_single
from keras_gmlp.comparison.texts import measure_of
from keras_gmlp.utils import plotting
from keras_gmlp.utils.files import atomic_write


def best_floor(task, floors):
    """Returns the name and the score of the best simple classifier."""
    measure = measure_of(task)
    name = max(floors, key=lambda classifier: floors[classifier][measure.floor])
    return name, measure.factor * floors[name][measure.floor]


def write_results(rows, directory, command, floors=None):
    """Writes results.csv, one row per score, results.md and tasks.png; returns their paths."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / "results.csv", directory / "results.md"]
    with atomic_write(paths[0]) as temporary, open(temporary, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["preset", "parameters", "perplexity", "task", "measure", "seed", "score", "one_class"]
        )
        for row in rows:
            start = [row["preset"], row["parameters"], row["perplexity"]]
            for task, scores in row["scores"].items():
                for seed, score in scores.items():
                    single = int(seed in row["single"][task])
                    named = [task, measure_of(task).name, seed, round(score, 4), single]
                    writer.writerow([*start, *named])
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
        lines.append([row["preset"], size, perplexity, *_format_scores(row)])
    text = ["# Language models", "\n".join("| " + " | ".join(line) + " |" for line in lines)]
    text.append(
        "Mean and standard deviation over the seeds; in brackets their number, and how many of "
        "them predict one class alone, which is a training that failed."
    )
    if differences := _differences(rows):
        text += ["## Differences", differences]
        text.append(
            f"To {rows[0]['preset']}, seed by seed: mean and standard error. A difference within "
            "two standard errors says little. Each model was pre-trained once, with one seed: the "
            "errors leave out what another pre-training would change."
        )
    text.append(f"```\n{command}\n```")
    return "\n\n".join(text) + "\n"


def _format_scores(row):
    """Yields the cells of the scores: mean, standard deviation and the number of runs."""
    for task, scores in row["scores"].items():
        if not scores:
            yield ""
            continue
        note = note_single(len(row["single"][task]), len(scores)) or len(scores)
        yield f"{format_mean(list(scores.values()), 1)} ({note})"


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
    return format_difference(shared, 1) if len(shared) > 1 else ""


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
