import json

import keras
import numpy as np
import pytest
from load_app import load_app
from PIL import Image

import keras_gmlp

teach = load_app("teach")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A folder of pictures and a teacher for its two classes."""
    place, rng = tmp_path_factory.mktemp("teach"), np.random.default_rng(0)
    for split, count in (("train", 6), ("test", 2)):
        for label in ("bright", "dark"):
            folder = place / "photos" / split / label
            folder.mkdir(parents=True)
            for i in range(count):
                pixels = rng.integers(0, 256, (8, 8, 3)).astype("uint8")
                Image.fromarray(pixels).save(folder / f"{i}.png")
    keras.utils.set_random_seed(0)
    sizes = {"dim": 8, "depth": 1, "hidden_dim": 16, "patch_size": 4, "input_shape": (8, 8, 3)}
    keras_gmlp.gMLP(classes=2, **sizes).save(place / "teacher.keras")
    return place


def test_answers_of_a_folder(workspace, tmp_path, capsys):
    arguments = [str(workspace / "teacher.keras"), "--data", str(workspace / "photos")]
    arguments += ["--views", "2", "--out", str(tmp_path / "answers")]
    assert teach.main([*arguments, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["images"], summary["views"], summary["bytes"]) == (12, 2, 12 * 2 * 10 * 2)
    logits = np.load(tmp_path / "answers" / "logits-1.npy")
    assert (logits.shape, logits.dtype) == ((12, 2), np.float16)
    assert teach.main(arguments) == 0  # all views are there
    assert "12, 2 views" in capsys.readouterr().out
    assert teach.main([*arguments, "--seed", "1"]) == 1
    assert "answers of other views" in capsys.readouterr().err


def test_errors(workspace, tmp_path, capsys):
    arguments = ["--data", str(workspace / "photos"), "--out", str(tmp_path / "answers")]
    with pytest.raises(SystemExit, match="2"):
        teach.main(["teacher.onnx", *arguments, "--views", "0"])
    assert "views must be an integer of at least 1; received 0" in capsys.readouterr().err
    assert teach.main([str(tmp_path / "none.onnx"), *arguments]) == 1
    assert "none.onnx: no such file" in capsys.readouterr().err
    assert not (tmp_path / "answers").exists()
