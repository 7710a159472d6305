"""Each benchmark of benchmarks/ runs on small data, in this process."""

import shutil

import numpy as np
import pytest
from own_images import write_folder, write_start
from small_text import save_small_model, small_tokenizer

from benchmarks import (
    few_labels,
    image_sizes,
    language,
    own_images,
    reading,
    runtimes,
    time_to_accuracy,
    training,
)
from keras_gmlp.data import load
from keras_gmlp.data.text.labelled_texts import TextData, TextSplit
from keras_gmlp.weights import pretrained

pytestmark = pytest.mark.once
ONE = ["--rounds", "1", "--here"]


def test_reading(capsys, monkeypatch):
    small = {"BATCH": 4, "CLASSES": 2, "DIFFERENT": 10, "SIDE": 32, "PACKED_SIDE": 40}
    for name, value in small.items():
        monkeypatch.setattr(reading, name, value)
    monkeypatch.setattr("keras_gmlp.data.images.samples.MEMORY_LIMIT", 0)  # restored after this
    assert reading.main(["--images", "30", "--batches", "1", *ONE]) == 0
    assert "| packed set, recipe imagenet |" in capsys.readouterr().out


def test_training(capsys, monkeypatch):
    monkeypatch.setattr(training, "is_in_timm", lambda preset: False)  # its import takes seconds
    given = ["--batch", "2", "--steps", "1", "--epochs", "2", "--backends", "torch", *ONE]
    assert training.main(given) == 0
    assert "| gmlp_n4_32, float32, torch, auto |" in capsys.readouterr().out


def test_runtimes(tmp_path, capsys):
    write_start(tmp_path / "model.keras")
    given = ["--only", "keras-torch", "--batch", "1", "2", "--seconds", "0", "--threads", "1"]
    assert runtimes.main([str(tmp_path), *given, *ONE]) == 0
    head, _, row = capsys.readouterr().out.splitlines()[-3:]
    assert head.startswith("|  | ms, batch 1 | ms, batch 2 | difference | MB | s to answer |")
    assert float(row.split("|")[4]) < 1e-4


def test_own_images(tmp_path, capsys, monkeypatch):
    folder, start = write_folder(tmp_path / "photos"), write_start(tmp_path / "model.keras")

    def export_run(place, *_):
        shutil.copy("saved_models/gmlp_n4_32-cifar10/model.tflite", place)
        return {"tflite": {}}

    monkeypatch.setattr("keras_gmlp.export.verify.export_run", export_run)  # converts in seconds
    given = [folder, "--weights", start]
    assert own_images.main([*given, "--only", "linear head"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("| linear head | ")
    table = tmp_path / "table.csv"
    few = ["--per-class", "5", "20", "--draws", "2", "--csv", str(table)]
    assert own_images.main([*given, *few]) == 0
    head, line = table.read_text().splitlines()
    assert head == "model,5 of each,20 of each"
    assert float(line.split(",")[2].split()[0]) > 60


def test_image_sizes(tmp_path):
    source = pretrained.load(write_start(tmp_path / "start.keras"))
    found = image_sizes.measure_size(source, load("digits", (16, 16), channels=3), 20)
    assert set(found) == {f"{kind}, %" for kind in ("patch", "window", "resampled", "fresh")}


def test_time_to_accuracy(tmp_path, capsys):
    rows = ["epoch,seconds,val_accuracy", "0,10.5,0.4", "1,12.0,0.885", "2,11.0,0.88", ""]
    (tmp_path / "history.csv").write_text("\n".join(rows))
    assert time_to_accuracy.main([str(tmp_path), "--accuracy", "0.88"]) == 0
    assert f"| {tmp_path} | 2 | 22.5 | 3 | 11 | 88.50 % |" in capsys.readouterr().out
    assert time_to_accuracy.make_row(tmp_path, 0.9)["epochs to 90 %"] == "not reached"


class Guesser:
    """Fills each blank with the same words."""

    def fill_mask(self, text, top):
        return [{"token_str": word} for word in ("war", "Capital", "of")][:top]


def test_language(tmp_path):
    (tmp_path / "cloze.tsv").write_text("a [MASK]\tpeace, capital\n\nb [MASK]\tby\n")
    rows = language.measure_cloze(Guesser(), tmp_path / "cloze.tsv")
    assert [row["rank"] for row in rows] == [2, "-"]
    pairs = [("a b", "a b"), ("c d", "c d"), ("a b", "c d"), ("a c", "b d"), ("b e", "a d")] * 4
    split = TextSplit(pairs, np.array([1, 1, 0, 0, 0] * 4))
    floors = language.measure_floors(TextData("pairs", ("other", "same"), split, split))
    found = {row[""]: row["accuracy, %"] for row in floors}
    assert found["shared words"] == 100
    assert found["majority"] == pytest.approx(60)


def test_few_labels(tmp_path, capsys, monkeypatch):
    texts = [f"{word} {n}" for n in range(10) for word in ("bad film", "good film")]
    split = TextSplit(texts, [0, 1] * 10)
    reviews = TextData("reviews", ("bad", "good"), split, split.take(range(4)))
    monkeypatch.setattr(few_labels, "SETS", {"reviews": lambda: reviews})
    save_small_model(tmp_path / "model.keras", "masked_lm", small_tokenizer())
    small = {
        "MODEL": str(tmp_path / "model.keras"),
        "EPOCHS": {8: 1, 12: 1},
        "DRAWS": 2,
        "LENGTH": 16,
    }
    for name, value in small.items():
        monkeypatch.setattr(few_labels, name, value)
    file = tmp_path / "rows.csv"
    assert few_labels.main([str(file)]) == 0
    rows = few_labels.read_rows(file)
    assert len(rows) == 3 * 2 * 2
    assert {row["accuracy"] for row in rows if row["way"] == "n-grams"} == {"1.0"}
    assert "| n-grams | 100.0 ± 0.0 % | 100.0 ± 0.0 % |" in capsys.readouterr().out
    made = file.read_text()
    assert few_labels.main([str(file)]) == 0
    assert file.read_text() == made


def test_few_labels_tests_other_paragraphs(monkeypatch):
    places = [(f"article {a}".encode(), f"paragraph {p}".encode()) for a in "bac" for p in range(9)]
    rows = [{"title": a, "context": p, "question": b"%s %s" % (a, p)} for a, p in 2 * places]
    read = type("Rows", (), {"as_numpy_iterator": lambda self: iter(rows)})
    monkeypatch.setattr(few_labels.tfds, "open_set", lambda *_: None)
    monkeypatch.setattr(few_labels.tfds, "read_split", lambda *_: read())
    found = few_labels.read_questions()
    assert (len(found.train), len(found.test)) == (48, 6)
    assert not {*found.train.texts} & {*found.test.texts}
    assert all(
        found.labels[c] in t for t, c in zip(found.test.texts, found.test.labels, strict=True)
    )
