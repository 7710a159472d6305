"""The tables of the guides that say which files, folders and labels work."""

import itertools
import re
from pathlib import Path

import pytest
from pictures import write_pictures

from keras_gmlp import data
from keras_gmlp.data.images.find_images import find_images
from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.data.text import Tokenizer, load_text
from keras_gmlp.utils.environment import is_installed
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


def test_suffixes_of_images(tmp_path):
    write_pictures(tmp_path, ["a.png"])
    kept = {tmp_path / "a.png"}
    for suffixes, outcome in table("your-images.md", "| files | are |"):
        for suffix in suffixes:
            for case in (str.lower, str.upper) if suffix.startswith(".") else (str,):
                name = f"b{case(suffix)}" if outcome[:4] in ("read", "left") else suffix
                if outcome == "read, in upper and lower case":
                    kept |= {tmp_path / name}
                    write_pictures(tmp_path, [name])
                    assert read_image(tmp_path / name, (4, 4, 3)).shape == (4, 4, 3)
                elif suffix.endswith("/"):
                    write_pictures(tmp_path, [f"{suffix}a.png"])
                elif outcome.startswith("left out"):
                    (tmp_path / name).touch()
                    with pytest.warns(DataWarning, match=re.escape(f"1 ({name})")):
                        find_images(tmp_path)
                    (tmp_path / name).unlink()
                elif outcome == "ignored":
                    (tmp_path / name).touch()
                elif not is_installed("pillow_heif"):
                    (tmp_path / name).touch()
                    with pytest.warns(DataWarning, match="pip install pillow-heif"):
                        find_images(tmp_path)
                    (tmp_path / name).unlink()
    assert set(find_images(tmp_path)) == kept


def test_labels(tmp_path):
    for (label, *_), outcome in table("your-images.md", "| label in a table | class |"):
        (tmp_path / "a.csv").write_text("text,label\n" + f"one,{label}\ntwo,b\n" * 2)
        write_pictures(tmp_path, [f"{n}.png" for n in range(10)])
        rows = "".join(f"{n}.png,{label if n < 5 else 'b'}\n" for n in range(10))
        (tmp_path / "b.csv").write_text(f"path,label\n{rows}")
        for find in (lambda: load_text(tmp_path / "a.csv"), lambda: data.load(tmp_path / "b.csv")):
            if outcome == "an error":
                with pytest.raises(ValueError, match="label is"):
                    find()
            else:
                assert find().labels == tuple(sorted({outcome.strip("`"), "b"}))


def test_forms_of_tables(tmp_path):
    contents = {
        "UTF-8": "text,label\né,a\nö,b\n",
        "UTF-8 with a byte order mark": "\ufefftext,label\né,a\nö,b\n",
        "UTF-16": "text,label\né,a\nö,b\n",
        ";": "text;label\né;a\nö;b\n",
        "a tab between the columns": "text\tlabel\né\ta\nö\tb\n",
        '"': 'text,label\n"é,a\nö,b\n',
        "no header": "é,a\nö,b\n",
    }
    path = tmp_path / "a.csv"
    rows = {key: outcome for (key, *_), outcome in table("text.md", "| file | is |")}
    assert set(rows) == set(contents)
    for key, outcome in rows.items():
        encoding = key if key == "UTF-16" else "UTF-8"
        path.write_text(contents[key], encoding)
        if outcome == "read":
            assert load_text(path, test=path).test.texts == ["é", "ö"]
        else:
            with pytest.raises(ValueError, match=outcome.split()[-1]):
                load_text(path)


def test_languages_keep_their_marks():
    rows = {
        text: outcome.strip("`")
        for (text,), outcome in table("text.md", "| text | its tokens as text |")
    }
    tokenizer = Tokenizer.train(list(rows), 256)
    assert {text: tokenizer.decode(tokenizer.encode(text).ids) for text in rows} == rows
