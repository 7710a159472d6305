"""The model card of a run, README.md: its recipe and metrics in a template."""

import inspect
import json
import re
import shlex
from pathlib import Path

from keras_gmlp.data.run_folder import Run
from keras_gmlp.models.presets import IMAGE_PRESETS, TEXT_PRESETS
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.utils.errors import first_of
from keras_gmlp.utils.files import atomic_write
from keras_gmlp.utils.labels import show_labels
from keras_gmlp.utils.sources import FORMATS
from keras_gmlp.utils.tables import make_table

FILE = "README.md"
NOTES = "<!-- notes -->"  # the text after this line is written by hand and survives

CARD = """\
# {name}

{title}, trained with `keras_gmlp` on `{data}`. Shares are between 0 and 1.

{facts}

{classes}## Use it

```python
from keras_gmlp import {module}

model = {module}.load({path})
print(model{call})
```

## Results

On {tested} of `{data}`; `train` is measured on at most 10,000 samples:

{scores}

{files}

`apps/export.py` writes and checks all formats. The latency is the median on one thread of the
machine that exported.

{confidence}## Training

{curves}{command}

`recipe.json` holds all settings and versions, `metrics.json` all that was measured.

## Limits

{limits}

<!-- Training and export write this file and keep the text after the next line. -->
{notes}"""


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
    task, name, data = find_task(recipe.get("task")), Path(place).resolve().name, recipe.get("data")
    said, labels = task.describe_model(recipe), recipe.get("labels", [])
    facts = {
        "model": f"`{recipe.get('preset') or recipe.get('model')}`",
        "family": _family(recipe.get("preset")),
        "parameters": metrics.get("parameters"),
        "input": said["input"],
        "output": said["output"],
    }
    scores = {
        key.replace("_", " "): value
        for key, value in metrics.items()
        if key.startswith(("test_", "train_", "validation_"))
    }
    calibration = {
        key.replace("_", " "): value for key, value in metrics.get("calibration", {}).items()
    }
    limits = [
        *said["limits"],
        f"The scores are for {task.domain} from the same source as the training {task.domain}. "
        "Expect less for others.",
        "It is one run with one seed. Another seed gives other scores.",
        f"The licence of the training {task.domain} is not recorded.",
    ]
    return CARD.format(
        name=name,
        title=task.kind[0].upper() + task.kind[1:],
        data=data,
        facts=_table(facts),
        classes=f"Classes: {first_of(show_labels(labels), 100)}.\n\n" if labels else "",
        module="inference" if task.domain == "images" else "text",
        path=json.dumps(place),
        call=said["call"],
        tested=_tested(task, recipe),
        scores=_table(scores),
        files=_files(task, metrics, megabytes),
        confidence=f"## Confidence\n\nFitted to these data:\n\n{_table(calibration)}\n\n"
        if calibration
        else "",
        curves="![Curves of each epoch](curves.png)\n\n" if recipe.get("epochs") != 0 else "",
        command=_repeat(name, recipe),
        limits="\n".join(f"- {limit}" for limit in limits),
        notes=NOTES,
    )


def _family(preset):
    """Returns the family of a preset and links to its papers."""
    for module, presets in (("", IMAGE_PRESETS), ("text.", TEXT_PRESETS)):
        if preset in presets:
            family = inspect.unwrap(presets[preset][0])
            papers = re.findall(r"https://arxiv\.org/abs/([\d.]+\d)", family.__doc__ or "")
            links = [f"[arXiv {paper}](https://arxiv.org/abs/{paper})" for paper in papers]
            return ", ".join([f"`keras_gmlp.{module}{family.__name__}`", *links])
    return None


def _tested(task, recipe):
    if folds := recipe.get("folds"):
        return f"fold {recipe.get('fold')} of {folds}, left out from the training {task.domain}"
    if held := recipe.get("command", {}).get("hold_out"):
        return f"{held:g} of the training {task.domain}, which were held out,"
    return f"the test {task.domain}"


def _files(task, metrics, megabytes):
    """Returns the table of the model's files."""
    head = ["file", task.headline.replace("_", " "), "same answer as Keras", "MB", "ms"]
    rows = []
    if megabytes is not None:
        score = metrics.get(f"test_{task.headline}")
        rows.append(["`model.keras`", _show(score), "", _show(megabytes), ""])
    columns = (task.headline, "top1_agreement", "megabytes", "latency_ms")
    for key, entry in metrics.get("exports", {}).items():
        if key != "keras":
            file = FORMATS.get(key, key)
            rows.append([f"`{file}`", *(_show(entry.get(column)) for column in columns)])
    return "\n".join(make_table(head, rows))


def _repeat(name, recipe):
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


def _table(rows):
    """Returns a table of two columns from a dict."""
    shown = [[name, _show(value)] for name, value in rows.items() if value is not None]
    return "\n".join(make_table(["", ""], shown))


def _show(value):
    """Returns a number with at most four decimals, or a text; empty for `None`."""
    if isinstance(value, int | float):
        return f"{round(value, 4):,}"
    return value or ""
