"""The program that stores a teacher's answers."""

import json

import keras
import numpy as np
import pytest
from own_images import SIZES, write_folder

import keras_gmlp


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A folder of pictures and a teacher for its two classes."""
    place = tmp_path_factory.mktemp("teach")
    write_folder(place / "photos", train=6, test=2, classes=2)
    keras.utils.set_random_seed(0)
    keras_gmlp.gMLP(classes=2, **SIZES).save(place / "teacher.keras")
    return place


def test_answers_of_a_folder(workspace, tmp_path, app):
    arguments = [workspace / "teacher.keras", "--data", workspace / "photos"]
    arguments += ["--views", "2", "--out", tmp_path / "answers"]
    code, output, _ = app("teach", *arguments, "--json")
    summary = json.loads(output)
    assert code == 0
    assert (summary["images"], summary["views"], summary["bytes"]) == (12, 2, 12 * 2 * 18 * 2)
    logits = np.load(tmp_path / "answers" / "logits-1.npy")
    assert (logits.shape, logits.dtype) == ((12, 2), np.float16)
    assert "12, 2 views" in app("teach", *arguments)[1]  # all views are there
    code, _, error = app("teach", *arguments, "--seed", "1")
    assert (code, "answers of other views" in error) == (1, True)


def test_teacher_that_is_not_there(workspace, tmp_path, app):
    given = ["--data", workspace / "photos", "--out", tmp_path / "answers"]
    code, _, error = app("teach", tmp_path / "none.onnx", *given)
    assert (code, "none.onnx: no such file" in error) == (1, True)
    assert not (tmp_path / "answers").exists()
