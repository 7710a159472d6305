"""The model card of a run, README.md: its recipe and metrics in a template."""

import json
import re
import shlex
from pathlib import Path

from keras_gmlp.data.run_folder import Run
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.utils.errors import first_of
from keras_gmlp.utils.files import atomic_write
from keras_gmlp.utils.formats import FORMATS
from keras_gmlp.utils.labels import show_labels
from keras_gmlp.utils.tables import make_table

FILE = "README.md"
LATENCY = " The latency is the median on one thread of the\nmachine that exported."
NOTES = "<!-- notes -->"  # the text after this line is written by hand and survives

CARD = """\
# {name}

{kind}, trained with `keras_gmlp` on `{data}`. Shares are between 0 and 1.

{facts}

## Use it

```python
import keras_gmlp

model = keras_gmlp.load({path})
print(model{example})
```

## Results

On {tested} of `{data}`; `train` is measured on at most 10,000 samples:

{results}

`apps/export.py` writes and checks all formats.{latency}

## Training

{curves}{repeat}

`recipe.json` holds all settings and versions, `metrics.json` all that was measured.

## Limits

{limits}
- The scores are for {unit} from the same source as the training {unit}. Expect less for others.
- It is one run with one seed. Another seed gives other scores.
- The licence of the training {unit} is not recorded.

<!-- Training and export write this file and keep the text after the next line. -->
"""


def write_model_card(directory, metrics=None):
    """Writes the model card of a complete run and keeps the notes of an earlier one."""
    directory = Path(directory)
    path = directory / FILE
    run = Run(directory)
    recipe, metrics = run.recipe, metrics or run.metrics
    written = path.read_text("utf-8", errors="replace") if path.exists() else f"{NOTES}\n"
    _, *notes = re.split(f"(?m)^{NOTES}$", written, maxsplit=1)
    if not recipe or not metrics or not notes:  # a README.md of the user's stays
        return
    model = directory / "model.keras"
    megabytes = model.stat().st_size / 1e6 if model.exists() else None
    # The path from the working directory, or the name of a folder outside it.
    directory, here = directory.resolve(), Path.cwd()
    inside = directory.is_relative_to(here)
    place = directory.relative_to(here).as_posix() if inside else directory.name
    text = model_card(place, recipe, metrics, megabytes)
    with atomic_write(path) as temporary:
        temporary.write_text(text + notes[0], "utf-8")


def model_card(place, recipe, metrics, megabytes=None):
    """Returns the text of a model card, in Markdown, up to and including the line `NOTES`."""
    task, name = find_task(recipe.get("task")), Path(place).resolve().name
    held, folds = recipe.get("command", {}).get("hold_out"), recipe.get("folds")
    tested = f"the test {task.domain}"
    if held:
        tested = f"{held:g} of the training {task.domain}, which were held out,"
    if folds:
        tested = f"fold {recipe.get('fold')} of {folds}, left out from the training {task.domain}"
    card = CARD.format(
        name=name,
        kind=task.kind[0].upper() + task.kind[1:],
        data=recipe.get("data"),
        facts=_describe_model(task, recipe, metrics),
        path=json.dumps(place),
        example=task.pair_example if recipe.get("pairs") else task.example,
        tested=tested,
        results=_describe_results(task, metrics, megabytes),
        latency=LATENCY if metrics.get("exports") else "",
        curves="" if recipe.get("epochs") == 0 else "![Curves of each epoch](curves.png)\n\n",
        repeat=_describe_command(name, recipe),
        limits="\n".join(f"- {limit}" for limit in task.limits),
        unit=task.domain,
    )
    return card + NOTES


def _describe_model(task, recipe, metrics):
    """Returns the table of what the model is, and its classes."""
    labels, fit = recipe.get("labels", []), recipe.get("fit", "crop")
    if task.domain == "images":
        height, width, channels = recipe["image_shape"]
        takes = f"{width} by {height} pixels, {channels} channels, values from 0 to 255; a picture "
        takes += f"of another size is prepared by `--fit {fit}`"
    else:
        takes = "a pair of texts" if recipe.get("pairs") else "a text"
        takes += f", up to {recipe.get('length')} tokens in all; the rest is cut off"
    facts = {
        "model": f"`{recipe.get('preset') or recipe.get('model')}`",
        "parameters": metrics.get("parameters"),
        "input": takes,
        "output": task.output.format(**{**recipe, "classes": len(labels)}),
    }
    classes = f"\n\nClasses: {first_of(show_labels(labels), 100)}." if labels else ""
    return _make_table(facts) + classes


def _describe_results(task, metrics, megabytes):
    """Returns the tables of the scores, of the calibration, and of the model's files."""
    splits = ("test_", "train_", "validation_")
    tables = [_make_table({k: value for k, value in metrics.items() if k.startswith(splits)})]
    if "calibration" in metrics:
        tables += ["Calibrated on these data:", _make_table(metrics["calibration"])]
    rows = []
    if megabytes is not None:
        score = metrics.get(f"test_{task.headline}")
        rows.append(["`model.keras`", _show(score), "", _show(megabytes), ""])
    columns = (task.headline, "top1_agreement", "megabytes", "latency_ms")
    for key, entry in metrics.get("exports", {}).items():
        if key != "keras":
            file = FORMATS[key].path if key in FORMATS else key
            rows.append([f"`{file}`", *(_show(entry.get(column)) for column in columns)])
    head = ["file", task.headline.replace("_", " "), "same answer as Keras", "MB", "ms"]
    return "\n\n".join([*tables, "\n".join(make_table(head, rows))])


def _describe_command(name, recipe):
    """Returns the command that repeats the run."""
    if not isinstance(recipe.get("command"), dict):
        return "The run was started from Python: no command repeats it."
    options = {**recipe["command"], "backend": recipe.get("environment", {}).get("backend")}
    command = write_command({**options, "out": f"runs/{name}-again"})
    return f"This command repeats the run:\n\n```\n{command}\n```"


def write_command(options):
    """Returns the shell command of the run with these options, a dict."""
    lines = [".venv/bin/python apps/train.py"]
    for name, value in options.items():
        if value is None or name in ("program", "fold"):  # of old runs; a part of --folds
            continue
        if isinstance(value, dict):
            values = [f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in value.items()]
        elif name == "image_size" and not isinstance(value, int):
            values = ["x".join(map(str, value))]
        else:
            values = value if isinstance(value, list) else [value]
        option = f"--{name.replace('_', '-')}"
        lines += [shlex.join([option] if v is True else [option, str(v)]) for v in values]
    return " \\\n    ".join(lines)


def _make_table(entries):
    """Returns a table of two columns from a dict."""
    shown = {name: value for name, value in entries.items() if value is not None}
    rows = [[name.replace("_", " "), _show(value)] for name, value in shown.items()]
    return "\n".join(make_table(["", ""], rows))


def _show(value):
    """Returns a number with at most four decimals, or a text; empty for `None`."""
    if isinstance(value, int | float):
        return f"{round(value, 4):,}"
    return value or ""
