"""Image folders, and tables of images, as data sets."""

import collections
import itertools
import os
from pathlib import Path

import numpy as np

from keras_gmlp.data.dividing import check_apart, divide_groups, find_groups
from keras_gmlp.data.images.find_images import find_images, warn_no_images
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.resizing import choose_shape
from keras_gmlp.data.images.samples import from_files
from keras_gmlp.data.images.table import is_table, list_table
from keras_gmlp.data.label_sets import find_rarest
from keras_gmlp.utils import inputs
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.labels import check_labels, clean_label

OTHER = "_other"  # the folder of pictures that belong to no class, next to the class folders


def load_folder(root, wanted, groups=None, fit="crop", roles=None):
    """Opens a folder of class folders, or a table, as an `ImageData`."""
    labels, pairs, label_sets = list_splits(root, groups, roles)
    if roles is None and not pairs["test"]:
        reason = f"groups {groups!r} finds too few groups" if groups else "no class has 5 images"
        raise ValueError(f"{root}: {reason}. Add images, or divide them into train and test.")
    # Shuffled once, so that the first part of the samples has all classes.
    order = np.random.default_rng(0).permutation(len(pairs["train"]))
    pairs["train"] = [pairs["train"][i] for i in order]
    shape = choose_shape(wanted, (224, 224, 3))
    splits = {name: from_files(part, shape, fit=fit) for name, part in pairs.items()}
    return ImageData(str(root), labels, shape, **splits, label_sets=label_sets, fit=fit)


def list_splits(root, groups=None, roles=None):
    """Returns the class names; by split, the (path, class index) pairs; and the sets of labels."""
    labels, splits, label_sets = list_table(root) if is_table(root) else _list_folders(root)
    check_labels(labels, printable(root))
    if roles is not None:
        pairs = {"train": [], "test": []}
        for pair in itertools.chain(*splits.values()):
            pairs.setdefault(roles[pair[0]], []).append(pair)
        pairs.pop(None, None)  # came after the run
        return labels, pairs, label_sets
    if "" not in splits:
        if groups is not None:
            train, *others = (find_groups(dict(part), groups) for part in splits.values())
            check_apart(root, train, itertools.chain(*others))
        return labels, splits, label_sets
    classes = [index for _, index in splits[""]]
    if label_sets is not None:
        classes = find_rarest(classes, label_sets, len(labels))
    if groups is not None:
        parts = divide_groups(find_groups(dict(splits[""]), groups), classes, 1 / 5)
        train, test = ([splits[""][place] for place in part] for part in parts)
        return labels, {"train": train, "test": test}, label_sets
    pairs, counts = {"train": [], "test": []}, collections.Counter()
    for pair, label in zip(splits[""], classes, strict=True):
        counts[label] += 1
        pairs["train" if counts[label] % 5 else "test"].append(pair)
    return labels, pairs, label_sets


def _list_folders(root):
    """Returns what `list_table` does; of a folder without splits the only one is `""`."""
    folders = _find_classes(root)
    splits = inputs.find_splits(root, folders)
    if len(splits) < 2:
        splits = {"": root}
    first = splits.get("train", root)
    labels = tuple(sorted({clean_label(folder.name) for folder in _find_classes(first)}))
    left_out, loose = [], []
    if len(labels) < 2:
        found = f"{labels[0]} only" if labels else "none"
        raise ValueError(
            f"{first}: expected a folder of images for each of two or more classes; found {found}. "
            f"Lay the images out as {first}/<class name>/<image>."
        )
    found = {name: _list_split(folder, labels, left_out) for name, folder in splits.items()}
    warn_no_images(root, left_out)
    for place in dict.fromkeys((root, *splits.values())):
        loose += inputs.list_suffix(place, inputs.IMAGES)
    inputs.warn_left_out(root, loose, "outside the class folders")
    return labels, found, None


def _find_classes(root):
    """Returns the visible folders in a folder that may be classes, sorted."""
    return [path for path in inputs.list_visible_folders(root) if path.name != OTHER]


def _list_split(root, labels, left_out):
    """Returns the (path, class index) pairs of a split; one for testing may lack classes."""
    folders = sorted((clean_label(path.name), path) for path in _find_classes(root))
    if unknown := sorted({label for label, _ in folders} - set(labels)):
        raise ValueError(f"{root}: there is no training folder for {', '.join(unknown)}.")
    if not folders:
        raise ValueError(f"{root}: expected a folder of images for each class; found none.")
    return [
        (os.fsencode(path), labels.index(label))
        for label, folder in folders
        for path in find_images(folder, left_out)
    ]


def open_other(root, shape, **preparation):
    """Opens the pictures of no class, in the folder `OTHER` next to the class folders."""
    folder = Path(root) / OTHER
    if not folder.is_dir():
        return None
    return from_files([(path, 0) for path in find_images(folder)], shape, **preparation)
