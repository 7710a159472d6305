"""What the source of a model is."""

import pytest
from refused import refused

from keras_gmlp.utils.shipped import FOLDER
from keras_gmlp.utils.sources import FEATURES_FIRST, FILES, KINDS, TRAINABLE, find_model


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
    for name in ("net.npz", "best.PT", "best.pth.tar", "exported/saved_model.pb"):
        (tmp_path / name).touch()
    name = "hf-hub:timm/gmlp_s16_224.ra3_in1k"
    for source, found in (
        (name, (name, "published")),
        (tmp_path / "net.npz", (tmp_path / "net.npz", "published")),
        (tmp_path / "best.PT", (tmp_path / "best.PT", "published")),
        (tmp_path / "best.pth.tar", (tmp_path / "best.pth.tar", "published")),
        (tmp_path / "exported", (tmp_path / "exported", "saved_model")),
        (str(run / "model.onnx"), (run / "model.onnx", "onnx")),
        (run / "model_features.tflite", (run / "model_features.tflite", "tflite")),
        ("gmlp_photo_64/model.keras", (FOLDER / "gmlp_photo_64" / "model.keras", "keras")),
    ):
        assert find_model(source) == found


def test_a_run_stands_for_what_the_caller_prefers(run):
    assert find_model(run) == (run / "model.tflite", "tflite")
    assert find_model(run, FEATURES_FIRST) == (run / "model_features.tflite", "features")
    assert find_model(run, TRAINABLE) == (run / "model.keras", "keras")
    assert find_model(run, ("run",)) == (run, "run")
    (run / "model.safetensors").touch()
    assert find_model(run, TRAINABLE)[1] == "keras"
    for kind in FILES:
        assert find_model(run, (kind,)) == (run / FILES[kind], kind)
        (run / FILES[kind]).unlink()
    assert find_model(run) == (run, "published")


def test_sources_of_other_kinds_are_named(tmp_path, run):
    (tmp_path / "notes.txt").touch()
    for source, kinds, reason in (
        (run / "model.onnx", TRAINABLE, r"\.keras"),
        (run / "model.onnx", ("run",), "folder of a run"),
        ("hf-hub:a/b", tuple(FILES), "weights.load"),
        (tmp_path / "notes.txt", KINDS, "unknown"),
        (tmp_path / "none", KINDS, "no such"),
        ("", KINDS, "empty"),
        (tmp_path / "runs", KINDS, "mine"),
    ):
        with refused(reason, source):
            find_model(source, kinds)


def test_runs_without_a_model(run):
    for name in FILES.values():
        (run / name).unlink()
    with refused("no model", run):
        find_model(run)
    (run / "recipe.json").touch()
    with refused("not complete", run):
        find_model(run)
