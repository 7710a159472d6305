"""Labelled texts: prepared sets, files, folders, and how they are divided."""

import json
import re

import numpy as np
import pytest
import tensorflow_datasets as tfds
from refused import refused
from tfds_sets import write_set

from keras_gmlp.data.text.labelled_texts import (
    TextData,
    TextSource,
    TextSplit,
    choose_texts,
    hold_out,
    load_text,
)
from keras_gmlp.utils.errors import DataWarning

ROWS = [("a gem", "good"), ("a bore", "bad"), ("so, so fine", "good"), ('he said "no"', "bad")]


def fails(match, name, **options):
    """Checks that `load_text` raises a `ValueError` of one line."""
    with refused(match):
        load_text(str(name), **options)


def warns(text):
    return pytest.warns(DataWarning, match=re.escape(text))


def write_csv(path, rows=ROWS, head="text,label"):
    lines = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return str(path)


def write_texts(root, places):
    """Writes text files: the contents of a dict, or texts that differ."""
    texts = places if isinstance(places, dict) else {place: f"of {place}" for place in places}
    for place, text in texts.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text, encoding="utf-8")


def samples(data, *names):
    """The texts of some splits, all by default, and their classes."""
    splits = [getattr(data, name) for name in names or ("train", "test")]
    return sorted(
        (text, data.labels[label])
        for split in splits
        for text, label in zip(split.texts, split.labels, strict=True)
    )


def prepare(root, splits, texts=("sentence",), name="toy"):
    """Writes a set of TensorFlow Datasets: for each split rows of texts and a class."""
    features = dict.fromkeys(texts, tfds.features.Text())
    features["idx"] = tfds.features.Scalar(np.int32)
    features["label"] = tfds.features.ClassLabel(names=["no", "yes"])
    columns = {
        split: dict(zip((*texts, "label"), map(list, zip(*rows, strict=True)), strict=True))
        for split, rows in splits.items()
    }
    for split, rows in splits.items():
        columns[split]["idx"] = np.arange(len(rows), dtype="int32")
        columns[split]["label"] = np.int64(columns[split]["label"])
    write_set(root, name, features, **columns)


def test_prepared_sets(tmp_path, monkeypatch):
    hidden = {"train": [("caf\u00e9", 1), ("b", 0)], "validation": [("c", 1)], "test": [("d", -1)]}
    prepare(tmp_path, hidden)
    data = load_text("toy", data_dir=tmp_path)
    assert (data.name, data.labels, data.pairs) == ("toy", ("no", "yes"), False)
    assert data.train.texts == ["caf\u00e9", "b"]
    assert (data.train.labels.tolist(), data.train.labels.dtype) == ([1, 0], "int32")
    assert data.test.texts == ["c"]
    pairs = {"train": [("a", "b", 1), ("c", "d", 0)], "test": [("e", "f", 0)]}
    prepare(tmp_path, pairs, ("sentence1", "sentence2"), "pairs")
    data = load_text("pairs:1.0.0", data_dir=tmp_path)
    assert (data.pairs, data.train.texts) == (True, [("a", "b"), ("c", "d")])
    single = load_text("pairs", text="sentence2", data_dir=tmp_path)
    assert single.train.texts == ["b", "d"]
    prepare(tmp_path, {"train": [(str(n), n % 2) for n in range(10)]}, name="whole")
    data = load_text("whole", data_dir=tmp_path)
    assert [len(data.train), len(data.test)] == [8, 2]
    write_set(tmp_path, "bare", {"sentence": tfds.features.Text()}, train={"sentence": ["a", "b"]})
    fails("label", "bare", data_dir=tmp_path)
    fails("neither a file", "toyy", data_dir=tmp_path)
    asked, builder = [], tfds.builder("toy", data_dir=str(tmp_path))
    monkeypatch.setattr(tfds, "builder", lambda name, data_dir: asked.append(name) or builder)
    data = load_text("sst2", data_dir=tmp_path)
    assert (asked, data.name, data.test.texts) == (["glue/sst2"], "sst2", ["c"])


def test_kinds_of_files(tmp_path):
    rows = [*ROWS, ("one\ntwo", "bad"), ("x" * 200_000, "good")]
    write_csv(tmp_path / "a.csv", rows, "Text,Label")
    short = "".join(f"{label}\t{text}\r\n" for text, label in ROWS)
    (tmp_path / "a.tsv").write_text(f"label\ttext\r\n{short}")
    objects = [{"text": text, "label": label, "id": n} for n, (text, label) in enumerate(rows)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, objects)) + "\n\n")
    for name, expected in (("a.csv", rows), ("a.tsv", ROWS), ("a.jsonl", rows)):
        data = load_text(tmp_path / name)
        assert data.labels == ("bad", "good")
        assert samples(data) == sorted(expected)
        assert len(data.test) == 2
    lines = [json.dumps({"text": f"text {n}", "label": float(n % 11)}) for n in range(33)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    assert load_text(tmp_path / "a.jsonl").labels == tuple(map(str, range(11)))


def test_columns_are_named(tmp_path):
    rows = [("x", "one", "uno", "a"), ("y", "two", "dos", "b"), ("z", "three", "tres", "a")]
    path = write_csv(tmp_path / "a.csv", rows, "text,english,spanish,kind")
    data = load_text(path, text=("english", "spanish"), label="kind")
    assert set(data.train.texts + data.test.texts) == {(row[1], row[2]) for row in rows}
    single = load_text(path, text="Spanish", label="Kind")  # in any case
    assert set(single.train.texts + single.test.texts) == {"uno", "dos", "tres"}
    fails("Did you mean 'kind'", path, label="kin")
    fails("no column 'label'", path)
    fails("received 3", path, text=("text", "english", "spanish"))
    fails("or two", write_csv(tmp_path / "b.csv", [("a", "b", "c")], "text,label,text"))
    path = write_csv(tmp_path / "train.csv", [("0", *row) for row in ROWS], "id,text,label")
    test = write_csv(tmp_path / "test.csv", [("0", "a flop"), ("1", "a gem")], "id,text")
    fails("test.csv: no column 'label'", path, test=test)  # of a contest


def test_bad_files(tmp_path):
    for name, content, match in (
        ("a.csv", b"text,label\na,b\nc,b\n", "one class only, b"),
        ("a.csv", b"text,label\na,b\nc,d\n", "held out"),
        ("a.csv", b'text,label\none,"a\nb"\ntwo,"a\nb"\nx,c\ny,c', "labels.txt"),
        ("a.csv", b"text,label\na,b\nc,NaN\n", "line 3: text or label is empty"),
        ("a.csv", b"text,label\na,b\nna\xefve,b\n", "not UTF-8 in line 3"),
        ("a.tsv", "text\tlabel\none\ta\n".encode("utf-16-le"), "NUL character in line 1"),
        ("a.jsonl", b"3", "line 1: expected an object"),
        ("a.jsonl", b'{"text": "a"}\n{"label": "b"}', "line 1: text or label is empty"),
    ):
        (tmp_path / name).write_bytes(content)
        fails(f"{name}.*{match}", tmp_path / name)


def test_folder_of_classes(tmp_path):
    texts = {f"{label}/{n}.TXT": f"{label} {n}" for label in ("neg", "pos") for n in range(10)}
    junk = ("__MACOSX/a/1.txt", ".git/a.txt", "neg/.DS_Store", "readme.md")
    others = ("unsup/0.txt", "loose.TXT", "neg/b.md")
    write_texts(tmp_path, {**texts, **dict.fromkeys((*junk, *others), "x")})
    with warns("3 (loose.TXT, neg/b.md, unsup/0.txt)"):
        data = load_text(str(tmp_path))
    assert data.labels == ("neg", "pos")
    assert [len(data.train), len(data.test)] == [16, 4]
    assert np.bincount(data.test.labels).tolist() == [2, 2]
    assert all(text.startswith(label) for text, label in samples(data))


def test_folders_of_splits(tmp_path):
    texts = {"TRAIN/a/1.txt": "one", "TRAIN/b/2.TXT": "two", "eval/b/3.txt": "three"}
    write_texts(tmp_path, {**texts, "other/4.txt": "four"})
    with warns("1 (other)"):
        data = load_text(str(tmp_path))
    assert samples(data, "train") == [("one", "a"), ("two", "b")]
    assert samples(data, "test") == [("three", "b")]
    (tmp_path / "other").rename(tmp_path / "eval" / "c")
    fails("no training text has the class c", tmp_path)


def test_files_of_splits(tmp_path):
    train, held_out = tmp_path / "Train.CSV", tmp_path / "valid.tsv"
    train.write_text("text,label\none,1.0\ntwo,2\n")
    held_out.write_text("text\tlabel\nthree\t1\n")
    (tmp_path / "sample_submission.csv").touch()
    with warns("1 (sample_submission.csv)"):
        found = load_text(tmp_path)
    for data in (found, load_text(str(train), test=str(held_out))):
        assert (data.labels, data.train.texts) == (("1", "2"), ["one", "two"])
        assert (data.test.texts, data.test.labels.tolist()) == (["three"], [0])


def test_equal_texts_with_several_labels_are_named(tmp_path):
    rows = [*ROWS, ("a gem", "bad"), ("a gem", "good"), ("a bore", "good"), ("so, so fine", "good")]
    with warns("2 (such as 'a gem' in line 6)"):
        load_text(write_csv(tmp_path / "a.csv", rows))


def test_division_is_seeded_and_keeps_equal_texts_together():
    texts = [f"text {n // 2}" for n in range(200)]  # each one twice
    split = TextSplit(texts, [n % 4 < 2 for n in range(200)])
    data = TextData("many", ("a", "b"), split, split)
    held = hold_out(data, share=0.2, seed=3)
    assert [len(held.train), len(held.validation)] == [160, 40]
    assert np.bincount(held.validation.labels).tolist() == [20, 20]
    assert not set(held.train.texts) & set(held.validation.texts)
    assert hold_out(data, 0.2, 3).validation.texts == held.validation.texts
    assert hold_out(data, 0.2, 4).validation.texts != held.validation.texts
    assert held.test is data.test
    with pytest.raises(ValueError, match="many: has validation texts already"):
        hold_out(held)
    with pytest.raises(ValueError, match="share must be between 0 and 1; received"):
        hold_out(data, 1)


def write_split(path, splits, head="text,label,split"):
    """Writes a table of texts of two classes with a column of splits."""
    rows = [(f"{split} {n}", "ab"[n % 2], split) for n, split in enumerate(splits)]
    return write_csv(path, rows, head), [text for text, *_ in rows]


def test_column_split_divides_a_table(tmp_path):
    splits = [word for word in ("TRAIN", "val", "Test set") for _ in range(4)]
    path, texts = write_split(tmp_path / "t.csv", splits, "text,label,Split")
    found = load_text(path)
    chosen, _, split = choose_texts(TextSource(path))
    assert found.train.texts + found.validation.texts + found.test.texts == texts
    assert (chosen.texts, split) == (found.test.texts, "test")
    chosen, *_ = choose_texts(TextSource(path), "all")
    assert len(chosen) == len(texts)
    path, texts = write_split(tmp_path / "whole.csv", ["test"] * 4)
    chosen, _, split = choose_texts(TextSource(path))
    assert (chosen.texts, split) == (texts, "all")


def test_splits_of_a_table_are_none_or_in_all_rows(tmp_path):
    found = load_text(write_split(tmp_path / "t.csv", [""] * 10)[0])
    assert (len(found.train), len(found.test)) == (8, 2)
    for splits, reason in (
        (("train", "extra"), "line 3: split 'extra'"),
        (("train", ""), "line 3: split ''"),
        (("test", "test"), "found the splits test"),
    ):
        fails(reason, write_split(tmp_path / "t.csv", splits)[0])
    both, _ = write_split(tmp_path / "t.csv", ["train"] * 4 + ["test"] * 4)
    train, _ = write_split(tmp_path / "u.csv", ["train"] * 4)
    for files in ((both, train), (train, both)):
        fails("names several splits", files[0], test=files[1])
