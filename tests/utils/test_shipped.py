"""Included models by name."""

import subprocess
from pathlib import Path

import pytest
from refused import refused

from keras_gmlp.inference import images as inference
from keras_gmlp.inference import text as text_inference
from keras_gmlp.utils import shipped
from keras_gmlp.utils.card import read_card
from keras_gmlp.utils.shipped import find_shipped, list_shipped, suggest_shipped
from keras_gmlp.utils.sources import TRAINABLE, find_model

ROOT = Path(__file__).resolve().parents[2]
NAME = "gmlp_n4_32-cifar10"
FOLDER = ROOT / "saved_models" / NAME


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Works in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def few(tmp_path, monkeypatch):
    """A folder with two models."""
    folder = tmp_path / "models"
    for name in ("gmlp_photo_64", "vit_conv"):
        (folder / name).mkdir(parents=True)
    (folder / "gmlp_photo_64" / "model.keras").touch()
    (folder / "notes.txt").touch()
    monkeypatch.setattr(shipped, "FOLDER", folder)
    return folder


def test_names_of_the_clone():
    assert {NAME, "amlp_nano-wiki"} <= set(list_shipped())
    assert find_shipped(NAME) == FOLDER
    assert find_shipped(f"{NAME}/model.keras") == FOLDER / "model.keras"
    assert inference.load(NAME).path == FOLDER / "model.tflite"
    with refused("Did you mean .*gmlp_n4_32-cifar10", "gmlp_n4_32_cifar10"):
        inference.load("gmlp_n4_32_cifar10")


def test_models_take_at_most_45_megabytes():
    listed = ["git", "ls-files", "-z", "saved_models"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no clone of the repository")
    files = [ROOT / name for name in done.stdout.split("\0") if name]
    assert 0 < sum(file.stat().st_size for file in files if file.exists()) <= 45e6


def test_defaults_are_included():
    assert len(read_card(find_model(shipped.DEFAULT_BACKBONE, TRAINABLE)[0])["labels"]) == 200
    assert text_inference.load(shipped.DEFAULT_LANGUAGE_MODEL).task == "masked_lm"


def test_names_are_folders(few):
    assert list_shipped() == ["gmlp_photo_64", "vit_conv"]
    assert find_shipped("gmlp_photo_64/") == few / "gmlp_photo_64"
    assert suggest_shipped("gmlp_foto_64") == " Did you mean gmlp_photo_64?"
    assert suggest_shipped("runs/gmlp_foto_64") == ""
    assert suggest_shipped("imagenet") == ""


@pytest.mark.parametrize(
    "source",
    ["", "none", "notes.txt", "vit_conv/model.keras", "vit_conv/../notes.txt", "./vit_conv"],
)
def test_other_sources_stay(few, source):
    assert find_shipped(source) is source


def test_a_path_comes_before_a_name(few, tmp_path):
    (tmp_path / "vit_conv").mkdir()
    assert find_shipped("vit_conv") == "vit_conv"


def test_a_wheel_has_no_models(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "none")
    assert list_shipped() == []
    with refused("a clone of the repository", "gmlp_photo_64"):
        inference.load("gmlp_photo_64")
    assert find_shipped("runs/mine") == "runs/mine"
