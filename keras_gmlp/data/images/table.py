"""Tables of labelled images: CSV and TSV files with the columns `path`, `label` and `split`."""

import os
from pathlib import Path, PureWindowsPath

import numpy as np

from keras_gmlp.data.label_sets import find_rarest
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.files import why_missing
from keras_gmlp.utils.inputs import TABLES, find_roles, read_split
from keras_gmlp.utils.labels import SEVERAL, clean_values
from keras_gmlp.utils.tables import find_column, read_rows


def is_table(name):
    """Returns whether a data set's name ends like a table's and is not a folder's."""
    path = Path(os.path.expanduser(name))
    return path.suffix.lower() in TABLES and not path.is_dir()


def name_folder(name):
    """Returns a data set's name in that of a folder: its last part, `photos-csv` of a table."""
    path = Path(name)
    return path.name.replace(".", "-") if is_table(path) else path.name


def list_table(path):
    """Returns the classes, the pairs of a path and an index by split, and the sets of classes."""
    # Without splits the only one is `""`. Sets are `None` where images have one label.
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{printable(path)}: {why_missing(path, 'file')}.")
    names, rows = read_rows(path)
    columns = {name: find_column(path, names, name) for name in ("path", "label", "split")}
    several = columns["label"] is None
    columns["label"] = columns["label"] or find_column(path, names, "labels")
    for name in ("path", "label"):
        if columns[name] is None:
            raise ValueError(
                f"{printable(path)}: no column {name}; expected path, label and perhaps split, "
                f"found {printable(', '.join(names)) or 'an empty file'}."
            )
    several |= any(SEVERAL in values[columns["label"]] for _, values in rows)
    found = {}  # for each path its labels, its split and the row's place
    for line, values in rows:
        place = f"{printable(path)}, {line}"
        texts = {name: values[column].strip() for name, column in columns.items() if column}
        file, label, split = (texts.get(name, "") for name in ("path", "label", "split"))
        labels = () if several and not label else clean_values(label.split(SEVERAL))
        if "" in labels:
            label = printable(label) or "empty"
            raise ValueError(f"{place}: label is {label}; expected the name of a class.")
        if split and read_split(split) is None:
            split = printable(split)
            raise ValueError(f"{place}: split is {split}; expected train, test or validation.")
        given, file = (labels, split and read_split(split)), _find_file(path, place, file)
        *first, before = found.setdefault(file, (*given, line))
        if given != tuple(first):
            raise ValueError(
                f"{place}: {printable(file)} has another label or split in {before}. Give each "
                "image one row."
            )
    splits = {split for _, split, _ in found.values()}
    if "" in splits and len(splits) > 1:
        line = next(line for _, split, line in found.values() if not split)
        raise ValueError(f"{printable(path)}, {line}: split is empty, but other rows have one.")
    roles = {"": ""} if splits <= {""} else find_roles(splits, path)
    classes = _list_classes(path, found.values())
    sets = {labels for labels, _, _ in found.values()} if several else {(n,) for n in classes}
    numbers = {labels: number for number, labels in enumerate(sorted(sets))}
    members = tuple(tuple(map(classes.index, labels)) for labels in numbers)
    files = sorted(found, key=Path)
    indices = [numbers[found[file][0]] for file in files]
    pairs = {role: [] for role in roles.values()}
    # Class by class, as the images in class folders are.
    for place in np.argsort(find_rarest(indices, members, len(classes)), kind="stable"):
        file = files[place]
        pairs[roles[found[file][1]]].append((os.fsencode(file), indices[place]))
    return classes, pairs, members if several else None


def _find_file(table, place, text):
    """Returns the path of the image that a row names, relative to the table."""
    file = table.parent / os.path.expanduser(text)
    if "\\" in text and not file.exists():
        file = table.parent / PureWindowsPath(text).as_posix()
    if not file.is_file():
        raise ValueError(
            f"{place}: {why_missing(file, 'image file')}: {printable(file)}. Expected a path "
            "relative to the table."
        )
    return os.path.normpath(file)


def _list_classes(path, rows):
    """Returns the classes of the training images, sorted."""
    trained = {label for labels, split, _ in rows if split in ("", "train") for label in labels}
    if len(trained) < 2:
        raise ValueError(
            f"{printable(path)}: expected training images of two or more classes; found "
            f"{printable(*trained) + ' only' if trained else 'none'}."
        )
    if missing := {label for labels, _, _ in rows for label in labels} - trained:
        raise ValueError(
            f"{printable(path)}: there is no training image of class {printable(min(missing))}."
        )
    return tuple(sorted(trained))
