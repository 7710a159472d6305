"""What apps/train.py starts from on a user's own images."""

import json

import pytest
from load_app import load_app
from own_images import replace_backbone, write_folder

from keras_gmlp import RunSettings, data
from keras_gmlp.utils import sources

pytestmark = [pytest.mark.once, pytest.mark.eager]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    # So noisy that a linear head leaves something to gain.
    return write_folder(tmp_path_factory.mktemp("own") / "photos", noise=220)


@pytest.fixture
def backbone(tmp_path, monkeypatch):
    replace_backbone(tmp_path / "models", monkeypatch)
    return sources.DEFAULT_BACKBONE


def test_start(backbone, folder, tmp_path):
    own, scratch = (backbone, None, "finetune"), (None, "gmlp_n4_32", "quick")
    packed = str(tmp_path / "packed")
    data.pack(data.load(folder, (16, 16)), packed)
    for arguments, expected in (
        ([], own),
        (["--data", packed], own),
        (["--weights", backbone], own),
        (["--image-size", "8"], own),
        (["--recipe", "finetune"], own),
        (["--weights", "none"], scratch),
        (["--model", "vit_n4_32"], (None, "vit_n4_32", "quick")),
        (["--recipe", "quick"], scratch),
        (["--set-model", "depth=2"], scratch),
        (["--weights", "runs/other"], ("runs/other", None, "finetune")),
        (["--data", "digits"], scratch),
    ):
        (found,) = load_app("train").main.parse(["--data", folder, *arguments]).runs
        assert (found.weights, found.model, found.recipe) == expected
        assert ("zooms" in found.set_model) == (expected == own and found.image_size is None)
        assert RunSettings(**found.to_dict()) == found
    for given, arguments in (({}, []), ({"weights": "none"}, ["--weights", "none"])):
        (found,) = load_app("train").main.parse(["--data", folder, *arguments]).runs
        assert RunSettings(data=folder, **given) == found


def test_a_folder_is_fine_tuned(backbone, folder, tmp_path, app, monkeypatch):
    place, asked = tmp_path / "run", []
    arguments = ["--data", folder, "--out", place, "--no-export"]
    choose = "keras_gmlp.training.precision.choose_precision"
    monkeypatch.setattr(choose, lambda place: asked.append(place) or "float32")
    code, output, _ = app("train", *arguments)
    lines = output.splitlines()
    assert code == 0
    (start,) = [i for i, line in enumerate(lines) if line.startswith(f"from   {backbone}: ")]
    assert lines[start + 1] == "       it knows photographs; --weights none trains from scratch"
    assert "candidates, on 12 held-out training images:" in lines
    assert sum(line.endswith("chosen") for line in lines) == 1
    assert json.loads((place / "recipe.json").read_text())["weights"] == backbone
    assert len(json.loads(app("train", *arguments, "--json")[1])["candidates"]) == 3
    assert "with a linear head" in app("train", *arguments, "--restart", "--epochs", "0")[1]
    assert asked == [str(place), str(place), None]
