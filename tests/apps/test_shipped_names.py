"""Programs take included models by name, from any folder."""

import json
import shutil

import numpy as np
import pytest
from load_app import APPS
from PIL import Image

from keras_gmlp.utils import sources

ROOT = APPS.parent
CAT = str(ROOT / "docs" / "cat.jpg")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """An empty folder, and a clone's models: an image model that programs may write to."""
    monkeypatch.setattr(sources, "SHIPPED", tmp_path / "models")
    shutil.copytree(ROOT / "saved_models" / "gmlp_n4_32-cifar10", tmp_path / "models" / "short")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture
def photos(tmp_path):
    """A folder with two classes of the model."""
    random = np.random.default_rng(0)
    for label in ("cat", "dog"):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for number in range(6):
            image = Image.fromarray(random.integers(0, 256, (32, 32, 3), "uint8"))
            image.save(tmp_path / "photos" / label / f"{number}.png")
    return str(tmp_path / "photos")


@pytest.fixture
def run(app):
    """Runs a program; returns what it prints as JSON."""

    def run(name, *arguments, codes=(0,)):
        code, output, errors = app(name, *arguments, "--json")
        assert (code in codes, errors) == (True, "")
        return json.loads(output)

    return run


def test_images(run, photos):
    assert run("classify", CAT, "--model", "short")["predictions"][0]["label"] == "cat"
    assert len(run("similar", CAT, "--data", photos, "--model", "short")["similar"]) == 12
    report = run("evaluate", "short", "short/model.keras", "--data", photos)
    assert [row["model"] for row in report["models"]] == ["short", "short/model.keras"]
    assert run("convert", "short")["path"] == "runs/short/model.keras"
    found = run("check_data", photos, "--model", "short", codes=(0, 1))
    assert found["accuracy"] is not None


def test_default_backbone(run, photos, tmp_path):
    def check(*more):
        out = tmp_path / "found"
        return run("check_data", photos, "--out", out, *more, codes=(0, 1))["model"]

    assert check() is None  # colours and edges
    (tmp_path / "models" / "short").rename(tmp_path / "models" / sources.DEFAULT_BACKBONE)
    assert check() == sources.DEFAULT_BACKBONE
    assert check("--model", "none") is None
    pictures = run("visualize", "--only", "explain", "--image", CAT)["pictures"]
    assert pictures == [f"runs/{sources.DEFAULT_BACKBONE}/pictures/explain.png"]
    assert run("classify", CAT)["predictions"][0]["label"] == "cat"
    assert len(run("similar", CAT, "--data", photos)["similar"]) == 12


def test_programs_write_into_the_folder_of_a_name(run, photos, tmp_path):
    folder = tmp_path / "models" / "short"
    pictures = run("visualize", "short", "--only", "explain", "--image", CAT)["pictures"]
    assert pictures == [str(folder / "pictures" / "explain.png")]
    assert run("calibrate", "short", "--data", photos)["images"] == 12
    assert "calibration" in json.loads((folder / "metrics.json").read_text())


def test_unknown_name(app):
    for name, arguments in (
        ("classify", [CAT, "--model", "shorts"]),
        ("export", ["shorts"]),
        ("train", ["--weights", "shorts", "--out", "out"]),
    ):
        code, _, error = app(name, *arguments)
        assert (code in (1, 2), error.count("\n")) == (True, 1)
        assert "shorts" in error
        assert error.endswith("Did you mean short?\n")
