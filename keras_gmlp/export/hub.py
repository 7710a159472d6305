"""Uploads a run to the Hugging Face hub."""

import contextlib
import json
import os
import re
import shutil
import tempfile
import zipfile
from pathlib import Path

from keras_gmlp.data.run_folder import Run
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.training.model_card import FILE as README
from keras_gmlp.utils.card import CARD, read_card
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import shortened
from keras_gmlp.utils.files import write_json
from keras_gmlp.utils.formats import FORMATS
from keras_gmlp.utils.sources import HUB, find_model

RECORDS = ("metrics.json", "history.csv", "curves.png")
TEXTS = (CARD, "recipe.json", "metrics.json", README)  # which may name files of this machine


@contextlib.contextmanager
def _open_hub(name):
    """Gives the hub's client, whose errors become one line: of network, name or account."""
    hub = require("huggingface_hub", f"{name}: a model on the hub", "convert")
    try:
        yield hub
    except Exception as error:
        raise ValueError(f"{name}: not uploaded ({shortened(str(error), 160)}).") from None


def create_repository(name):
    """Creates `"hf://OWNER/MODEL"`, if it is missing; returns its address, a `RepoUrl`."""
    if not name.startswith(HUB):  # a folder, perhaps, which must not become a public page
        raise ValueError(f"{name}: expected {HUB}OWNER/MODEL.")
    with _open_hub(name) as hub:
        return hub.HfApi().create_repo(name.removeprefix(HUB), exist_ok=True)


def upload(directory, repository):
    """Uploads the models, the card and the records of a run to what `create_repository` returned.

    The Keras model is stored member by member, so that `keras.saving.load_model` reads it, too.
    """
    path, _ = find_model(directory, ("keras",))
    name, run = f"{HUB}{repository.repo_id}", Run(path)
    task = find_task(read_card(path).get("task"))
    models = [each.path for each in FORMATS.values()]
    with _open_hub(name) as hub, tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        for file in (*models, *RECORDS):
            source = run.path / file
            if source.is_dir():
                shutil.copytree(source, folder / file)
            elif source.exists():
                shutil.copy(source, folder / file)
        recipe = {key: value for key, value in run.recipe.items() if key != "places"}
        write_json(folder / "recipe.json", recipe)
        text = (run.path / README).read_text("utf-8") if (run.path / README).exists() else ""
        call = f"model = keras_gmlp.load({json.dumps(name)})"
        text = re.sub(r"(?m)^model = keras_gmlp\.load\(.*\)$", call, text)
        head = _describe(hub, run, task, repository.repo_id)
        (folder / README).write_text(f"---\n{head.to_yaml()}\n---\n\n{text}", "utf-8")
        for file in filter(Path.exists, map(folder.joinpath, TEXTS)):
            file.write_text(_shorten_paths(file.read_text("utf-8"), run), "utf-8")
        hub.HfApi().upload_folder(
            repo_id=repository.repo_id,
            folder_path=folder,
            commit_message="Upload a run of keras_gmlp",
            delete_patterns=[path.name, *models, "saved_model/*"],  # those of an earlier run
        )


def _shorten_paths(text, run):
    """Returns a text with the last names only of absolute paths that a run was given."""
    given = [*run.recipe.values(), *run.recipe.get("command", {}).values()]
    given.append(run.metrics.get("calibration", {}).get("data"))
    paths = {path for path in given if isinstance(path, str) and os.path.isabs(path)}
    for path in sorted(paths, key=len, reverse=True):
        for written in (path, json.dumps(path)[1:-1]):
            place = rf"(?<![\w./-]){re.escape(written)}"
            text = re.sub(place, lambda _, path=path: Path(path).name, text)
    return text


def _describe(hub, run, task, repo_id):
    """Returns the head of a card, which the pages of the hub read; the licence stays as it is."""
    earlier = hub.HfApi().model_info(repo_id).card_data or {}
    data, value = str(run.recipe.get("data")), run.metrics.get(f"test_{task.headline}")
    stem = Path(data).name
    is_name = "data" in run.recipe and data == stem and data not in run.recipe.get("places", {})
    kind = re.sub(r"[^\w.-]+", "-", stem, flags=re.ASCII)  # all that the hub allows
    scores = None
    if task.pipeline and value is not None:
        scores = [hub.EvalResult(task.pipeline, kind, stem, task.headline, value)]
    return hub.ModelCardData(
        library_name="keras",
        license=earlier.get("license", "unknown"),  # a run records none
        tags=["keras_gmlp"],
        datasets=[kind] if is_name else None,
        pipeline_tag=task.pipeline,
        model_name=repo_id.rpartition("/")[2],
        eval_results=scores,
    )
