"""The README's Python runs as it stands there."""

import ast
import re
from pathlib import Path

import pytest

import keras_gmlp
from keras_gmlp import data
from keras_gmlp.weights import pretrained
from keras_gmlp.weights.pretrained import Pretrained

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
TRAINING, WEIGHTS, FOLDER, CLASSIFYING = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.slow
def test_training_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(TRAINING, names)
    images, labels = next(names["images"].test.batch(360).as_numpy_iterator())
    found = names["model"].predict(images, verbose=0).argmax(-1)
    assert (found == labels).mean() > 0.9
    again = keras_gmlp.load_model("digits.keras")
    assert (again.predict(images, verbose=0).argmax(-1) == found).all()


def test_weights_example(monkeypatch):
    asked = []

    def load(source, preset):  # the hub's file would be one of 78 MB
        asked.append((source, preset))
        small = keras_gmlp.build("gmlp_ti16_224", input_shape=(32, 32, 3), depth=1)
        return Pretrained(small, "gmlp_ti16_224", None, {}, source)

    monkeypatch.setattr(pretrained, "load", load)
    names = {}
    exec(WEIGHTS.replace(", input_shape", ", depth=1, input_shape"), names)
    assert names["model"].input_shape == (None, 160, 160, 3)
    assert asked == [("hf-hub:timm/gmlp_s16_224.ra3_in1k", "gmlp_s16_224")]


def test_folder_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(FOLDER, {})
    found = data.load("runs/five_digits", (32, 32))
    assert found.labels == ("0", "1", "2", "3", "4")
    assert (int(found.train.cardinality()), int(found.test.cardinality())) == (723, 178)


def test_classifying_example(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "saved_models").symlink_to(ROOT / "saved_models")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    exec(CLASSIFYING, {})
    label, probability = ast.literal_eval(capsys.readouterr().out)[0]
    told = re.search(r"classify.py docs/cat.jpg +# cat ([\d.]+) %", README)[1]
    assert label == "cat"
    assert 100 * probability == pytest.approx(float(told), abs=2)  # processors round differently


def test_every_file_it_names_is_there():
    named = set(re.findall(r"`?\b((?:apps|keras_gmlp|saved_models|docs)/[\w./-]*\w)", README))
    assert named
    assert {name for name in named if not (ROOT / name).exists()} == set()
