"""Labelled texts in files: CSV, TSV, JSON lines, and folders of text files by class."""

import json
from pathlib import Path
from typing import NamedTuple

from keras_gmlp.utils.errors import did_you_mean, printable, shortened, warn
from keras_gmlp.utils.files import parse_json
from keras_gmlp.utils.inputs import (
    JSON_LINES,
    TABLES,
    find_splits,
    list_suffix,
    list_visible_files,
    list_visible_folders,
    read_split,
    warn_left_out,
)
from keras_gmlp.utils.labels import SEVERAL, clean_label, clean_values
from keras_gmlp.utils.tables import find_column, read_rows
from keras_gmlp.utils.text_files import read_lines, read_text

SUFFIXES = (*TABLES, *JSON_LINES)
UNLABELLED = "unsup"  # the folder for texts without a class in the film reviews of Maas et al.


class Row(NamedTuple):
    """A labelled text, or a pair of texts."""

    text: str | tuple
    labels: tuple[str, ...]
    place: str  # the line or the file that it is in
    split: str | None = None  # a key of `SPLITS`
    several: bool = False  # whether it may have any number of labels


def read_all_rows(path, text=None, label=None, test=None):
    """Returns the rows of a file or a folder, which may be divided, or of two files."""
    parts = {"train": path, "test": Path(test).expanduser()} if test else find_parts(path)
    found = {split: _read_part(part, text, label) for split, part in parts.items()}
    rows = next(iter(found.values()))
    if len(parts) == 1:
        return rows
    for split, part in found.items():
        if len({row.split for row in part}) > 1:
            raise ValueError(
                f"{parts[split]}: its texts are those for {split}, and its column split names "
                "several splits; leave one out."
            )
    return [row._replace(split=split) for split, part in found.items() for row in part]


def find_parts(path):
    """Returns the files or folders of a place by split; itself as `None` if it is not divided."""
    if not path.is_dir():
        return {None: path}
    folders, files = list_visible_folders(path), list_suffix(path, SUFFIXES)
    parts = find_splits(path, folders) or find_splits(path, files)
    if not parts:
        return {None: path}
    others = [each for each in (*folders, *files) if each not in parts.values()]
    warn_left_out(path, others + list_suffix(path, ".txt"), "which are of no split")
    return parts


def _read_part(path, text, label):
    """Returns the rows of a file, or of a folder by class."""
    if not (path.is_dir() or path.suffix.lower() in SUFFIXES):
        raise ValueError(f"{path}: expected a folder or a file in {', '.join(SUFFIXES)}.")
    rows = _read_folder(path) if path.is_dir() else _read_table(path, text, label)
    if not rows:
        raise ValueError(
            f"{path}: no texts; lay them out as {path}/<class name>/<text>.txt, or give a CSV, TSV "
            "or JSON lines file."
        )
    for row in rows:
        texts = (row.text,) if isinstance(row.text, str) else row.text
        if "" in row.labels or not all(map(str.strip, texts)):
            raise ValueError(f"{path}, {row.place}: text or label is empty; fill or remove it.")
    labels = {}
    wrong = [row for row in rows if labels.setdefault(row.text, row.labels) != row.labels]
    if wrong:
        text = shortened(repr(wrong[0].text), 60)
        warn(
            f"{printable(path)}: equal texts with different labels: {len(wrong):,} (such as {text} "
            f"in {printable(wrong[0].place)}). Correct or remove them."
        )
    return rows


def _read_table(path, text, label):
    """Returns the rows of a CSV, TSV or JSON lines file."""
    names, rows = read_rows(path) if path.suffix.lower() in TABLES else _read_objects(path)
    several = label is None and find_column(path, names, "label") is None
    texts, label = choose_columns(names, text, label, path)
    given = [row.get(label) for _, row in rows]
    several |= any(SEVERAL in (value or "") for value in given)
    column = find_column(path, [name for name in names if name not in (*texts, label)], "split")
    splits = [row.get(column, "").strip() for _, row in rows]
    found = []
    for (place, row), split, value in zip(rows, splits, given, strict=True):
        if any(splits) and read_split(split) is None:
            raise ValueError(
                f"{path}, {place}: split {split[:40]!r}; expected train, test or validation in all "
                "rows. Rename the column if it means something else."
            )
        parts = tuple(row.get(column, "") for column in texts)
        part = parts if len(parts) > 1 else parts[0]
        # An empty field says that no label applies, a missing member of JSON does not.
        none = several and value is not None and not value.strip()
        labels = () if none else clean_values((value or "").split(SEVERAL))
        found.append(Row(part, labels, place, read_split(split), several))
    return found


def _read_objects(path):
    """Returns the names of the members and (place, dict of texts) for each line of JSON."""
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            place = f"line {number}"
            row = parse_json(line, f"{path}, {place}")
            if not isinstance(row, dict):
                raise ValueError(f"{path}, {place}: expected an object with a text and a label.")
            known = {name: value for name, value in row.items() if value is not None}
            rows.append((place, {name: _as_text(value) for name, value in known.items()}))
    return list(dict.fromkeys(name for _, row in rows for name in row)), rows


def _as_text(value):
    """Returns a value of JSON as a field of a table: a list as several labels."""
    if isinstance(value, list):
        return SEVERAL.join(map(_as_text, value))
    return value if isinstance(value, str) else json.dumps(value)


def choose_columns(names, text=None, label=None, place=""):
    """Returns the columns of the text, a tuple of one or two names, and that of the label."""
    texts = (text,) if isinstance(text, str) else tuple(text or ("text",))
    if len(texts) > 2:
        raise ValueError(f"expected one column of texts or two of pairs; received {len(texts)}.")
    columns = []
    if label is None and not find_column(place, names, "label"):
        label = find_column(place, names, "labels")
    for name in (*texts, label or "label"):
        found = name if name in names else find_column(place, names, name)
        if names.count(found) != 1:
            raise ValueError(
                f"{place}: no column {name!r}, or two; it has {printable(', '.join(names))}. Name "
                f"the columns of texts and labels (--column, --label).{did_you_mean(name, names)}"
            )
        columns.append(found)
    return tuple(columns[:-1]), columns[-1]


def _read_folder(root):
    """Returns the rows of a folder with one folder of `.txt` files for each class."""
    rows, others = [], list_suffix(root, ".txt")
    for folder in list_visible_folders(root):
        for path in list_visible_files(folder):
            if path.suffix.lower() != ".txt" or folder.name == UNLABELLED:
                others.append(path)
                continue
            place = printable(path.relative_to(root))
            rows.append(Row(read_text(path), (clean_label(folder.name),), place))
    warn_left_out(root, others, "which are not .txt in a class folder")
    return rows
