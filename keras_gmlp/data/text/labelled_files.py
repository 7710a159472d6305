"""Labelled texts in files: CSV, TSV, JSON lines, and folders of text files by class."""

import dataclasses
import json
import math
from collections import Counter
from pathlib import Path

from keras_gmlp.utils.csv_tables import find_column, read_rows, read_text
from keras_gmlp.utils.errors import check_text, did_you_mean, first_of, printable, shortened, warn
from keras_gmlp.utils.files import parse_json
from keras_gmlp.utils.inputs import (
    JSON_LINES,
    TABLES,
    list_suffix,
    list_visible_files,
    list_visible_folders,
    name_column_roles,
    read_split,
    warn_left_out,
)
from keras_gmlp.utils.labels import clean_label, clean_value

SUFFIXES = (*TABLES, *JSON_LINES)
UNLABELLED = "unsup"  # the folder for texts without a class in the film reviews of Maas et al.


@dataclasses.dataclass(frozen=True)
class LabelledRows:
    """What a file or a folder holds: texts or pairs, and for each its class and its split."""

    texts: list
    labels: list
    columns: tuple = (None, None)  # of a table: those of its texts and its label
    splits: list | None = None  # keys of `SPLITS`, or `None` for a table without that column

    @property
    def divided(self):
        """Whether there are rows of several splits."""
        return len(set(self.splits or ())) > 1

    def take(self, split):
        """Returns the rows of a split."""
        places = [place for place, found in enumerate(self.splits) if found == split]
        kept = ([each[place] for place in places] for each in (self.texts, self.labels))
        return LabelledRows(*kept, self.columns)

    def divide(self, name):
        """Returns the rows for training and for testing; those for validation are left out."""
        otherwise = "Remove the column split to hold out a fifth of each class."
        roles = name_column_roles(set(self.splits), name, "texts", otherwise)
        parts = {role: self.take(split) for split, role in roles.items()}
        if "validation" in parts:
            warn(
                f"{printable(name)}: texts left out, of the split validation: "
                f"{len(parts['validation'].texts):,}. --validation holds out training texts."
            )
        return parts["train"], parts["test"]


def read_table(path, text=None, label=None):
    """Reads the `LabelledRows` of a CSV, TSV or JSON lines file."""
    suffix = path.suffix.lower()
    if suffix in TABLES:
        names, rows = read_rows(path)
    else:
        names, rows = _read_objects(path, read_text(path))
    if not rows:
        raise ValueError(f"{path}: no rows; expected one for each text.")
    texts, label = choose_columns(names, text, label, path)
    splits = _read_splits(path, names, rows, (*texts, label))
    found, labels = [], []
    for place, row in rows:
        values = []
        for name in (*texts, label):
            cell = f"{path}, {place}: {name}"
            value = _as_text(row.get(name), cell)
            if name == label:
                value = "" if value.strip().lower() == "nan" else clean_value(value)
            if not value.strip():
                raise ValueError(f"{cell} is empty or NaN; fill it or remove the row.")
            if "\0" in value:  # of JSON, which may spell it; `read_text` finds others
                raise ValueError(f"{cell} has a NUL character, which no text has; remove it.")
            values.append(check_text(value, cell))
        *parts, value = values
        found.append(tuple(parts) if len(parts) > 1 else parts[0])
        labels.append(value)
    if len(labels) >= 20 and len(set(labels)) > len(labels) // 2:
        raise ValueError(
            f"{path}: column {label!r} has {len(set(labels)):,} classes in {len(labels):,} rows; "
            "name the column of the labels."
        )
    _warn_of_contradictions(path, found, labels, [place for place, _ in rows])
    return LabelledRows(found, labels, (texts, label), splits)


def _read_splits(path, names, rows, taken):
    """Returns the split of each row, or `None` for a table without a column `split`."""
    column = find_column(path, [name for name in names if name not in taken], "split")
    values = [str(row.get(column) or "").strip() for _, row in rows]
    if not any(values):
        return None
    found = [read_split(value) for value in values]
    if None in found:
        first = found.index(None)
        received = printable(shortened(values[first], 40))
        raise ValueError(
            f"{path}, {rows[first][0]}: split '{received}'; expected "
            "train, test or validation in all rows. Rename the column if it means something else."
        )
    return found


def choose_columns(names, text=None, label=None, place=""):
    """Returns the columns of the text, a tuple of one or two names, and that of the label.

    By default they are `text` and `label`, in any case; one of them may have another name if there
    is no further column.
    """
    text = (text,) if isinstance(text, str) else tuple(text or ())
    advice = ""
    if Path(place).suffix.lower() in TABLES:  # its first text may have been taken for the header
        advice = " If that is the first text, write a header above it, such as text,label."
    if len(text) > 2:
        raise ValueError(f"expected one column of texts or two of pairs; received {len(text)}.")
    for name in filter(None, (*text, label)):
        if name not in names:
            hint = did_you_mean(name, names) or advice
            raise ValueError(
                f"{place}: no column {name!r}; it has {printable(', '.join(names))}.{hint}"
            )
    free = [name for name in names if name not in (*text, label) and name.lower() != "split"]
    label = label or find_column(place, free, "label")
    text = text or tuple(filter(None, [find_column(place, free, "text")]))
    rest = [name for name in free if name not in (*text, label)]
    if len(rest) == 1 and label:
        text = text or tuple(rest)
    elif len(rest) == 1 and text:
        label = rest[0]
    if not text or not label:
        missing, option = ("texts", "--column") if not text else ("labels", "--label")
        raise ValueError(
            f"{place}: which column holds the {missing}, of {printable(', '.join(names))}? Name it "
            f"({option}).{advice}"
        )
    return text, label


def read_folder(root):
    """Reads a folder with one folder of `.txt` files for each class."""
    texts, labels, places, others = [], [], [], []
    folders = [path for path in list_visible_folders(root) if path.name != UNLABELLED]
    outside = list_suffix(root, "")
    if (root / UNLABELLED).is_dir():
        outside += list_visible_files(root / UNLABELLED)
    for folder in folders:
        for path in list_visible_files(folder):
            if path.suffix.lower() != ".txt":
                others.append(path)
                continue
            text = read_text(path)
            if not text.strip():
                raise ValueError(f"{path}: empty; expected a text. Remove it.")
            texts.append(text)
            labels.append(clean_label(folder.name))
            places.append(printable(path.relative_to(root)))
    if not texts:
        names = [printable(p.relative_to(root)) for p in (*outside, *others)]
        hint = f" Found {len(names):,} other files ({first_of(names, 3)})." if names else ""
        raise ValueError(
            f"{root}: no texts; lay them out as {root}/<class name>/<text>.txt, or give a CSV, "
            f"TSV or JSON lines file.{hint}"
        )
    warn_left_out(root, others, "which are not .txt")
    warn_outside(root, outside)
    _warn_of_contradictions(root, texts, labels, places)
    return LabelledRows(texts, labels)


def warn_outside(root, paths):
    """Warns of texts in no class folder, which are left out."""
    texts = [path for path in paths if path.suffix.lower() == ".txt"]
    warn_left_out(root, texts, "outside the class folders")


def _warn_of_contradictions(source, texts, labels, places):
    """Warns of equal texts with different labels; a place is the row or the file of a text."""
    first, wrong = {}, {}
    for text, label, place in zip(texts, labels, places, strict=True):
        known, where = first.setdefault(text, (label, place))
        if label != known:
            wrong.setdefault(text, f"{where} is {known} and {place} is {label}")
    if wrong:
        text, example = next(iter(wrong.items()))
        text = text if isinstance(text, str) else " | ".join(text)
        warn(
            f"{printable(source)}: texts with several labels: {len(wrong):,} (such as "
            f"{shortened(text[:200], 40)!r}: {printable(example)}). Correct or remove them."
        )


def _read_objects(path, content):
    """Returns the names of the members and (place, dictionary) for each line of JSON."""
    rows = [
        (f"line {n}", parse_json(line, f"{path}, line {n}", object_pairs_hook=_unique))
        for n, line in enumerate(content.split("\n"), 1)
        if line.strip()
    ]
    for place, row in rows:
        if not isinstance(row, dict):
            raise ValueError(
                f"{path}, {place}: expected an object such as "
                f'{{"text": "...", "label": "..."}}; received {type(row).__name__}.'
            )
    names = dict.fromkeys(name for _, row in rows for name in row)
    return list(names), rows


def _unique(pairs):
    """Returns the members of a JSON object as a dictionary; a repeated name is an error."""
    members = dict(pairs)
    if len(members) < len(pairs):
        repeated = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"an object has the name {repeated!r} twice")
    return members


def _as_text(value, place):
    """Returns a value of a table or a JSON file as text; none for null and NaN."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, list | dict):
        raise ValueError(f"{place} is a {type(value).__name__}; expected text or a number.")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value)
