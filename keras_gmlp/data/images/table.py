"""Tables of labelled images: CSV and TSV files with the columns `path`, `label` and `split`."""

import os
from pathlib import Path, PureWindowsPath

from keras_gmlp.data.images.label_sets import find_rarest
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.files import why_missing
from keras_gmlp.utils.inputs import TABLES, is_address, name_roles, read_split
from keras_gmlp.utils.labels import check_labels, clean_value
from keras_gmlp.utils.tables import find_column, read_rows

SEVERAL = "|"  # between several labels


def is_table(name):
    """Returns whether a data set's name ends like a table's and is no folder's."""
    path = Path(os.path.expanduser(name))
    return path.suffix.lower() in TABLES and not path.is_dir()


def name_folder(name):
    """Returns a data set's name in that of a folder: its last part, `photos-csv` of a table."""
    path = Path(name)
    return path.name.replace(".", "-") if is_table(path) else path.name


def list_table(path):
    """Lists the images in a table.

    Returns:
        The class names; for each split the pairs of a path and an index by class, `""` if there
        are no splits; and the sets of classes that are the indices, or `None` for one label each.
    """
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
        file = _find_file(path, place, texts["path"])
        label, split = texts["label"], texts.get("split", "")
        if not (label or several):
            raise ValueError(f"{place}: label is empty; fill it or remove the row.")
        labels = tuple(sorted(set(map(clean_value, label.split(SEVERAL))))) if label else ()
        if "" in labels or "nan" in map(str.lower, labels):
            raise ValueError(f"{place}: label is {printable(label)}; a part of it is not a class.")
        check_labels(labels, place)
        if split and read_split(split) is None:
            raise ValueError(
                f"{place}: split {printable(split)}; expected train, test or validation."
            )
        given = labels, split and read_split(split)
        *first, before = found.setdefault(os.path.normpath(file), (*given, line))
        if given != tuple(first):
            raise ValueError(
                f"{place}: {printable(file)} has another label or split in {before}. Give each "
                "image one row."
            )
    splits = {split for _, split, _ in found.values()}
    if "" in splits and len(splits) > 1:
        line = next(line for _, split, line in found.values() if not split)
        raise ValueError(f"{printable(path)}, {line}: split is empty, but other rows have one.")
    roles = {"": ""} if splits <= {""} else name_roles(splits, path)
    classes = _class_names(path, found.values())
    places = {name: place for place, name in enumerate(classes)}
    files = sorted(found, key=Path)
    members = [tuple(sorted(places[label] for label in found[file][0])) for file in files]
    sets = tuple(sorted(set(members))) if several else tuple((n,) for n in places.values())
    numbers = {each: number for number, each in enumerate(sets)}
    indices = [numbers[each] for each in members]
    pairs = {role: [[] for _ in range(len(classes) + 1)] for role in roles.values()}
    rarest = find_rarest(indices, sets, len(classes)) if several else indices
    for file, index, place in zip(files, indices, rarest, strict=True):
        pairs[roles[found[file][1]]][place].append((os.fsencode(file), index))
    return classes, pairs, sets if several else None


def _find_file(table, place, text):
    """Returns the path of the image that a row names, relative to the table."""
    if not text:
        raise ValueError(f"{place}: path is empty; fill it or remove the row.")
    if is_address(text):
        raise ValueError(
            f"{place}: {printable(text)} is an address; download the image and give its path."
        )
    file = table.parent / os.path.expanduser(text)
    if "\\" in text and not file.exists():
        file = table.parent / PureWindowsPath(text).as_posix()
    if not file.is_file():
        raise ValueError(
            f"{place}: {why_missing(file, 'image file')}: {printable(file)}. Expected a path "
            "relative to the table."
        )
    return file


def _class_names(path, rows):
    """Returns the classes of the training images, sorted."""
    names = sorted(
        {label for labels, split, _ in rows if split in ("", "train") for label in labels}
    )
    if len(names) < 2:
        raise ValueError(
            f"{printable(path)}: expected training images of two or more classes; found "
            f"{printable(names[0]) + ' only' if names else 'none'}."
        )
    for labels, _, line in rows:
        for label in set(labels) - set(names):
            raise ValueError(
                f"{printable(path)}, {line}: there is no training image of class "
                f"{printable(label)}."
            )
    return tuple(names)
