"""Test images that are training images, too."""

from types import SimpleNamespace

import pytest
from load_app import load_app
from PIL import Image

from keras_gmlp import data
from keras_gmlp.inspection import near_duplicates as duplicates
from keras_gmlp.inspection.near_duplicates import find_equal_files
from keras_gmlp.utils.files import hash_file


@pytest.fixture
def photos(tmp_path):
    """A folder in which one of two test images is also a training image."""
    for place, name in enumerate(("train/a/1", "train/a/2", "train/b/3", "test/a/4", "test/b/5")):
        path = tmp_path / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (4, 4), 20 * place).save(path)  # files of one size
    (tmp_path / "test/b/5.png").write_bytes((tmp_path / "train/a/2.png").read_bytes())
    return tmp_path


@pytest.mark.parametrize("channels", [1, 3])
def test_same_files_in_both_splits_are_found(photos, channels):
    found = find_equal_files(data.load(photos, (4, 4), channels=channels))
    assert found == {str(photos / "test/b/5.png"): str(photos / "train/a/2.png")}


def test_unreadable_file_hides_no_other(photos, monkeypatch):
    unreadable = str(photos / "test/a/4.png")

    def read(path):
        if path == unreadable:
            raise PermissionError(path)
        return hash_file(path)

    monkeypatch.setattr(duplicates, "hash_file", read)
    found = find_equal_files(data.load(photos, (4, 4)))
    assert found == {str(photos / "test/b/5.png"): str(photos / "train/a/2.png")}


def test_files_that_are_gone_and_data_in_memory(photos):
    opened = data.load(photos, (4, 4))
    assert find_equal_files(opened, patience=-1.0) == {}  # the search ends in time
    for name in ("test/b/5.png", "train/a/1.png"):
        (photos / name).unlink()
    assert find_equal_files(opened) == {}
    assert find_equal_files(data.load("digits")) == {}


def test_training_warns_in_one_line(photos, capsys):
    load_app("train").warn_of_data(SimpleNamespace(data=data.load(photos, (4, 4))))
    error = capsys.readouterr().err
    assert "1 of 2 test images" in error
    assert f"({photos}/test/b/5.png is {photos}/train/a/2.png)" in error
    assert error.count("\n") == 1
