"""The model card of a run, README.md; what differs is in `sentences` and `figures` of the task."""

import inspect
import json
import re
import shlex
from pathlib import Path

from keras_gmlp.data.run_folder import Run
from keras_gmlp.models.presets import IMAGE_PRESETS, TEXT_PRESETS
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.utils.environment import accelerators
from keras_gmlp.utils.errors import first_of
from keras_gmlp.utils.export_formats import DESCRIBED, FORMATS
from keras_gmlp.utils.files import atomic_write
from keras_gmlp.utils.markdown import make_table

FILE = "README.md"
NOTES = "<!-- notes -->"  # the text after this line is written by hand and survives

WIDTH = 90  # of a line of a command, in characters

BACKENDS = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}


def write_model_card(directory, metrics=None):
    """Writes the model card of a complete run and keeps the notes of an earlier one."""
    directory = Path(directory)
    path = directory / FILE
    run = Run(directory)
    recipe, metrics = run.recipe, metrics or run.metrics
    notes = read_notes(path) if path.exists() else "\n"
    if not recipe or not metrics or notes is None:
        return
    model = directory / "model.keras"
    megabytes = model.stat().st_size / 1e6 if model.exists() else None
    # The path from the working directory, or the name of a folder outside it.
    directory, here = directory.resolve(), Path.cwd()
    inside = directory.is_relative_to(here)
    place = directory.relative_to(here).as_posix() if inside else directory.name
    text = model_card(place, recipe, metrics, megabytes)
    with atomic_write(path) as temporary:
        temporary.write_text(text + notes, "utf-8")


def read_notes(path):
    """Returns the text after the line `NOTES` of a model card; `None` if a file is none."""
    if not path.is_file():
        return None
    _, *notes = re.split(f"(?m)^{NOTES}$", path.read_text("utf-8", errors="replace"), maxsplit=1)
    return notes[0] if notes else None


def model_card(place, recipe, metrics, megabytes=None):
    """Returns the text of a model card, in Markdown, up to and including the line `NOTES`."""
    task = find_task(recipe.get("task"))
    say = task.sentences(recipe, metrics)
    module, name = say["module"], say["variable"]
    usage = f"""\
## Use it

```python
from keras_gmlp import {module}

{name} = {module}.load({json.dumps(place)})
print({name}{say["call"]})
```

{say["prints"]}"""
    sections = (
        _summary(place, recipe, metrics, say),
        usage,
        _results(place, recipe, metrics, megabytes, task, say),
        *_confidence(metrics.get("calibration")),
        _training(place, recipe, say["picture"]),
        "## Limits\n\n" + "\n".join(f"- {limit}" for limit in say["limits"]),
        "<!-- Training and export write this file and keep the text after the next line. -->"
        f"\n{NOTES}",
    )
    return "\n\n".join(sections)


def _summary(place, recipe, metrics, say):
    preset, labels = recipe.get("preset"), recipe.get("labels", [])
    rows = {"model": f"`{preset or recipe.get('model')}`", **_family(preset)}
    if "parameters" in metrics:
        rows["parameters"] = f"{metrics['parameters']:,}"
    rows |= {name: say[name] for name in ("input", "output") if say.get(name)}
    text = (
        f"# {Path(place).resolve().name}\n\n{say['title']}, trained with `keras_gmlp` on "
        f"`{recipe.get('data')}`.\n\n{_table(rows)}"
    )
    return f"{text}\n\nClasses: {first_of(labels, 100)}." if labels else text


def _family(preset):
    """Returns the row on the family of a preset and its papers, a dict."""
    for module, presets in (("", IMAGE_PRESETS), ("text.", TEXT_PRESETS)):
        if preset in presets:
            family = inspect.unwrap(presets[preset][0])
            papers = re.findall(r"https://arxiv\.org/abs/([\d.]+\d)", family.__doc__ or "")
            links = [f"[arXiv {paper}](https://arxiv.org/abs/{paper})" for paper in papers]
            return {"family": ", ".join([f"`keras_gmlp.{module}{family.__name__}`", *links])}
    return {}


def _results(place, recipe, metrics, megabytes, task, say):
    headline, score = task.headline, task.headline.replace("_", " ")
    figures = task.list_figures(metrics)
    included = megabytes is not None or task.domain == "images"
    size = "" if megabytes is None else f"{megabytes:.3f}"
    show = _percent if task.share else _number
    keras = [show(metrics.get(f"test_{headline}")), "", size, ""]
    rows = [["`model.keras`", "Keras, float32", *keras]] if included else []
    exports = {key: e for key, e in metrics.get("exports", {}).items() if key != "keras"}
    rows += [_export_row(*entry) for entry in exports.items()]
    same, sample = say["same"], task.domain[:-1]
    header = ["file", "format", score, f"same {same} as Keras", "MB", f"ms per {sample}"]
    if not recipe.get("labels") and task.domain == "texts":  # compared with Keras only
        header, *rows = [[*row[:2], *row[3:]] for row in (header, *rows)]
    lines = [f"## {say['results']}", f"On {say['tested']} of `{recipe.get('data')}`:"]
    lines += [", ".join(figures) + "."] if figures else []
    lines.append(_grid(header, rows))
    parts = {
        "train": f"at most 10,000 training {task.domain}",
        "validation": f"validation {task.domain}, which it did not train on either,",
    }
    for split, part in parts.items():
        if (value := metrics.get(f"{split}_{headline}")) is not None:
            lines.append(f"On {part} the Keras model has {show(value)}.")
    if "best_epoch" in metrics:
        lines.append(
            f"Of {metrics['epochs']} epochs, epoch {metrics['best_epoch']} was the best on the "
            f"validation {task.domain}; the model has its weights."
        )
    if exports:
        lines.append(
            f"{say['checked']}The latency is the median on one thread of the machine that exported."
        )
    if not included:
        lines.append("The Keras model is not included; the command below trains it again.")
        return "\n\n".join(lines)
    command = shlex.join([".venv/bin/python", "apps/export.py", place, *say["export"]])
    lines.append(f"This command writes and checks all formats:\n\n```\n{command}\n```")
    return "\n\n".join(lines)


def _confidence(result):
    """Returns the section on the calibration of a run, in a list; an empty one without it."""
    if not result:
        return []
    others = f"rejected of {result.get('other_images', 0):,} other pictures"
    shown = (
        ("temperature", "temperature", _fraction),
        ("energy_threshold", "energy threshold", _fraction),
        ("calibration_error_before", "calibration error before", _percent),
        ("calibration_error", "calibration error", _percent),
        ("rejected", "rejected", _percent),
        ("other_rejected", others, _percent),
        ("auroc", "AUROC, known against other pictures", _fraction),
    )
    rows = {name: show(result[key]) for key, name, show in shown if key in result}
    fitted = "both values were" if "rejected" in result else "the temperature was"
    unit = "texts" if "texts" in result else "images"
    split = "" if result["split"] == "all" else f"{result['split']} "
    return [
        f"## Confidence\n\nOn {result[unit]:,} {split}{unit} of `{result['data']}`, to which "
        f"{fitted} fitted:\n\n{_table(rows)}"
    ]


def _training(place, recipe, picture):
    rows = {"recipe": f"`{recipe['recipe']}`"} if recipe.get("recipe") else {}
    rows |= {name: recipe[name] for name in ("epochs", "seed") if name in recipe}
    if recipe.get("weights"):
        rows["starting weights"] = f"`{recipe['weights']}`"
    if recipe.get("fraction", 1) != 1:
        rows["training images used"] = _percent(recipe["fraction"])
    rows |= _machine(recipe.get("environment", {}))
    if rows.get("epochs") == 0:
        shown = "A logistic regression on the features of the starting weights is the head."
        history = ""
    else:
        shown, history = f"![{picture}](curves.png)", ", `history.csv` the figures of each epoch"
    parts = ["## Training", shown, _table(rows)]
    if choice := recipe.get("choice"):
        candidates = [
            [row["name"], _percent(row["accuracy"]), _fraction(row["loss"]), str(row["epochs"])]
            for row in choice["candidates"]
        ]
        kind = "held-out training" if choice["held_out"] else "validation"
        parts.append(f"{choice['images']:,} {kind} images chose the settings:")
        parts.append(_grid(["candidate", "accuracy", "loss", "epochs"], candidates))
    parts.append(_reproduction(place, recipe))
    parts.append(f"`recipe.json` holds all settings and versions{history}.")
    return "\n\n".join(parts)


def _reproduction(place, recipe):
    """The command that repeats the run, and what it cannot know."""
    name, weights = Path(place).resolve().name, recipe.get("weights")
    replaced = weights and Path(weights).name == name
    if not isinstance(recipe.get("command"), dict):
        return "The run was started from Python: no command repeats it."
    options = {**recipe["command"], **({"weights": "START"} if replaced else {})}
    options["backend"] = recipe.get("environment", {}).get("backend")
    command = write_command({**options, "out": f"runs/{name}-again"})
    text = f"This command repeats the run:\n\n```\n{command}\n```"
    if note := find_task(recipe.get("task")).sentences(recipe, {}).get("command"):
        text += f"\n\n{note}"
    if replaced:
        text += (
            f"\n\n`START` is the model that the run started from. It was in `{weights}`, "
            "where this model has replaced it."
        )
    return text


def write_command(options):
    """Returns the shell command that gives a program these options, a dict."""
    program = "train_text" if options.keys() & {"prepared", "task"} else "train"
    lines = [f".venv/bin/python apps/{program}.py"]
    for name, value in sorted(options.items(), key=lambda option: option[0] == "out"):
        if value is None or name in ("program", "fold"):  # of old runs; a part of --folds
            continue
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, dict):
            values = [f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in value.items()]
        elif name == "image_size" and not isinstance(value, int):
            values = ["x".join(map(str, value))]
        else:
            values = value if isinstance(value, list) else [value]
        for each in values:
            part = shlex.join([option] if each is True else [option, str(each)])
            if len(lines[-1]) + len(part) < WIDTH:
                lines[-1] += f" {part}"
            else:
                lines.append(part)
    return " \\\n    ".join(lines)


def _export_row(entry_name, entry):
    """Returns the cells of an exported file."""
    name, _, batch = entry_name.partition("_batch")
    file, form = FORMATS.get(name, entry_name), DESCRIBED.get(name, entry_name)
    file += "/" * (name == "saved_model")
    if batch:
        file = file.replace(".tflite", f"_batch{batch}.tflite")
        form += f", {batch} images at once"
    if entry.get("folded"):
        form += ", folded"
    accuracy = entry.get("accuracy", entry.get("mean_average_precision"))
    shares = _percent(accuracy), _percent(entry.get("top1_agreement"))
    numbers = [_number(entry.get(name)) for name in ("megabytes", "latency_ms")]
    return [f"`{file}`", form, *shares, *numbers]


def _machine(environment):
    """Rows for the software and the hardware of a run."""
    backend, versions = environment.get("backend"), environment.get("versions", {})
    if not backend:
        return {}
    packages = ("tensorflow-cpu", "tensorflow") if backend == "tensorflow" else (backend,)
    version = next((versions[name] for name in packages if name in versions), "")
    software = f"Keras {versions.get('keras', '')} on {BACKENDS.get(backend, backend)} {version}"
    hardware = ", ".join(accelerators(environment.get("devices", [])))
    return {"software": software.strip(), "hardware": hardware or environment.get("processor", "")}


def _table(rows):
    """Returns a table of two columns from a dict."""
    return _grid(["", ""], [[name, str(value)] for name, value in rows.items()])


def _grid(header, rows):
    return "\n".join(make_table(header, rows))


def _percent(share):
    """Returns a share as text, such as `"83.87 %"`; empty for `None`."""
    return "" if share is None else f"{100 * share:.2f} %"


def _number(value):
    return "" if value is None else f"{value:.3f}"


def _fraction(value):
    return f"{value:.4f}"
