"""What counts as an image, a text, a table and a split, and what is in a folder of data."""

import errno
import os
import re
from pathlib import Path

from keras_gmlp.utils.errors import first_of, printable, warn

IMAGES = (
    ".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".avif", ".gif", ".bmp", ".tif", ".tiff",
    ".ppm", ".pgm", ".pbm", ".pnm",
)  # fmt: skip
HEIC = (".heic", ".heif", ".hif")  # read with pillow-heif
TEXTS = (".txt", ".txt.xz")
TABLES = {".csv": ",", ".tsv": "\t"}
JSON_LINES = (".jsonl", ".ndjson")
# What systems and archives leave behind, in lower case; hidden files begin with a dot.
JUNK = (
    "__macosx", "@eadir", "$recycle.bin", "system volume information", "lost+found", "__pycache__",
    "thumbs.db", "ehthumbs.db", "desktop.ini",
)  # fmt: skip
# The words for each split. The first held-out split that exists holds the test samples, the second
# one the validation samples.
SPLITS = {
    "train": ("train", "training", "trn"),
    "test": ("test", "testing", "tst"),
    "holdout": ("holdout", "heldout"),
    "eval": ("eval", "evaluation"),
    "validation": ("val", "valid", "validation", "dev", "development"),
}
_SPLIT_OF = {word: split for split, words in SPLITS.items() for word in words}
_FILLERS = {"set", "data", "images", "image", "imgs", "img", "photos", "texts", "split", "folder"}


def is_junk(name):
    """Returns whether a file or folder is hidden, or left behind by a system or an archive."""
    return name.startswith(".") or name.lower() in JUNK


def list_visible_files(root):
    """Lists the files in a folder and below, sorted; it follows no links to folders."""

    def refuse(error):  # `os.walk` skips folders that it cannot read
        if isinstance(error, PermissionError):
            place = printable(error.filename)
            raise ValueError(f"{place}: no permission to read this folder.") from None
        raise error

    paths = []
    for folder, folders, files in os.walk(root, onerror=refuse):
        if not os.access(folder, os.X_OK):  # listed, but its files cannot be opened
            refuse(PermissionError(errno.EACCES, "", folder))
        folders[:] = [name for name in folders if not is_junk(name)]
        paths += [Path(folder, name) for name in files if not is_junk(name)]
    return sorted(paths)


def list_visible_folders(root):
    """Lists the visible folders in a folder, sorted."""
    try:
        entries = sorted(path for path in Path(root).iterdir() if not is_junk(path.name))
    except PermissionError:
        raise ValueError(f"{printable(root)}: no permission to read this folder.") from None
    for path in entries:
        if path.is_symlink() and not (path.suffix or os.path.exists(path)):  # perhaps a class
            raise ValueError(f"{printable(path)}: a link to nothing. Mend or remove it.")
    return [path for path in entries if path.is_dir()]


def warn_left_out(place, paths, reason, advice=""):
    """Warns of files in a folder that are left out: their number and the first names."""
    if paths:
        names = first_of([printable(os.path.relpath(path, place)) for path in paths], 3)
        warn(f"{printable(place)}: files left out, {reason}: {len(paths):,} ({names}).{advice}")


def list_suffix(folder, suffixes):
    """Lists the files of a folder whose names end in one of the suffixes, in any case."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.name.lower().endswith(suffixes) and not is_junk(path.name) and path.is_file()
    )


def read_split(name, loose=False):
    """Returns the key of `SPLITS` that a name means; `None` for none. Loose: among other words."""
    name = re.sub(r"(?i)h[eo]ld[\W_]*out", "holdout", name)
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    words = [re.sub("(?<=[a-z])(data)?(set)?$", "", word.lower()) for word in words]
    found = [_SPLIT_OF[word] for word in words if word in _SPLIT_OF]
    others = set(words) - set(_SPLIT_OF) - _FILLERS
    digits = re.search(r"\d", re.sub(r"(19|20)\d\d$", "", name))  # train2017, but not test1
    return found[0] if len(set(found)) == 1 and (loose or not (others or digits)) else None


def name_roles(splits, place):
    """Returns what each of the keys of `SPLITS` is for: train, test or validation."""
    held_out = [split for split in SPLITS if split in splits and split != "train"]
    if len(held_out) > 2:
        raise ValueError(
            f"{printable(place)}: found {', '.join(held_out)}; expected one or two of them next to "
            "train, for test and validation. Move the others away."
        )
    return {"train": "train", **dict(zip(held_out, ("test", "validation"), strict=False))}


def name_column_roles(splits, place, kind, otherwise):
    """Returns what `name_roles` does, for the splits in a column of a table, a set."""
    if "train" not in splits or len(splits) < 2:
        found = " or ".join(sorted(splits))
        raise ValueError(
            f"{printable(place)}: all {kind} have the split {found}; expected train, and test for "
            f"some. {otherwise}"
        )
    return name_roles(splits, place)


def group_splits(place, paths, loose=False):
    """Returns the files or folders by the key of `SPLITS`; two for one are an error."""
    found = {}
    for path in paths:
        name = path.name if path.is_dir() else path.stem
        split = read_split(name) or (read_split(name, loose=True) if loose else None)
        first = found.setdefault(split, path)
        if split is not None and first is not path:
            raise ValueError(
                f"{printable(place)}: {printable(first.name)} and {printable(path.name)} both mean "
                f"{split}; merge them, or move one away."
            )
    found.pop(None, None)
    return found


def find_splits(place, paths, holds_parts):
    """Returns the files or folders of a data set by split; empty without a split's name.

    `holds_parts` says of a path whether it can be a split by its content: a table, or a folder that
    holds folders.
    """
    found = group_splits(place, paths)
    if len(found) < 2 or "train" not in found:  # names such as seg_train and seg_test
        parts = [path for path in paths if path in found.values() or holds_parts(path)]
        more = group_splits(place, parts, loose=True)
        found = more if "train" in more and len(more) > 1 else found
    names = [printable(path.name) for path in paths if path not in found.values()]
    if found and "train" not in found:
        held_out = ", ".join(printable(path.name) for path in found.values())
        raise ValueError(
            f"{printable(place)}: found {held_out}, for test or validation, but no train; name the "
            f"training data train, or rename {held_out} if these are classes."
        )
    if len(found) == 1 and names and holds_parts(found["train"]) and found["train"].is_dir():
        raise ValueError(
            f"{printable(place)}: found {printable(found['train'].name)} next to "
            f"{first_of(names, 5)}; expected test or val. Rename or move the others, or rename "
            f"{printable(found['train'].name)} if it is a class."
        )
    roles = name_roles(found, place)
    return {role: found[split] for split, role in roles.items() if split in found}


def warn_of_nested(place, folders, list_inside):
    """Warns if all class folders hold the same folders: they may be splits in other words."""
    names = sorted(path.name for path in list_inside(folders[0])) if len(folders) > 1 else []
    if len(names) > 1 and all(
        sorted(path.name for path in list_inside(folder)) == names for folder in folders[1:]
    ):
        found = first_of([printable(folder.name) for folder in folders], 3)
        warn(
            f"{printable(place)}: {found} are taken for classes; each holds the same folders "
            f"({first_of(list(map(printable, names)), 3)}). If they are splits, name them train "
            "and test; if they are classes, ignore this."
        )


def is_address(text):
    """Returns whether a text is an address, such as `https://...`, in place of a path."""
    return re.match(r"(?i)[a-z][a-z0-9+.-]*://", text) is not None
