"""What the folder of a training run holds."""

import csv
import io
import shutil
from pathlib import Path

from keras_gmlp.training import model_card
from keras_gmlp.training.settings import differences
from keras_gmlp.utils.environment import environment
from keras_gmlp.utils.files import (
    atomic_write,
    read_json,
    write_json,
)

CHECKPOINTS = "[0-9]*.weights.h5"  # not the hidden one that is being written


def has_progress(directory):
    """Whether a run has left something to go on with: an epoch, or all of them."""
    directory = Path(directory)
    complete = (directory / "metrics.json").exists()
    return complete or any((directory / "checkpoint").glob(CHECKPOINTS))


def model_path(directory):
    """The path of the `.keras` file in the folder of a training run.

    Raises:
        ValueError: no such folder, or no model in it. One line.
    """
    if not str(directory):  # an unset variable of a shell
        raise ValueError("'': an empty path; expected the folder of a run of apps/train.py.")
    directory = Path(directory)
    path = directory / "model.keras"
    if path.exists():
        return path
    if not directory.exists():
        raise ValueError(
            f"{directory}: no such folder; expected that of a run of apps/train.py, such as "
            "saved_models/gmlp_n4_32-cifar10 is."
        )
    if not directory.is_dir():
        raise ValueError(f"{directory}: a file; expected the folder of a run of apps/train.py.")
    if (directory / "metrics.json").exists():
        raise ValueError(
            f"{directory}: the model.keras of this run is gone; train it anew with apps/train.py "
            "--restart."
        )
    if (directory / "recipe.json").exists():
        raise ValueError(f"{directory}: this run is not complete; finish it with apps/train.py.")
    raise ValueError(
        f"{directory}: no model.keras in this folder; expected the folder of a run of "
        "apps/train.py."
    )


# What a run and its exports leave in their folder, in the order in which a restart deletes it.
WRITTEN = (
    "metrics.json",
    "model.keras",
    "model.tflite",
    "model_float16.tflite",
    "model_float32.tflite",
    "model_int8.tflite",
    "model.onnx",
    "labels.txt",
    "curves.png",
    model_card.FILE,
    "history.csv",
    "recipe.json",
)

LOCK_TIMEOUT = (
    20.0  # seconds in which a run that was killed and is started again lets go of its folder
)


def claim(directory, run, recipe):
    """Writes recipe.json, or checks that the run it describes is this one."""
    path = directory / "recipe.json"
    settings = {**run, **recipe.settings()}
    before = read_json(path)
    if before is None or not has_progress(directory):
        write_json(path, {**settings, "environment": environment()})
        return
    differing = differences(before, settings)
    if differing:
        raise ValueError(
            f"{directory} holds a run with other settings ({'; '.join(differing)}). Give the same "
            "settings to go on with it, choose another directory, or train anew with --restart "
            "(restart=True)."
        )


def clear(directory):
    """Deletes a run; recipe.json last, since it guards what is there."""
    shutil.rmtree(directory / "checkpoint", ignore_errors=True)
    shutil.rmtree(directory / "saved_model", ignore_errors=True)
    for path in directory.glob("model*_batch*.tflite"):
        path.unlink()
    for path in (directory / name for name in WRITTEN):
        if path.name != model_card.FILE or model_card.is_model_card(path):  # not the user's README
            path.unlink(missing_ok=True)


def trim_history(path, epochs):
    """Drops the rows of epochs that are not in the checkpoint and will be trained again."""
    if not path.exists():
        return
    rows = list(csv.reader(io.StringIO(path.read_text())))
    kept = [r for r in rows[1:] if len(r) == len(rows[0]) and int(r[0]) < epochs]
    with atomic_write(path) as temporary, temporary.open("w", newline="") as file:
        csv.writer(file).writerows([rows[0], *kept] if kept else [])
