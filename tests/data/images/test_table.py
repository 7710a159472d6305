"""Tables of labelled images, compared with the same images in folders."""

import numpy as np
import pytest
from pictures import write_pictures
from refused import refused

from keras_gmlp import data
from keras_gmlp.evaluation.labelled import LabelledImages

SPLITS = {"train": 6, "test": 2, "val": 1}


@pytest.fixture
def photos(tmp_path):
    """Eleven pictures of 2 bursts for each of two classes, a different red each."""
    for number in range(22):
        name = f"photos/{'ba'[number // 11]}/burst{number % 2}_{number:02}.png"
        write_pictures(tmp_path, [name], (number, 0, 0))
    return tmp_path / "photos"


def write(path, rows, head="path,label", **options):
    path.write_text("\n".join([head, *rows]) + "\n", **options)
    return path


def make_table(photos, head="path,label", **options):
    """Writes a table of the pictures, in another order than that of the files."""
    paths = sorted(photos.rglob("*.png"), reverse=True)
    rows = [f"{path.relative_to(photos.parent)},{path.parent.name}" for path in paths]
    return write(photos.parent / "labels.csv", rows, head, **options)


def contents(opened):
    """Returns the class names, and the paths and class indices of all splits."""
    found = {name: (s.paths, s.labels.tolist()) for name, s in opened.splits().items()}
    return opened.labels, found


@pytest.mark.parametrize("groups", [None, r"[ab]/burst\d"])
def test_table_equals_its_folder(photos, groups):
    table = make_table(photos)
    folder, tabled = (data.load(name, (4, 4), groups=groups) for name in (photos, str(table)))
    assert contents(tabled) == contents(folder)
    assert tabled.name == str(table)
    held = [data.hold_out(opened, 0.2) for opened in (folder, tabled)]
    assert contents(held[0]) == contents(held[1])
    np.testing.assert_array_equal(*(opened.train.arrays()[0] for opened in held))


def test_groups_of_several_labels_hold_out_the_rare_ones(tmp_path):
    # "rare" comes with another label in each of its five groups.
    labels = [f"rare|{i}" for i in range(5)] + [str(i % 5) for i in range(40)]
    rows = [f"burst{group}/{i}.png,{name}" for group, name in enumerate(labels) for i in range(2)]
    for number, row in enumerate(rows):
        write_pictures(tmp_path, [row.split(",")[0]], (number, 0, 0))
    opened = data.load(write(tmp_path / "t.csv", rows), (4, 4), groups=r"burst\d+")
    shown = opened.label_rows()[opened.test.labels].sum(axis=0)
    assert shown[opened.labels.index("rare")] == 2  # one of five groups
    assert len(opened.test) == 2 * (1 + 5 * 2)  # two of the eight groups of each other label


@pytest.mark.parametrize("test", ["test", ""])
def test_table_equals_folders_of_splits(tmp_path, test):
    rows, number = [], 0
    names = {name: count for name, count in SPLITS.items() if test or name != "test"}
    for split, count in names.items():
        for label in "ab":
            for _ in range(count):
                name = f"photos/{split}/{label}/{number:02}.png"
                write_pictures(tmp_path, [name], (number, 0, 0))
                rows.append(f"{split.title()};{label};{name};x,y")
                number += 1
    table = write(tmp_path / "t.csv", rows[::-1], "Split;label;path;note", encoding="utf-8-sig")
    folder, tabled = (data.load(name, (4, 4)) for name in (tmp_path / "photos", table))
    assert contents(tabled) == contents(folder)
    assert set(tabled.splits()) == {"train", "test", *(["validation"] if test else [])}
    with pytest.raises(ValueError, match="such as '2', have training and test images"):
        data.load(table, groups=r"(.)\.png")


def test_tab_separated_table_with_repeated_rows(photos):
    lines = make_table(photos).read_text().replace(",", "\t").splitlines()
    table = write(photos.parent / "t.TSV", [*lines[1:], "./" + lines[2]], lines[0])
    assert contents(data.load(table)) == contents(data.load(photos))


A, B = "photos/a/burst1_11.png,a", "photos/b/burst0_00.png,b"
FOUR = [A, A.replace("1_11", "0_12"), B, B.replace("0_00", "1_01")]
GONE = ["gone.png,a", A, "photos,b", *[f"{i},b" for i in range(20)]]
UNKNOWN = [f"{FOUR[0]},train", f"{FOUR[2]},train", f"{FOUR[3][:-1]}c,test"]


def test_mistakes_are_one_line(photos):
    for head, rows, reason in (
        ("file,label", [A, B], "no column path"),
        ('path,"a\nb"', [A, B], r"no column label; .* found path, a\\nb"),
        ("path,label", [], "two or more classes; found none"),
        ("path,label", [A, ",b"], "line 3: not an? image file"),
        ("path,label", [A, B, B[:-1]], "line 4: label is empty"),
        ("path,label", [A, B + "|"], "line 3: label is b"),
        ("path,label", [A, B[:-1] + '"b\nc"'], "cannot hold the class name"),
        ("path,label", [A + ",a"], "line 2: expected 2 columns"),
        ("path,label", [A, B, "./" + A[:-1] + "b"], "line 4: .*11.png has another label .* line 2"),
        ("path,label", GONE, r"line 2: no such image file: /\S+/gone.png"),
        ("path,label,split", [A + ",train", B + ","], "line 3: split is empty"),
        ("path,label,split", [A + ",extra", B + ",train"], "line 2: split is extra"),
        ("path,label", [A, B[:-1] + "NaN"], "line 3: label is NaN"),
        ("path,label,split", [A + ",test", A + ",train"], "11.png has another .* split in line 2"),
        ("path,label,split", UNKNOWN, "no training image of class c"),
    ):
        table = write(photos.parent / "labels.csv", rows, head)
        with refused(reason):
            data.load(table)
    with refused("no validation images"):
        LabelledImages(str(make_table(photos)), "validation")
    table.write_bytes(b"path,label\nphotos/\xe4.png,a\n")
    with refused("not UTF-8 in line 2"):
        data.load(table)


def test_labels_and_paths_as_spreadsheets_write_them(photos):
    paths = [str(path.relative_to(photos.parent)) for path in sorted(photos.rglob("*.png"))]
    labels = ["1", "1.0", " 1", "2.0"] * 5
    rows = [f"{p},{label},Training" for p, label in zip(paths, labels, strict=False)]
    rows = [row.replace("/", "\\") for row in rows] + [f"{paths[-1]},2,Testing"]
    opened = data.load(write(photos.parent / "labels.csv", rows, "path,label,split"), (4, 4))
    assert opened.labels == ("1", "2")
    assert np.bincount(opened.train.labels).tolist() == [15, 5]
