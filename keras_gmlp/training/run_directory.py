"""The files in the folder of a training run."""

import csv
import io
import os
import re
import shutil
from pathlib import Path

from keras_gmlp.data.datasets import find_path
from keras_gmlp.data.run_folder import RESTORE, SAMPLES, Run, Sample, record_samples
from keras_gmlp.training.recipes import differences
from keras_gmlp.utils.environment import environment
from keras_gmlp.utils.errors import first_line, printable
from keras_gmlp.utils.files import atomic_write, remove_leftovers, write_json
from keras_gmlp.utils.formats import FORMATS
from keras_gmlp.utils.tables import write_table

CHECKPOINTS = "[0-9]*.weights.h5"  # excludes the hidden file of an unfinished write


def has_progress(directory):
    """Returns whether a folder holds work of a run: an epoch, or settings that candidates chose."""
    run = Run(directory)
    begun = any((run.path / "checkpoint").glob(CHECKPOINTS))
    return run.complete or begun or "choice" in run.recipe


# Files of a run and its exports, in the order in which a restart deletes them. The model card,
# README.md, is not among them: it may hold the user's notes, which the end of the run keeps.
WRITTEN = (
    *("metrics.json", "model.keras", *(written.path for written in FORMATS.values())),
    *(SAMPLES, "labels.txt", "tokenizer.json", "curves.png", "history.csv", "recipe.json"),
)
LOCK_TIMEOUT = 20.0  # seconds that a killed run has to release its folder


def claim(directory, run, recipe, data, restart=False):
    """Writes recipe.json and samples.csv, or raises a `ValueError` if they are another run's."""
    settings = {**run, **recipe.settings()}
    if restart:
        clear(directory)
    remove_leftovers(directory, "|".join(map(re.escape, WRITTEN)))
    if not has_progress(directory):
        refuse_other_files(directory)
        (directory / SAMPLES).unlink(missing_ok=True)  # of a run that did not get to an epoch
        paths = map(find_path, filter(None, (run["data"], run.get("test"))))
        places = {str(path): os.path.abspath(path) for path in paths if path.exists()}
        entries = {"places": places, "environment": environment()}
        write_json(directory / "recipe.json", {**settings, **entries})
    elif not (recorded := Run(directory).recipe):
        raise ValueError(
            f"{directory}/recipe.json: missing, so how the run in this folder was trained is "
            f"unknown. {RESTORE}"
        )
    elif differing := differences(recorded, settings):
        raise ValueError(
            f"{directory} holds a run with other settings ({'; '.join(differing)}). Give the same "
            "settings to resume it, another --out (out=...), or start again with --restart "
            "(restart=True)."
        )
    check_samples(directory, data)


def check_samples(directory, data):
    """Raises a `ValueError` if data are not those that a run recorded; records them if none are."""
    run = Run(directory)
    if not run.samples:
        # Also where a kill, or an older version, left a run without its samples.
        if not run.complete and (samples := record_samples(data)):
            write_table(directory / SAMPLES, [Sample._fields, *samples])
        return
    before, now = (
        {row._replace(name="") for row in rows} for rows in (run.samples, record_samples(data))
    )
    if before != now:
        raise ValueError(
            f"{directory}: the data {printable(data.name)} are not those of the run: "
            f"{len(now - before):,} samples are new or changed, {len(before - now):,} are gone or "
            "changed. Choose another directory, or start again with --restart (restart=True)."
        )


def clear(directory):
    """Deletes a run; `recipe.json` last, because it protects the other files."""
    refuse_other_files(directory)
    for path in directory.glob("model*_batch*.tflite"):  # of version 0.1
        path.unlink()
    for name in ("checkpoint", *WRITTEN):
        if (directory / name).is_dir():
            shutil.rmtree(directory / name, ignore_errors=True)
        else:
            (directory / name).unlink(missing_ok=True)


def refuse_other_files(directory):
    """Raises a `ValueError` if a folder without a run holds files that a run would replace."""
    directory = Path(directory)
    if (directory / "recipe.json").exists() or has_progress(directory):
        return
    if names := [name for name in WRITTEN if (directory / name).exists()]:
        raise ValueError(
            f"{directory}: holds {', '.join(names)} but no run (recipe.json), and a run would "
            "replace such files. Give a new or an empty folder for the run, or restore recipe.json."
        )


def read_history(path):
    """Returns the rows of `history.csv`, dicts of texts; none if the file does not exist."""
    if not path.exists():
        return []
    try:
        text = path.read_text("utf-8")  # the last line may be cut, by a kill or a writer at work
        head, *lines = list(csv.reader(io.StringIO(text[: text.rfind("\n") + 1]))) or [[]]
        rows = [dict(zip(head, line, strict=True)) for line in lines]
        for row in rows:
            int(row["epoch"]), *map(float, row.values())
    except (ValueError, KeyError, csv.Error) as error:
        raise ValueError(
            f"{path}: damaged ({first_line(error)}). Delete it to resume without the figures of "
            "the finished epochs, or start again with --restart (restart=True)."
        ) from None
    return rows


def trim_history(path, epochs):
    """Deletes the rows of epochs after the checkpoint, which will be trained again."""
    if not path.exists():
        return
    kept = [row for row in read_history(path) if int(row["epoch"]) < epochs]
    with atomic_write(path) as temporary, temporary.open("w", newline="") as file:
        if kept:
            writer = csv.DictWriter(file, kept[0])
            writer.writeheader()
            writer.writerows(kept)
