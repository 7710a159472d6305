"""Findings that are planted in a folder of pictures."""

import csv
import json
import shutil

import numpy as np
import pytest
from pictures import crop, scene
from PIL import Image, ImageEnhance

from keras_gmlp.inspection.check import check_folder
from keras_gmlp.utils.files import hash_file


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder with train and test, and one finding of each kind."""
    root, rng = tmp_path_factory.mktemp("data") / "photos", np.random.default_rng(0)
    for split, count in (("train", 12), ("test", 6)):
        for label, shade in (("dark", 0.3), ("light", 1.0)):
            for number in range(count):
                path = root / split / label / f"{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                ImageEnhance.Brightness(scene(rng)).enhance(shade).save(path)
    (root / "train/few").mkdir()
    scene(rng).save(root / "train/few/0.png")
    shutil.copy(root / "train/dark/0.png", root / "test/dark/copy.png")
    crop(Image.open(root / "train/light/1.png")).save(root / "train/dark/moved.png")
    for name in ("train/dark/broken.jpg", "test/light/empty.png"):
        (root / name).write_bytes(b"broken" * name.startswith("train"))
    (root / "notes.txt").write_text("not an image")
    return root


def test_each_kind_is_found_once(photos):
    report = check_folder(photos)
    assert (report.pictures, report.classes) == (41, 3)
    found = {}
    for finding in report.findings:
        found.setdefault(finding.finding, []).append(finding)
    assert {f.path.name for f in found["unreadable"]} == {"broken.jpg", "empty.png"}
    assert all(f.note.startswith("not an image") for f in found["unreadable"])
    (exact,) = found["exact duplicate"]
    assert (exact.path, exact.note) == (photos / "test/dark/copy.png", "across splits")
    assert exact.other == str(photos / "train/dark/0.png")
    (near,) = found["near duplicate"]
    assert {near.path.name, near.other.split("/")[-1]} == {"1.png", "moved.png"}
    assert near.note == "different classes"
    assert [(f.label, f.score) for f in found["few pictures"]] == [("few", 1)]
    (imbalance,) = found["imbalance"]
    assert imbalance.score == 20
    assert imbalance.note == "dark has 20 pictures, few has 1"


def test_model_features_judge_labels(photos):
    asked = []

    def embed(paths):
        asked.extend(paths)
        # One picture has the features of the other class.
        dark = [("dark" in p.parts) != (p.name == "5.png" and "train" in p.parts) for p in paths]
        return np.array(dark, "float32")[:, None] * [1.0, -1.0] + 0.01 * np.eye(2)[0]

    report = check_folder(photos, embed=embed)
    suspects = [f for f in report.findings if f.finding == "label"]
    assert {(f.path.name, f.label, f.other) for f in suspects} == {
        ("5.png", "dark", "light"),
        ("5.png", "light", "dark"),
    }
    assert report.judged
    assert len(asked) == 38  # readable ones in classes of five or more


def test_program_writes_findings_and_changes_nothing(photos, tmp_path, app):
    before = {path: hash_file(path) for path in photos.rglob("*") if path.is_file()}
    arguments = [photos, "--out", tmp_path, "--model", "none"]
    code, text, _ = app("check_data", *arguments)
    assert (code, "pictures          41 in 3 classes\n" in text) == (1, True)
    summary = json.loads(app("check_data", *arguments, "--json")[1])
    assert summary["findings"]["unreadable"] == 2
    assert summary["across_splits"] == summary["different_classes"] == 1
    with open(tmp_path / "findings.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(summary["findings"].values())
    assert rows[0]["path"].endswith("broken.jpg")
    with Image.open(tmp_path / "findings.png") as gallery:
        assert gallery.width > 500
    after = {path: hash_file(path) for path in photos.rglob("*") if path.is_file()}
    assert after == before


def test_program_finds_nothing(tmp_path, app, monkeypatch):
    rng = np.random.default_rng(0)
    for label, shade in (("dark", 0.2), ("light", 1.0)):
        (tmp_path / "clean" / label).mkdir(parents=True)
        for number in range(10):
            image = ImageEnhance.Brightness(scene(rng)).enhance(shade)
            image.save(tmp_path / "clean" / label / f"{number}.png")
    monkeypatch.chdir(tmp_path)
    assert app("check_data", "clean", "--model", "none")[0] == 0
    table = (tmp_path / "runs/check-clean/findings.csv").read_text()
    assert table == "path,class,finding,other,score,note\n"
