"""Test images that are training images, too."""

from types import SimpleNamespace

import pytest
from PIL import Image

from keras_gmlp import data
from keras_gmlp.programs.shared.training import warn_of_data
from keras_gmlp.training.recipes import RECIPES
from keras_gmlp.utils.errors import DataWarning


def run(data):
    return SimpleNamespace(data=data, recipe=RECIPES["quick"])


def test_training_warns_of_the_same_file_in_both_splits(tmp_path):
    for place, name in enumerate(("train/a/1", "train/a/2", "train/b/3", "test/a/4", "test/b/5")):
        path = tmp_path / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (4, 4), 20 * place).save(path)  # files of one size
    (tmp_path / "test/b/5.png").write_bytes((tmp_path / "train/a/2.png").read_bytes())
    opened = data.load(tmp_path, (4, 4), channels=1)
    with pytest.warns(DataWarning, match=r"1 of 2 test images .*\(test/b/5.png is train/a/2.png\)"):
        warn_of_data(run(opened))
    for name in ("test/b/5.png", "train/a/1.png"):  # decoding them says what is wrong
        (tmp_path / name).unlink()
    for others in (opened, data.load("digits")):
        warn_of_data(run(others))
