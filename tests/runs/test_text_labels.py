"""Texts with any number of labels: files, training, export and programs."""

import json

import numpy as np
import pytest
from refused import refused

from keras_gmlp import text
from keras_gmlp.data.text.labelled_texts import TextSource, hold_out, load_text
from keras_gmlp.inference.card_update import update_card
from keras_gmlp.tasks.text_classification import TextClassification
from keras_gmlp.utils.card import read_card, write_text_card
from keras_gmlp.weights.loading import load

pytestmark = pytest.mark.filterwarnings("ignore::keras_gmlp.utils.errors.DataWarning")
WORDS = {"money": "bank", "music": "song", "sport": "goal"}


def write_notes(path, rows):
    lines = [f"{line},{'|'.join(labels)}" for line, labels in rows]
    path.write_text("\n".join(["text,label", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """Notes with a word for each of their labels; every eighth has none."""
    random, rows = np.random.default_rng(0), []
    for number in range(96):
        labels = [label for place, label in enumerate(WORDS) if number >> place & 1]
        words = [*map(WORDS.get, labels), *random.choice(["new", "old", "day", "note"], 2)]
        rows.append((" ".join(random.permutation(words)), labels))
    folder = tmp_path_factory.mktemp("notes")
    lines = [json.dumps({"text": line, "label": labels}) for line, labels in rows]
    (folder / "notes.jsonl").write_text("\n".join(lines))
    return write_notes(folder / "notes.csv", rows)


def test_files_name_the_labels(notes, tmp_path):
    data = load_text(notes)
    assert (data.labels, data.train.labels.shape[1]) == (tuple(WORDS), 3)
    for line, row in zip(data.train.texts, data.train.labels, strict=True):
        assert row.tolist() == [word in line for word in WORDS.values()]
    same = load_text(notes.with_suffix(".jsonl"))
    np.testing.assert_array_equal(same.train.labels, data.train.labels)
    held = hold_out(data, 0.25)
    parts = held.train, held.validation, held.test
    assert sum(map(len, parts)) == 96
    assert all(part.labels.any(axis=0).all() and not part.labels.all() for part in parts)
    (tmp_path / "one.csv").write_text("text,labels\na,money\nb,sport\nc,music\nd,\n")
    both = load_text(tmp_path / "one.csv", test=notes)
    assert (both.train.labels.sum(), both.test.labels.sum()) == (3, 144)
    for name, content, reason in (
        ("a.csv", "text,label\na,x|y\nb,x| \n", "line 3"),
        ("b.jsonl", '{"text": "a", "label": ["x", "y"]}\n{"text": "b"}', "line 2"),
        ("c.csv", "text,labels\na,\nb,\n", "no labels"),
        ("d.csv", "text,label,split\na,x|y,train\nb,z,test\n", "no training text"),
    ):
        (tmp_path / name).write_text(content)
        with refused(reason):
            load_text(tmp_path / name)


def test_programs_train_export_classify_and_evaluate(notes, tmp_path, app):
    tokenizer, run = text.Tokenizer.train([notes.read_text()], 128), tmp_path / "run"
    text.gMLP(tokenizer.size, 32, 1, 64, max_length=16).save(tmp_path / "start.keras")
    write_text_card(tmp_path / "start.keras", "masked_lm", tokenizer)
    given = ["--task", notes, "--weights", tmp_path / "start.keras", "--validation", "0.2"]
    given += ["--epochs", "20", "--learning-rate", "0.02", "--batch-size", "8"]
    given += ["--set", "length=16", "--precision", "float32", "--json", "--out", run]
    code, out, _ = app("train", *given)
    assert (code, json.loads(out)["test_mean_average_precision"] > 0.95) == (0, True)
    assert app("train", *given)[0] == 0  # complete: loaded
    assert (run / "samples.csv").read_text().count(",money|music|sport,") == 12
    code, out, _ = app("export", run, "--formats", "tflite_float32", "--json")
    assert json.loads(out)["tflite_float32"]["mean_average_precision"] > 0.95
    files = [run / "model.keras", run / "model_float32.tflite"]
    for file in files:
        assert len(read_card(file)["thresholds"]) == 3
        for line, labels in (("a goal song", ["music", "sport"]), ("old day", [])):
            _, out, _ = app("classify", line, "--model", file)
            assert sorted(row.split()[0] for row in out.splitlines()[1:]) == (labels or ["no"])
    other = write_notes(tmp_path / "other.csv", [("a goal", ["sport", "weather"]), ("old", [])])
    _, out, _ = app("evaluate", *files, "--data", other, "--json")
    report = json.loads(out)
    assert (report["unknown_classes"], report["models"][1]["agreement"]) == (["weather"], 1)
    assert (report["models"][0]["texts"], report["models"][0]["classes"][0]["f1"]) == (2, 1)
    assert "requires a classifier" in app("calibrate", run)[2]
    with refused("one label each"):
        TextClassification.load_samples([load(run)], TextSource(str(other)))
    update_card(files[1], {"thresholds": [0.5]})
    with refused("threshold"):
        load(files[1])
