"""A comparison of language models: each is pre-trained and fine-tuned on tasks; their table."""

import itertools
from pathlib import Path

from keras_gmlp.comparison.plan import (
    Plan,
    format_difference,
    format_mean,
    mean_and_spread,
    measure_of,
    note_single,
    write_tables,
)
from keras_gmlp.models.presets import TEXT_PRESETS, lookup
from keras_gmlp.runs.settings import RunSettings, short_task
from keras_gmlp.utils import plotting
from keras_gmlp.utils.markdown import make_table

# Small sets require more passes, pairs more tokens.
CHANGES = {"mrpc": {"epochs": 10, "length": 128}, "cola": {"epochs": 10}}
COLUMNS = ("preset", "parameters", "perplexity", "task", "measure", "seed", "score", "one_class")


class TextSweep(Plan):
    """Language models on one text, each pre-trained once and fine-tuned on tasks over seeds."""

    # `changes` are for all recipes, `epochs` for the pre-training, which has the first seed; `jobs`
    # and `backend` are those of `Plan`.
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
        data_dir=None,
        jobs=1,
        backend=None,
    ):
        presets, self.tasks, seeds = (list(dict.fromkeys(v)) for v in (presets, tasks, seeds))
        changes = changes or {}
        first = {**changes, **({} if epochs is None else {"epochs": epochs}), "seed": seeds[0]}
        models, tuned = [], []
        for preset in presets:
            lookup(preset, TEXT_PRESETS)
            place = str(Path(directory) / preset)
            shared = RunSettings(model=preset, prepared=str(corpus), recipe=recipe, out=place)
            models.append(shared.with_changes(**first))
            for task, seed in itertools.product(self.tasks, seeds):
                own = {**CHANGES.get(short_task(task), {}), **changes, "seed": seed}
                out = f"{place}-{short_task(task)}-{seed}"
                shared = RunSettings(weights=place, task=task, data_dir=data_dir, out=out)
                tuned.append(shared.with_changes(**own))
        super().__init__([*models, *tuned], jobs, backend)
        self.models, self.tuned = self.runs[: len(models)], self.runs[len(models) :]
        self.corpus = Path(corpus)

    def work(self):
        """Trains all runs; see `Plan.work`. Fine-tunings wait for their language model."""
        if any(not run.complete for run in self.models) and not self.corpus.is_dir():
            raise ValueError(
                f"{self.corpus}: no such folder; apps/train_text.py --text prepares one."
            )
        super().work()

    def rows(self):
        """Returns a dict for each preset."""
        rows = []
        for model in self.models:
            row = {
                "preset": model.preset,
                "parameters": model.metrics.get("parameters"),
                "perplexity": model.metrics.get("test_perplexity"),
                "scores": {task: {} for task in self.tasks},
                "single": {task: [] for task in self.tasks},
            }
            for run in self.tuned:
                if run.settings.weights == model.settings.out and run.complete:
                    row["scores"][run.settings.task][run.seed] = run.score
                    row["single"][run.settings.task] += [run.seed] if run.one_class else []
            rows.append(row)
        return rows


def write_results(rows, directory, command):
    """Writes results.csv, one row per score, results.md and tasks.png; returns their paths."""
    table = []
    for row in rows:
        for task, scores in row["scores"].items():
            for seed, score in scores.items():
                own = {name: row[name] for name in ("preset", "parameters", "perplexity")}
                own |= {"task": task, "measure": measure_of(task).name, "seed": seed}
                own |= {"score": round(score, 4), "one_class": int(seed in row["single"][task])}
                table.append(own)
    paths = write_tables(directory, COLUMNS, table, to_markdown(rows, command))
    if any(row["perplexity"] and any(row["scores"].values()) for row in rows):
        paths.append(draw_tasks(rows, Path(directory) / "tasks.png"))
    return paths


def to_markdown(rows, command):
    """Returns the tables: scores, and differences to the first model."""
    tasks = list(rows[0]["scores"])
    header = ["model", "parameters", "perplexity"]
    header += [f"{task}, {measure_of(task).name}" for task in tasks]
    lines = []
    for row in rows:
        size = "" if row["parameters"] is None else f"{row['parameters']:,}"
        perplexity = "" if row["perplexity"] is None else f"{row['perplexity']:.2f}"
        lines.append([row["preset"], size, perplexity])
        for task, scores in row["scores"].items():
            note = note_single(len(row["single"][task]), len(scores)) or len(scores)
            score = f"{format_mean(list(scores.values()), 1)} ({note})" if scores else ""
            lines[-1].append(score)
    text = ["# Language models", "\n".join(make_table(header, lines))]
    text.append(
        "Mean and standard deviation over the seeds; in brackets their number, and how many of "
        "them predict one class alone, which is a training that failed."
    )
    if differences := _differences(rows, tasks):
        text += ["## Differences", "\n".join(make_table(["model", *tasks], differences))]
        text.append(
            f"To {rows[0]['preset']}, seed by seed: mean and standard error. A difference within "
            "two standard errors says little. Each model was pre-trained once, with one seed: the "
            "errors leave out what another pre-training would change."
        )
    text.append(f"```\n{command}\n```")
    return "\n\n".join(text) + "\n"


def _differences(rows, tasks):
    """Returns the lines of the differences to the first model; none without two seeds of two."""
    first, lines = rows[0]["scores"], []
    for row in rows[1:]:
        scores, cells = row["scores"], []
        for task in tasks:
            shared = [scores[task][s] - first[task][s] for s in scores[task] if s in first[task]]
            cells.append(format_difference(shared, 1) if len(shared) > 1 else "")
        lines += [[row["preset"], *cells]] if any(cells) else []
    return lines


def draw_tasks(rows, path):
    """Draws each task's score over the perplexity (gMLP, figure 7); returns the path."""
    tasks = [task for task in rows[0]["scores"] if any(row["scores"][task] for row in rows)]
    figure, (cells,) = plotting.figure((4.2 * len(tasks), 3.8), columns=len(tasks))
    for axes, task in zip(cells, tasks, strict=True):
        for row in rows:
            if row["perplexity"] and (scores := list(row["scores"][task].values())):
                mean, spread = mean_and_spread(scores)
                axes.errorbar(row["perplexity"], mean, spread, fmt="o", capsize=3)
                axes.annotate(row["preset"], (row["perplexity"], mean), fontsize=8)
        axes.margins(0.2)
        axes.set(xlabel="perplexity", ylabel=measure_of(task).name, title=task)
        axes.grid(alpha=0.3)
    return plotting.save(figure, path)
