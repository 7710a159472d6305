"""The files in the folder of a training run."""

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

CHECKPOINTS = "[0-9]*.weights.h5"  # excludes the hidden file of an unfinished write


def has_progress(directory):
    """Returns whether a run has finished an epoch, so that it can resume."""
    directory = Path(directory)
    complete = (directory / "metrics.json").exists()
    return complete or any((directory / "checkpoint").glob(CHECKPOINTS))


# Files of a run and its exports, in the order in which a restart deletes them.
WRITTEN = (
    "metrics.json",
    "model.keras",
    "model.tflite",
    "model_float16.tflite",
    "model_float32.tflite",
    "model_int8.tflite",
    "model.onnx",
    "labels.txt",
    "tokenizer.json",
    "curves.png",
    model_card.FILE,
    "history.csv",
    "recipe.json",
)

LOCK_TIMEOUT = 20.0  # seconds that a killed run has to release its folder


def claim(directory, run, recipe):
    """Writes `recipe.json`, or raises a `ValueError` if it describes another run."""
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
            "settings to resume it, choose another directory, or start again with --restart "
            "(restart=True)."
        )


def clear(directory):
    """Deletes a run; `recipe.json` last, because it protects the other files."""
    shutil.rmtree(directory / "checkpoint", ignore_errors=True)
    shutil.rmtree(directory / "saved_model", ignore_errors=True)
    for path in directory.glob("model*_batch*.tflite"):
        path.unlink()
    for path in (directory / name for name in WRITTEN):
        if path.name != model_card.FILE or model_card.is_model_card(path):  # not the user's README
            path.unlink(missing_ok=True)


def trim_history(path, epochs):
    """Deletes the rows of epochs after the checkpoint, which will be trained again."""
    if not path.exists():
        return
    rows = list(csv.reader(io.StringIO(path.read_text())))
    kept = [r for r in rows[1:] if len(r) == len(rows[0]) and int(r[0]) < epochs]
    with atomic_write(path) as temporary, temporary.open("w", newline="") as file:
        csv.writer(file).writerows([rows[0], *kept] if kept else [])
