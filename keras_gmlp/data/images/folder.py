"""Image folders, and tables of images, as data sets."""

import contextlib
import functools
import itertools
import os
import threading
import time
from pathlib import Path

import numpy as np

from keras_gmlp.data.dividing import check_apart, divide_groups, find_groups
from keras_gmlp.data.images.encoded_splits import FileSplit
from keras_gmlp.data.images.find_images import find_images, warn_left_out
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.label_sets import find_rarest
from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.data.images.table import is_table, list_table
from keras_gmlp.utils import inputs
from keras_gmlp.utils.errors import first_of, printable
from keras_gmlp.utils.labels import check_labels, clean_label, describe_merged, warn_merged
from keras_gmlp.utils.listing import list_beside, list_visible_files, list_visible_folders

PATIENCE = 20.0  # seconds to search for more unreadable files after the first
NAMED = 10  # unreadable files that an error lists
OTHER = "_other"  # the folder of pictures that belong to no class, next to the class folders


class ImageFiles:
    """Reads the files of a data set; its errors list all unreadable files. Thread-safe."""

    def __init__(self, paths, shape, **preparation):
        self.paths, self.lock = paths, threading.Lock()
        self.searched, self.unreadable = 0, []
        self._read = functools.partial(read_image, image_shape=shape, **preparation)

    def read(self, path, window=None):
        """Returns the pixels of one file; see `read_image`."""
        try:
            return self._read(os.fsdecode(path), window=window)
        except ValueError as error:
            message = str(error)
        with self.lock:
            if not self.searched:
                end = time.monotonic() + PATIENCE
                for other in self.paths:
                    self.searched += 1
                    if not self._reads(other):
                        self.unreadable.append(other)
                    if time.monotonic() > end:
                        break
            # Read again: the user may have repaired some.
            others = [p for p in self.unreadable if p != path and not self._reads(p)]
        if others:
            names = first_of([printable(os.fsdecode(other)) for other in others], NAMED)
            message += f" These of the {self.searched:,} files checked cannot be read either: "
            message += f"{names}."
        raise ValueError(message)

    def _reads(self, path):
        with contextlib.suppress(ValueError):
            self._read(os.fsdecode(path))
            return True
        return False


def open_files(parts, shape, **preparation):
    """Returns a `FileSplit` for each list of (path, class index) pairs; see `read_image`."""
    read = ImageFiles([path for part in parts for path, _ in part], shape, **preparation).read
    fit = preparation.get("fit", "crop")
    pairs = (zip(*part, strict=True) if part else ((), ()) for part in parts)
    return [FileSplit(*each, shape, read, fit) for each in pairs]


def load_folder(root, image_size, groups=None, fit="crop", roles=None):
    """Opens a folder of class folders, or a table, as an `ImageData` of `image_size` RGB images."""
    labels, pairs, label_sets = _list_files(root, groups=groups, roles=roles)
    # Shuffled once, so that the first part of the samples has all classes.
    order = np.random.default_rng(0).permutation(len(pairs["train"]))
    pairs["train"] = [pairs["train"][i] for i in order]
    shape = (*image_size, 3)
    splits = dict(zip(pairs, open_files(pairs.values(), shape, fit=fit), strict=True))
    return ImageData(str(root), labels, shape, **splits, label_sets=label_sets, fit=fit)


def list_images(root, split="all", groups=None, roles=None):
    """Lists the images in a folder of class folders, or in a table."""
    labels, pairs, label_sets = _list_files(root, False, groups, roles)
    everything = sorted(pair for part in pairs.values() for pair in part)
    if split == "test" and not pairs["test"]:
        raise ValueError(
            f"{root}: no class has 5 images, of which the fifth is a test image. Evaluate all "
            "images (--split all)."
        )
    if split == "validation" and split not in pairs:
        missing = "folder val/ of validation images next to train/ and test/"
        missing = "images of the split validation" if is_table(root) else missing
        raise ValueError(f"{root}: has no {missing}. Choose another split (--split).")
    return labels, everything if split == "all" else pairs[split], len(everything), label_sets


def _list_files(root, hold_out=True, groups=None, roles=None):
    """Returns the class names; by split, the (path, class index) pairs; and the sets of labels."""
    labels, splits, label_sets = _list_classes(root)
    if roles is not None:
        pairs = {"train": [], "test": []}
        for pair in itertools.chain(*itertools.chain(*splits.values())):
            pairs.setdefault(roles.get(pair[0]), []).append(pair)
        pairs.pop(None, None)  # came after the run
        return labels, pairs, label_sets
    if "" not in splits:
        pairs = {name: list(itertools.chain(*classes)) for name, classes in splits.items()}
        if groups is not None:
            train, *others = (find_groups(dict(part), groups) for part in pairs.values())
            check_apart(root, train, itertools.chain(*others))
        return labels, pairs, label_sets
    classes = splits[""]
    if groups is None:
        train, test = (
            [p for files in classes for i, p in enumerate(files) if choose_split(i) == split]
            for split in ("train", "test")
        )
        reason = "no class has 5 images, of which the fifth would be held out for testing"
    else:
        pairs = list(itertools.chain(*classes))
        paths, indices = zip(*pairs, strict=True)
        if label_sets is not None:
            indices = find_rarest(list(indices), label_sets, len(labels))
        parts = divide_groups(find_groups(paths, groups), indices, 1 / 5)
        train, test = ([pairs[place] for place in part] for part in parts)
        reason = f"groups {groups!r} finds too few groups in the paths to hold one out"
    if hold_out and not test:
        layout = "lay them out as train/<class name>/<image> and test/<class name>/<image>"
        layout = "add a column split with train and test" if is_table(root) else layout
        raise ValueError(f"{root}: {reason}. Add images, or {layout}.")
    return labels, {"train": train, "test": test}, label_sets


def _list_classes(root):
    """Returns what `list_table` does; of a folder without splits the only one is `""`."""
    if is_table(root):
        return list_table(root)
    splits = find_splits(root)
    if not splits:
        folders = [root / name for name in list_folders(root)]
        inputs.warn_of_nested(root, folders, list_visible_folders)
    labels, left_out = class_names(splits.get("train", root)), []
    found = {
        split: _class_files(folder, labels, left_out)
        for split, folder in (splits or {"": root}).items()
    }
    for split, classes in found.items():
        if splits and not any(classes):
            folder = splits[split]
            raise ValueError(
                f"{folder}: expected a folder of images for each class; found none. Lay the images "
                f"out as {folder}/<class name>/<image>."
            )
    warn_left_out(root, [*left_out, *_find_outside(root, splits)])
    return labels, found, None


def _find_outside(root, splits):
    """Lists the files next to class folders, and in folders next to those of splits."""
    paths, aside = [], []
    for folder in (root, *splits.values()):
        entries = (path for path in sorted(folder.iterdir()) if not path.is_dir())
        paths += [path for path in entries if not inputs.is_junk(path.name)]
        aside += list_beside(folder)
    others = set(list_folders(root)) - {folder.name for folder in splits.values()}
    for name in sorted(others) if splits else ():
        paths += list_visible_files(root / name, aside)
    return paths + aside


def find_splits(root):
    """Returns the folders of training and held-out images by split; empty without both."""
    paths = [root / name for name in list_folders(root)]
    splits = inputs.find_splits(root, paths, list_folders)
    return splits if len(splits) > 1 else {}


def choose_split(place):
    """Returns the split of an image by its place among the sorted files of its class."""
    return "test" if place % 5 == 4 else "train"


def list_folders(root):
    """Returns the names of the visible folders in a folder that may be classes, sorted."""
    return [path.name for path in list_visible_folders(root) if path.name != OTHER]


def open_other(root, shape, **preparation):
    """Opens the pictures of no class, in the folder `OTHER` next to the class folders."""
    folder = Path(root) / OTHER
    if not folder.is_dir():
        return None
    return open_files([[(path, 0) for path in find_images(folder)]], shape, **preparation)[0]


def class_names(root):
    """Returns the class names in a folder of class folders, a tuple of two or more."""
    names = list_folders(root)
    check_labels(names, printable(root))
    labels = tuple(sorted(set(map(clean_label, names))))
    if len(labels) < 2:
        hidden = sorted(path.name for path in Path(root).iterdir() if inputs.is_hidden(path.name))
        notes = [f"hidden by a leading dot: {printable(first_of(hidden, 3))}"] if hidden else []
        alone = f"{labels[0]} alone" if labels else "none"
        found = "; ".join([alone, *describe_merged(names), *notes])
        raise ValueError(
            f"{root}: expected a folder of images for each of two or more classes; found {found}. "
            f"Lay the images out as {root}/<class name>/<image>."
            + inputs.suggest_inner(Path(root), names, list_folders)
        )
    return labels


def _class_files(root, labels, left_out):
    """Returns the (path, class index) pairs of each class; a test split may lack classes."""
    folders, names = {}, list_folders(root)
    warn_merged(root, names)
    for name in names:
        folders.setdefault(clean_label(name), []).append(root / name)
    unknown = sorted(set(folders) - set(labels))
    if unknown:
        raise ValueError(f"{root}: there is no training folder for {', '.join(unknown)}.")
    return [
        [
            (os.fsencode(path), index)
            for folder in folders.get(label, ())
            for path in find_images(folder, left_out)
        ]
        for index, label in enumerate(labels)
    ]
