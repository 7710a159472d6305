"""What counts as an image, a text, a table and a split, and what is in a folder of data."""

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
JUNK = ("__macosx", "@eadir", "$recycle.bin", "__pycache__", "thumbs.db", "desktop.ini")
# The words for each split. The first held-out split that exists holds the test samples, the second
# one the validation samples.
SPLITS = {
    "train": ("train", "training"),
    "test": ("test", "testing"),
    "holdout": ("holdout", "heldout"),
    "eval": ("eval", "evaluation"),
    "validation": ("val", "valid", "validation", "dev"),
}


def is_junk(name):
    """Returns whether a file or folder is hidden, or left behind by a system or an archive."""
    return name.startswith(".") or name.lower() in JUNK


def list_visible_files(root):
    """Lists the files in a folder and below, sorted; it follows no links to folders."""

    def fail(error):  # `os.walk` skips folders that it cannot read
        raise error

    paths = []
    for folder, folders, files in os.walk(root, onerror=fail):
        folders[:] = [name for name in folders if not is_junk(name)]
        paths += [Path(folder, name) for name in files if not is_junk(name)]
    return sorted(paths)


def list_visible_folders(root):
    """Lists the visible folders in a folder, sorted."""
    entries = sorted(path for path in Path(root).iterdir() if not is_junk(path.name))
    for path in entries:
        if not (path.suffix or path.exists()):  # perhaps a class
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


def read_split(name):
    """Returns the key of `SPLITS` that a name such as `Test`, `val2017` or `train_set` means."""
    word = re.sub(r"[\W\d_]", "", name.lower())
    word = re.sub("(data|images|set)+$", "", word)
    return next((split for split, words in SPLITS.items() if word in words), None)


def find_roles(splits, place):
    """Returns what each of the keys of `SPLITS` is for: train, test or validation."""
    held_out = [split for split in SPLITS if split in splits and split != "train"]
    if "train" not in splits or not 1 <= len(held_out) <= 2:
        found = ", ".join(split for split in SPLITS if split in splits)
        raise ValueError(
            f"{printable(place)}: found the splits {found}; expected train, with test or "
            "validation or both."
        )
    return {"train": "train", **dict(zip(held_out, ("test", "validation"), strict=False))}


def find_splits(place, paths):
    """Returns the files or folders of a data set by split; empty without a split's name.

    Warns of folders that may be splits in other words.
    """
    found = {}
    for path in paths:
        split = read_split(path.name if path.is_dir() else path.stem)
        first = found.setdefault(split, path)
        if split and first != path:
            raise ValueError(
                f"{printable(place)}: {printable(first.name)} and {printable(path.name)} both mean "
                f"{split}; merge them, or move one away."
            )
    others = found.pop(None, None)
    if set(found) == {"train"}:  # alone, or a class of that name, which holds no classes
        train = found["train"]
        if not (others and train.is_dir() and list_visible_folders(train)):
            return found
    if found:
        return {role: found[split] for split, role in find_roles(found, place).items()}
    inside = [sorted(p.name for p in list_visible_folders(path)) for path in paths if path.is_dir()]
    if len(inside) > 1 and len(inside[0]) > 1 and inside == inside[:1] * len(inside):
        names = first_of([printable(path.name) for path in paths], 3)
        warn(
            f"{printable(place)}: {names} are taken for classes; each holds the same folders. If "
            "they are splits, name them train and test."
        )
    return {}
