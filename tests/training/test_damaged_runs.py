"""Runs whose folder lost or changed files: each gets one line, before anything is trained."""

import shutil

import pytest
from tiny_run import kill_after_an_epoch, train_tiny

from keras_gmlp.training.run_directory import read_history


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder with a complete run, and one with a run that was stopped after an epoch."""
    complete, stopped = (tmp_path_factory.mktemp(name) for name in ("complete", "stopped"))
    train_tiny(complete)
    kill_after_an_epoch(train_tiny, stopped)
    return {"complete": complete, "stopped": stopped}


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
        train_tiny(place)
    assert str(path) in str(error.value)
    assert "--restart" in str(error.value)
    assert "\n" not in str(error.value)
    assert sorted((place / "checkpoint").glob("*")) == checkpoints  # nothing is lost


@pytest.mark.parametrize("restart", [False, True])
def test_files_of_the_user_are_not_replaced(tmp_path, restart):
    (tmp_path / "labels.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"labels\.txt"):
        train_tiny(tmp_path, restart=restart)
    assert (tmp_path / "labels.txt").read_text() == "mine"


def test_files_of_other_names_and_a_readme_of_the_user_stay(tmp_path):
    for name in ("README.md", "notes.txt"):
        (tmp_path / name).write_text("mine")
    train_tiny(tmp_path, restart=True)
    assert [(tmp_path / name).read_text() for name in ("README.md", "notes.txt")] == ["mine"] * 2


def test_last_line_that_a_kill_cut_is_left_out(tmp_path):
    path = tmp_path / "history.csv"
    for cut in ("1,1.", "1,1.5,", "1,1.5,1e-", "1,1.5,2"):
        path.write_text(f"epoch,seconds,loss\n0,1.5,2.0\n{cut}")
        assert read_history(path) == [{"epoch": "0", "seconds": "1.5", "loss": "2.0"}]
    path.write_text("epoch,seconds,loss\n0,1.5\n1,1.5,2.0\n")
    with pytest.raises(ValueError, match="damaged"):
        read_history(path)
    assert read_history(tmp_path / "missing.csv") == []
