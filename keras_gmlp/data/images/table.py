"""Tables of labelled images: CSV and TSV files with the columns `path`, `label` and `split`."""

import dataclasses
import os
import re
from pathlib import Path, PureWindowsPath

from keras_gmlp.data.images.label_sets import find_rarest
from keras_gmlp.utils.csv_tables import find_column, read_rows
from keras_gmlp.utils.errors import first_of, printable
from keras_gmlp.utils.files import why_missing
from keras_gmlp.utils.inputs import TABLES, is_address, name_roles, read_split
from keras_gmlp.utils.labels import check_labels, clean_value

SEVERAL = "|"  # between several labels
NAMED = 10  # rows that an error lists


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a table."""

    place: str  # the table and the line, for errors
    line: str
    path: Path
    labels: tuple[str, ...]  # sorted
    split: str  # a key of `SPLITS`, or "" for none


def is_table(name):
    """Returns whether a data set's name ends like a table's and is no folder's."""
    path = Path(os.path.expanduser(name))
    return path.suffix.lower() in TABLES and not path.is_dir()


def name_folder(name):
    """Returns a data set's name in that of a folder: its last part, `photos-csv` of a table."""
    path = Path(name)
    return path.name.replace(".", "-") if is_table(path) else path.name


def list_table(path):
    """Lists the images in a table."""
    rows, (read, several) = {}, _read_rows(Path(path))
    for row in read:
        if not (row.labels or several):
            raise ValueError(f"{row.place}: label is empty; fill it or remove the row.")
        first = rows.setdefault(os.path.normpath(row.path), row)
        if (row.labels, row.split) != (first.labels, first.split):
            now, before = (
                " in ".join(filter(None, (SEVERAL.join(r.labels) or "no class", r.split)))
                for r in (row, first)
            )
            raise ValueError(
                f"{row.place}: {printable(row.path)} is {printable(now)}; line {first.line} says "
                f"{printable(before)}. Give each image one row."
            )
    rows = sorted(rows.values(), key=lambda row: row.path)
    _require_files(rows)
    splits = _check_splits(path, rows)
    labels = _class_names(path, rows)
    indices = {label: index for index, label in enumerate(labels)}
    found = [tuple(sorted(indices[label] for label in row.labels)) for row in rows]
    sets = tuple(sorted(set(found))) if several else tuple((index,) for index in indices.values())
    numbers = {members: number for number, members in enumerate(sets)}
    found = [numbers[members] for members in found]
    pairs = {split: [[] for _ in range(len(labels) + 1)] for split in splits.values()}
    rarest = find_rarest(found, sets, len(labels)) if several else found
    for row, index, place in zip(rows, found, rarest, strict=True):
        pairs[splits[row.split]][place].append((os.fsencode(row.path), index))
    return labels, pairs, sets if several else None


def _read_rows(path):
    """Returns the rows, a list, and whether images have any number of labels."""
    if not path.is_file():
        missing = why_missing(path, "file")
        raise ValueError(f"{printable(path)}: {missing}; expected a table of images.")
    names, rows = read_rows(path)
    wanted = ("path", "label", "labels", "split")
    columns = {name: find_column(path, names, name) for name in wanted}
    has_commas = path.suffix.lower() == ".tsv" and len(names) == 1 and "," in names[0]
    hint = " It has commas in place of tabs; rename it to .csv." if has_commas else ""
    several = columns["label"] is None and columns["labels"] is not None
    columns |= {"label": columns["labels"]} if several else {}
    for name in ("path", "label"):
        if columns[name] is None:
            raise ValueError(
                f"{printable(path)}: no column {name}; expected path, label and perhaps split, "
                f"found {printable(', '.join(names)) or 'an empty file'}.{hint}"
            )
    several |= any(SEVERAL in values[columns["label"]] for _, values in rows)
    return [_read_row(path, columns, *row) for row in rows], several


def _read_row(path, columns, number, values):
    place = f"{printable(path)}, {number}"
    texts = {name: values[column].strip() for name, column in columns.items() if column is not None}
    if not texts["path"]:
        raise ValueError(f"{place}: path is empty; fill it or remove the row.")
    split, label = texts.get("split", ""), texts["label"]
    labels = tuple(sorted(set(map(clean_value, label.split(SEVERAL))))) if label else ()
    if "" in labels:
        raise ValueError(f"{place}: an empty label in {printable(label)}; remove a {SEVERAL}.")
    for label in labels:
        if label.lower() == "nan":
            raise ValueError(f"{place}: label is {label}, not a class; fill it or remove the row.")
    check_labels(labels, place)
    if split and read_split(split) is None:
        raise ValueError(f"{place}: split {printable(split)}; expected train, test or validation.")
    if is_address(texts["path"]):
        address = printable(texts["path"])
        raise ValueError(f"{place}: {address} is an address; download the image and give its path.")
    line, file = number.removeprefix("line "), path.parent / os.path.expanduser(texts["path"])
    if "\\" in texts["path"] and not file.exists():
        file = path.parent / PureWindowsPath(texts["path"]).as_posix()
    return Row(place, line, file, labels, split and read_split(split))


def _require_files(rows):
    missing = [row for row in rows if not os.path.isfile(row.path)]
    if missing:
        first, *others = sorted(missing, key=lambda row: int(row.line))
        lines = first_of([row.line for row in others], NAMED)
        is_drive = re.search(r"(^|/)[A-Za-z]:/", str(first.path))
        hint = " This is a path of a Windows drive." if is_drive else ""
        state = "no such image file"
        if os.path.exists(first.path):
            state = "a folder, a pipe or a device in place of an image file"
        raise ValueError(
            f"{first.place}: {state}: {printable(first.path)}. Expected a path relative "
            "to the table." + hint + (f" Other lines without their file: {lines}." if lines else "")
        )


def _check_splits(path, rows):
    """Returns the splits of a table, and for each the name of the split that it becomes."""
    splits = {row.split for row in rows}
    if splits <= {""}:
        return {"": ""}
    if "" in splits:
        row = next(row for row in rows if not row.split)
        raise ValueError(
            f"{row.place}: split is empty, but other rows have one; expected train, test or "
            "validation in all rows or in none."
        )
    return name_roles(splits, path)


def _class_names(path, rows):
    """Returns the classes of the training images, sorted."""
    training = [row for row in rows if row.split in ("", "train")]
    labels = tuple(sorted({label for row in training for label in row.labels}))
    if len(labels) < 2:
        found = f"{printable(labels[0])} alone" if labels else "none"
        raise ValueError(
            f"{printable(path)}: expected training images of two or more classes; found {found}."
        )
    known = set(labels)
    for row in rows:
        for label in sorted(set(row.labels) - known):
            raise ValueError(
                f"{row.place}: there is no training image of class {printable(label)}."
            )
    return labels
