"""What the source of a model is: the name of an included one, a run, a file, a name on the hub."""

from pathlib import Path

import pytest
from refused import refused

from keras_gmlp.utils import sources
from keras_gmlp.utils.card import read_card
from keras_gmlp.utils.sources import FEATURES_FIRST, FILES, KINDS, TRAINABLE, find_model
from keras_gmlp.weights.loading import load

ROOT = Path(__file__).resolve().parents[2]
NAME = "gmlp_n4_32-cifar10"
FOLDER = ROOT / "saved_models" / NAME


@pytest.fixture
def run(tmp_path):
    """The folder of a run with every export."""
    place = tmp_path / "runs" / "mine"
    place.mkdir(parents=True)
    for name in FILES.values():
        (place / name).touch()
    return place


def test_each_source_has_a_path_and_a_kind(tmp_path, run):
    (tmp_path / "exported").mkdir()
    for name in ("best.PT", "best.pth.tar", "exported/saved_model.pb"):
        (tmp_path / name).touch()
    for source, found in (
        (tmp_path / "best.PT", (tmp_path / "best.PT", "published")),
        (tmp_path / "best.pth.tar", (tmp_path / "best.pth.tar", "published")),
        (tmp_path / "exported", (tmp_path / "exported", "saved_model")),
        (str(run / "model.onnx"), (run / "model.onnx", "onnx")),
        (run / "model_features.tflite", (run / "model_features.tflite", "tflite")),
        (f"{NAME}/model.keras", (FOLDER / "model.keras", "keras")),
    ):
        assert find_model(source) == found


def test_a_run_stands_for_what_the_caller_prefers(run):
    assert find_model(run) == (run / "model.tflite", "tflite")
    assert find_model(run, FEATURES_FIRST) == (run / "model_features.tflite", "features")
    assert find_model(run, ("run",)) == (run, "run")
    (run / "model.safetensors").touch()
    assert find_model(run, TRAINABLE) == (run / "model.keras", "keras")
    for kind in FILES:
        assert find_model(run, (kind,)) == (run / FILES[kind], kind)
        (run / FILES[kind]).unlink()
    assert find_model(run) == (run, "published")


def test_sources_of_other_kinds_are_named(tmp_path, run):
    (tmp_path / "notes.txt").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "recipe.json").touch()
    for source, kinds, reason in (
        (run / "model.onnx", TRAINABLE, r"\.keras"),
        (run / "model.onnx", ("run",), "folder of a run"),
        (tmp_path / "notes.txt", KINDS, "unknown"),
        (tmp_path / "none", KINDS, "no such"),
        (tmp_path / "runs", KINDS, "mine"),
        (tmp_path / "empty", KINDS, "no model"),
        (tmp_path / "begun", KINDS, "not complete"),
    ):
        with refused(reason, source):
            find_model(source, kinds)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("elsewhere")
def test_included_models_have_names(tmp_path, monkeypatch):
    assert {NAME, sources.DEFAULT_LANGUAGE_MODEL} <= set(sources.list_shipped())
    assert len(read_card(find_model(sources.DEFAULT_BACKBONE, TRAINABLE)[0])["labels"]) == 200
    assert load(f"{NAME}/").path == FOLDER / "model.tflite"
    with refused(f"Did you mean .*{NAME}", "gmlp_n4_32_cifar10"):
        load("gmlp_n4_32_cifar10")
    for source in ("", "none", f"{NAME}/none.txt", f"{NAME}/../{NAME}", f"./{NAME}"):
        assert sources.find_shipped(source) is source
    (tmp_path / NAME).mkdir()
    assert sources.find_shipped(NAME) == NAME  # a path comes before a name
    monkeypatch.setattr(sources, "SHIPPED", tmp_path / "none")  # as in a wheel
    assert sources.list_shipped() == []
    with refused("a clone of the repository", "gmlp_photo_64"):
        load("gmlp_photo_64")
