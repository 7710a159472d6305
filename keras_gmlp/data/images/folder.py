"""Image folders, and tables of images, as data sets."""

import itertools
import os
from pathlib import Path

import numpy as np

from keras_gmlp.data.dividing import check_apart, divide_groups, find_groups
from keras_gmlp.data.images.find_images import find_images, warn_no_images
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.label_sets import find_rarest
from keras_gmlp.data.images.samples import from_files
from keras_gmlp.data.images.table import is_table, list_table
from keras_gmlp.utils import inputs
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.labels import check_labels, clean_label

CHOOSE = "Choose another split (--split), or train with --validation."
OTHER = "_other"  # the folder of pictures that belong to no class, next to the class folders


def load_folder(root, image_size, groups=None, fit="crop", roles=None):
    """Opens a folder of class folders, or a table, as an `ImageData` of `image_size` RGB images."""
    labels, pairs, label_sets = list_splits(root, groups=groups, roles=roles)
    # Shuffled once, so that the first part of the samples has all classes.
    order = np.random.default_rng(0).permutation(len(pairs["train"]))
    pairs["train"] = [pairs["train"][i] for i in order]
    shape = (*image_size, 3)
    splits = {name: from_files(part, shape, fit=fit) for name, part in pairs.items()}
    return ImageData(str(root), labels, shape, **splits, label_sets=label_sets, fit=fit)


def list_images(root, split="all", groups=None, roles=None):
    """Lists the images in a folder of class folders, or in a table."""
    labels, pairs, label_sets = list_splits(root, False, groups, roles)
    everything = sorted(pair for part in pairs.values() for pair in part)
    if split == "test" and not pairs["test"]:
        raise ValueError(
            f"{root}: no class has 5 images, of which the fifth is a test image. Evaluate all "
            "images (--split all)."
        )
    if split == "validation" and split not in pairs:
        missing = "folder val/ of validation images next to train/ and test/"
        missing = "images of the split validation" if is_table(root) else missing
        raise ValueError(f"{root}: has no {missing}. {CHOOSE}")
    return labels, everything if split == "all" else pairs[split], len(everything), label_sets


def list_splits(root, hold_out=True, groups=None, roles=None):
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
        inputs.warn_of_nested(root, folders)
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
    warn_no_images(root, left_out)
    loose = [
        p for place in (root, *splits.values()) for p in inputs.list_suffix(place, inputs.IMAGES)
    ]
    inputs.warn_left_out(root, loose, "outside the class folders")
    return labels, found, None


def find_splits(root):
    """Returns the folders of training and held-out images by split; empty without both."""
    paths = [root / name for name in list_folders(root)]
    splits = inputs.find_splits(root, paths)
    return splits if len(splits) > 1 else {}


def choose_split(place):
    """Returns the split of an image by its place among the sorted files of its class."""
    return "test" if place % 5 == 4 else "train"


def list_folders(root):
    """Returns the names of the visible folders in a folder that may be classes, sorted."""
    return [path.name for path in inputs.list_visible_folders(root) if path.name != OTHER]


def open_other(root, shape, **preparation):
    """Opens the pictures of no class, in the folder `OTHER` next to the class folders."""
    folder = Path(root) / OTHER
    if not folder.is_dir():
        return None
    return from_files([(path, 0) for path in find_images(folder)], shape, **preparation)


def class_names(root):
    """Returns the class names in a folder of class folders, a tuple of two or more."""
    names = list_folders(root)
    check_labels(names, printable(root))
    labels = tuple(sorted(set(map(clean_label, names))))
    if len(labels) < 2:
        found = f"{labels[0]} only" if labels else "none"
        raise ValueError(
            f"{root}: expected a folder of images for each of two or more classes; found {found}. "
            f"Lay the images out as {root}/<class name>/<image>."
        )
    return labels


def _class_files(root, labels, left_out):
    """Returns the (path, class index) pairs of each class; a test split may lack classes."""
    folders, names = {}, list_folders(root)
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
