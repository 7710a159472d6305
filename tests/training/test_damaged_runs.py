"""Runs whose folder lost or changed files: each gets one line, before anything is trained."""

import shutil

import keras
import numpy as np
import pytest

import keras_gmlp
from keras_gmlp.data import Augmentation, ImageData
from keras_gmlp.data.images.samples import from_arrays
from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.training.recipes import Recipe
from keras_gmlp.training.run_directory import read_history
from keras_gmlp.training.train import train

TASK = ImageClassification(augmentation=Augmentation(crop=0, flip=False))
RECIPE = Recipe(epochs=2, batch_size=8, learning_rate=0.01, task=TASK)


def train_run(folder, **options):
    """Trains a small model on dark and bright images."""
    labels = np.arange(16) % 2
    images = np.broadcast_to(200 * labels[:, None, None, None], (16, 4, 4, 1)).astype("uint8")
    split = from_arrays(images, labels)
    data = ImageData("shades", ("dark", "bright"), (4, 4, 1), split, split)
    keras.utils.set_random_seed(0)
    model = keras_gmlp.gMLP(4, 1, hidden_dim=8, patch_size=4, classes=2, input_shape=(4, 4, 1))
    return train(model, data, RECIPE, folder, verbose=0, **options)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder with a complete run, and one with a run that was stopped after an epoch."""
    complete, stopped = (tmp_path_factory.mktemp(name) for name in ("complete", "stopped"))
    train_run(complete)
    with pytest.raises(KeyboardInterrupt):
        train_run(stopped, callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=stop)])
    return {"complete": complete, "stopped": stopped}


def stop(epoch, logs):
    raise KeyboardInterrupt


def cut(text):
    return text[: len(text) // 2]


@pytest.mark.parametrize(
    ("kind", "name", "change", "reason"),
    [
        ("stopped", "history.csv", lambda text: text.replace("0.", "o."), "convert"),
        ("stopped", "recipe.json", None, "missing"),
        ("stopped", "recipe.json", cut, "damaged"),
        ("stopped", "checkpoint/000001.weights.h5", cut, "cannot be loaded"),
        ("complete", "model.keras", cut, "cannot be loaded"),
    ],
)
def test_damaged_file_is_named_with_the_remedy(tmp_path, folders, kind, name, change, reason):
    place = shutil.copytree(folders[kind], tmp_path / "run")
    path = place / name
    content = path.read_bytes().decode("latin-1")
    path.unlink()
    if change is not None:
        path.write_bytes(change(content).encode("latin-1"))
    checkpoints = sorted((place / "checkpoint").glob("*"))
    with pytest.raises(ValueError, match=reason) as error:
        train_run(place)
    assert str(path) in str(error.value)
    assert "--restart" in str(error.value)
    assert "\n" not in str(error.value)
    assert sorted((place / "checkpoint").glob("*")) == checkpoints  # nothing is lost


@pytest.mark.parametrize("restart", [False, True])
def test_files_of_the_user_are_not_replaced(tmp_path, restart):
    (tmp_path / "labels.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"labels\.txt"):
        train_run(tmp_path, restart=restart)
    assert (tmp_path / "labels.txt").read_text() == "mine"


def test_files_of_other_names_and_a_readme_of_the_user_stay(tmp_path):
    for name in ("README.md", "notes.txt"):
        (tmp_path / name).write_text("mine")
    train_run(tmp_path, restart=True)
    assert [(tmp_path / name).read_text() for name in ("README.md", "notes.txt")] == ["mine"] * 2


def test_last_line_that_a_kill_cut_is_left_out(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text("epoch,seconds,loss\n0,1.5,2.0\n1,1.")
    assert read_history(path) == [{"epoch": "0", "seconds": "1.5", "loss": "2.0"}]
    path.write_text("epoch,seconds,loss\n0,1.5\n1,1.5,2.0\n")
    with pytest.raises(ValueError, match="damaged"):
        read_history(path)
    assert read_history(tmp_path / "missing.csv") == []
