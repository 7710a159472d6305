"""The ways to a classifier of one's own pictures, in this process in place of their own."""

import numpy as np
import pytest
from own_images import write_folder, write_start

from keras_gmlp.benchmark import accuracy, harness
from keras_gmlp.benchmark.__main__ import main
from keras_gmlp.runs import choosing


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """A function that measures photos; it returns the exit code, the table's rows, the errors."""

    def run_here(arguments, environment):
        try:
            main(list(map(str, arguments[2:])))
        except (ValueError, ImportError) as error:
            return "", str(error)
        return capsys.readouterr().out, None

    monkeypatch.chdir(tmp_path)
    write_folder(tmp_path / "photos", noise=40)
    monkeypatch.setattr(harness, "run_python", run_here)
    monkeypatch.setattr(harness, "keep_freed_memory", lambda: None)
    monkeypatch.setattr(choosing, "plan", lambda images: {"epochs": 1, "batch_size": 8})

    def run(*arguments):
        code = main(["own_images", *arguments])
        output, errors = capsys.readouterr()
        rows = [line.strip("| ").split(" | ") for line in output.splitlines() if line[:1] == "|"]
        return code, rows, errors

    return run


def test_each_way_is_a_row(run, tmp_path):
    weights = write_start(tmp_path / "start.keras")
    ways = ["linear head", "fine-tuned", "Lite0"]
    code, (head, _, *rows), errors = run("photos/", "--weights", weights, "--only", *ways)
    assert head == ["test accuracy", "epochs", "seconds"]
    assert [row[0] for row in rows] == ["photos, linear head", "photos, fine-tuned"]
    assert rows[0][2] == "0"
    assert all(row[1].endswith("%") for row in rows)
    assert (code, "photos, Lite0 failed: Lite0 requires" in errors) == (1, True)
    code, rows, errors = run("none", "--weights", weights, "--only", "linear head")
    assert (code, rows) == (1, [])  # no table without a row
    assert "none, linear head failed: " in errors


def test_features_of_another_network(run, monkeypatch):
    def embed(images):
        assert images.shape[1:] == (224, 224, 3)
        return images.mean((1, 2)).astype("float32")

    monkeypatch.setattr(accuracy, "LITE0_PACKAGES", ())
    monkeypatch.setattr(accuracy, "load_lite0", lambda: embed)
    code, (*_, row), _ = run("photos", "--only", "Lite0")
    assert code == 0
    assert row[:3] == ["photos, Lite0", "100.00%", "0"]  # the mean colour is the class


def test_vectors_are_in_order():
    class Split:
        def batches(self, size):
            yield np.zeros((2, 1, 1, 3), "uint8"), np.array([1, 0])
            yield np.ones((1, 1, 1, 3), "uint8"), np.array([2])

    vectors, labels = accuracy.read_vectors(lambda x: x[:, 0, 0], Split())
    assert vectors[0].tolist() == [[0, 0, 0], [0, 0, 0], [1, 1, 1]]
    assert labels.tolist() == [1, 0, 2]
