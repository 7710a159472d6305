"""Models on the Hugging Face hub, by the real clients and a server of the test."""

import json

import keras
import numpy as np
import pytest
import yaml
from check_layer import to_numpy
from fake_hub import start_hub, stop_hub
from huggingface_hub import constants
from random_models import pixels, tiny
from refused import refused
from tiny_run import train_tiny

import keras_gmlp
from keras_gmlp.export import verify
from keras_gmlp.export.hub import create_repository, upload
from keras_gmlp.programs.shared import cli
from keras_gmlp.utils import environment
from keras_gmlp.utils.sources import SHIPPED

IMAGES = pixels(3, 8, 8, 3)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub without repositories, which the client takes for the real one."""
    server, address = start_hub()
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    for name, value in {
        "ENDPOINT": address,
        "HUGGINGFACE_CO_URL_TEMPLATE": template,
        "HF_HUB_CACHE": str(tmp_path / "hub"),
    }.items():
        monkeypatch.setattr(constants, name, value)
    yield server
    stop_hub(server)


def check(model, expected, images=IMAGES):
    np.testing.assert_allclose(to_numpy(model(images)), to_numpy(expected(images)), atol=1e-5)


def test_run_goes_up_and_comes_back(hub, tmp_path, monkeypatch, app):
    run = tmp_path / "run"
    train_tiny(run)
    recipe = json.loads((run / "recipe.json").read_text())
    command = {"data": "/home/mé/a", "weights": "/home"}
    places = {"command": command, "places": {"a": "/home/mé/a"}}
    (run / "recipe.json").write_text(json.dumps({**recipe, **places}))
    (run / "README.md").write_text((run / "README.md").read_text() + "from '/home/mé/a'")
    (run / "saved_model").mkdir()
    (run / "saved_model" / "saved_model.pb").write_bytes(b"graph")
    card = b"---\nlicense: mit\n---\n"
    hub.repositories["me/shades"] = {"model.tflite": b"of another run", "README.md": card}
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setattr(cli, "import_tensorflow", lambda: None)
    monkeypatch.setattr(verify, "export_run", lambda *_, **__: {})
    code, out, error = app("export", run, "--no-check", "--to", "hf://me/shades")
    assert (code, error, out.endswith("me/shades\n")) == (0, "", True)
    assert hub.tokens == {"Bearer secret"}

    files = hub.repositories["me/shades"]
    assert {"curves.png", "saved_model/saved_model.pb"} < set(files)
    assert "model.tflite" not in files
    assert not any(b"/home" in content for content in files.values())
    _, head, text = files["README.md"].decode().split("---\n", 2)
    assert 'keras_gmlp.load("hf://me/shades")' in text
    assert text.endswith("from 'a'")
    assert json.loads(files["recipe.json"])["command"] == {"data": "a", "weights": "home"}
    head = yaml.safe_load(head)
    assert (head["library_name"], head["license"]) == ("keras", "mit")  # as it was
    assert (head["pipeline_tag"], head["datasets"]) == ("image-classification", ["shades"])
    [result] = head["model-index"][0]["results"]
    metrics = json.loads((run / "metrics.json").read_text())
    assert result["metrics"] == [{"type": "accuracy", "value": metrics["test_accuracy"]}]

    ours, source = keras_gmlp.load_model(run), "hf://me/shades"
    check(keras_gmlp.load_model(source), ours)
    check(keras.saving.load_model(source, compile=False), ours)
    loaded = keras_gmlp.load(source)
    assert loaded.labels == ("dark", "bright")
    check(loaded.model, ours)
    stop_hub(hub)
    check(keras_gmlp.load(source).model, ours)  # from the cache


def test_model_that_keras_saved(hub):
    model = keras_gmlp.build("gmlp_n4_32", depth=1, input_shape=(8, 8, 3), classes=3)
    keras.saving.save_model(model, "hf://me/model")
    check(keras_gmlp.load("hf://me/model").model, model)
    check(keras_gmlp.build("gmlp_n4_32", "hf://me/model", depth=1), model)
    check(keras_gmlp.load_model("hf://me/model", compile=False), model)


def test_model_that_timm_saved(hub, timm):
    import torch
    from timm.models import push_to_hf_hub

    theirs = timm.create_model("vit_tiny_patch16_224", img_size=64).eval()
    push_to_hf_hub(theirs, "timm/vit", model_args={"img_size": 64})
    images = pixels(2, 64, 64, 3)
    with torch.no_grad():
        expected = theirs(torch.from_numpy(images.transpose(0, 3, 1, 2)) / 127.5 - 1).numpy()
    loaded = keras_gmlp.load("hf://timm/vit")
    assert loaded.labels[0] == "tench"
    for model in loaded.model, keras_gmlp.build("vit_ti16_224", "hf://timm/vit"):
        np.testing.assert_allclose(to_numpy(model(images)), expected, rtol=1e-4, atol=1e-4)


def test_folder_of_a_model_that_was_not_trained_here(hub, tmp_path):
    model = tiny()
    model.save(tmp_path / "model.keras")
    upload(tmp_path, create_repository("hf://me/tiny"))
    check(keras_gmlp.load_model("hf://me/tiny", compile=False), model)
    head = hub.repositories["me/tiny"]["README.md"].decode()
    assert ("license: unknown" in head, "datasets" in head) == (True, False)


def test_repository_without_a_model(hub):
    hub.repositories["me/model"] = {"README.md": b"soon"}
    with refused("kind of model", "hf://me/model"):
        keras_gmlp.load("hf://me/model")


def test_what_is_missing_is_one_line(hub, monkeypatch, app):
    source, run = "hf://me/model", SHIPPED / "gmlp_n4_32-cifar10"
    with refused("Not Found", source):
        keras_gmlp.load(source)
    with refused("hf://", "exports"):
        create_repository("exports")
    stop_hub(hub)
    with refused("could not be downloaded", "hf://me/other"):
        keras_gmlp.build("gmlp_n4_32", "hf://me/other")
    monkeypatch.setattr(cli, "import_tensorflow", lambda: None)
    for given in (("classify", "docs/cat.jpg", "--model"), ("export", run, "--no-check", "--to")):
        code, out, error = app(*given, "hf://me/other")
        assert (code, out, error.count("\n")) == (1, "", 1)
        assert ("hf://me/other" in error, "internet" in error) == (True, False)
    monkeypatch.setattr(environment, "is_installed", lambda package: False)
    for use in (keras_gmlp.load, create_repository):
        with pytest.raises(ImportError, match=r"pip install -e '\.\[convert\]'"):
            use(source)
