"""The tables of the guides that say which files, folders and labels work."""

import itertools
import re
from pathlib import Path

import pytest
from pictures import write_pictures

from keras_gmlp import data
from keras_gmlp.data.text.labelled_texts import load_text
from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.utils.errors import DataWarning

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
COUNT = {"training": 3, "test": 2, "validation": 1}
NAME = {"training": "train", "test": "test", "validation": "validation"}


def table(page, head):
    """Returns the rows of the table with a head, as the codes or the text of a cell, and a text."""
    text = (GUIDES / page).read_text("utf-8")
    lines = text.partition(f"{head}\n")[2].splitlines()[1:]
    cells = [line.strip("|").split("|") for line in itertools.takewhile(str.strip, lines)]
    assert len(cells) > 3
    return [(re.findall("`([^`]+)`", a) or [a.strip()], b.strip()) for a, b in cells]


def write(root, name, split):
    """Writes a folder of two classes of pictures and texts, or a table of texts."""
    if name.endswith("/"):
        names = [f"{name}{label}/{n}" for label in "ab" for n in range(COUNT[split])]
        write_pictures(root, [f"{name}.png" for name in names])
        for path in names:
            (root / f"{path}.TXT").write_text(f"a text {path}")
        return
    delimiter = "\t" if name.endswith("tsv") else ","
    rows = [f"{label} {n}{delimiter}{label}" for n in range(COUNT[split]) for label in "ab"]
    (root / name).write_text("\n".join([f"text{delimiter}label", *rows]))


@pytest.mark.parametrize("page", ["your-images.md", "text.md"])
def test_folders(page, tmp_path):
    for number, (names, outcome) in enumerate(table(page, "| in the folder | becomes |")):
        root = tmp_path / str(number)
        root.mkdir()
        expected = dict(zip(outcome.split(", "), names, strict=False))
        splits = {name: split for split, name in expected.items() if split in COUNT}
        for name in names:
            write(root, name, splits.get(name, "training"))
        # Each kind of data names the files of the other one in a warning.
        for path in root.rglob("*.png" if page == "text.md" else "*.TXT"):
            path.unlink()

        def find(root=root):
            return load_text(root) if page == "text.md" else data.load(root, (4, 4))

        if outcome == "an error":
            with pytest.raises(ValueError, match=re.escape(str(root))):
                find()
        elif splits:
            found = find()
            assert found.labels == ("a", "b")
            for split in splits.values():
                assert len(getattr(found, NAME[split])) == 2 * COUNT[split], names
        else:
            assert outcome.startswith("classes; every fifth")
            with pytest.warns(DataWarning, match="are taken for classes"):  # all hold a/ and b/
                assert find().labels == tuple(name.strip("/") for name in names)


def test_labels(tmp_path):
    for (label, *_), outcome in table("your-images.md", "| label in a table | class |"):
        rows = "".join(f"a {n},{label}\nb {n},b\n" for n in range(2))
        (tmp_path / "a.csv").write_text(f"text,label\n{rows}")
        write_pictures(tmp_path, [f"{n}.png" for n in range(10)])
        rows = "".join(f"{n}.png,{label if n < 5 else 'b'}\n" for n in range(10))
        (tmp_path / "b.csv").write_text(f"path,label\n{rows}")
        for find in (lambda: load_text(tmp_path / "a.csv"), lambda: data.load(tmp_path / "b.csv")):
            if outcome == "an error":
                with pytest.raises(ValueError, match=r"label is (empty|NaN)"):
                    find()
            else:
                assert find().labels == tuple(sorted({outcome.strip("`"), "b"}))


def test_languages_keep_their_marks():
    rows = {
        text: outcome.strip("`")
        for (text,), outcome in table("text.md", "| text | its tokens as text |")
    }
    tokenizer = Tokenizer.train(list(rows), 256)
    assert {text: tokenizer.decode(tokenizer.encode(text).ids) for text in rows} == rows
