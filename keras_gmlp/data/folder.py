"""Image folders as data sets."""

import os
import threading
import time

import numpy as np

from keras_gmlp.card import is_label
from keras_gmlp.data.encoded_splits import FileSplit
from keras_gmlp.data.image_data import ImageData
from keras_gmlp.data.read_image import find_images, read_image
from keras_gmlp.utils.errors import first_of, printable

PATIENCE = 20.0  # seconds to search for more unreadable files after the first

NAMED = 10  # unreadable files that an error lists


class ImageFiles:
    """Reads the files of a data set; its errors list all unreadable files. Thread-safe.

    Args:
        paths: Paths of the files, as bytes.
        shape: `(height, width, channels)` of the images.
        **preparation: How images are cut to size, arguments of `read_image`.
    """

    def __init__(self, paths, shape, **preparation):
        self.paths, self.shape, self.preparation = paths, shape, preparation
        self.lock, self.searched, self.unreadable = threading.Lock(), 0, []

    def read(self, path, window=None):
        """Returns the pixels of one file; see `read_image`.

        Raises:
            ValueError: If the file cannot be read. The message also lists the other unreadable
                files found in `PATIENCE` seconds.
        """
        try:
            return read_image(os.fsdecode(path), self.shape, window=window, **self.preparation)
        except ValueError as error:
            raise ValueError(f"{error}{self._others(path)}") from None

    def _others(self, known):
        with self.lock:
            if not self.searched:
                self._search()
            # Read again: the user may have repaired some.
            paths = [p for p in self.unreadable if p != known and not self._reads(p)]
        if not paths:
            return ""
        names = [printable(os.fsdecode(path)) for path in paths]
        return (
            f" These of the {self.searched:,} files checked cannot be read either: "
            f"{first_of(names, NAMED)}."
        )

    def _search(self):
        end = time.monotonic() + PATIENCE
        for path in self.paths:
            self.searched += 1
            if not self._reads(path):
                self.unreadable.append(path)
            if time.monotonic() > end:
                break

    def _reads(self, path):
        try:
            read_image(os.fsdecode(path), self.shape, **self.preparation)
        except ValueError:
            return False
        return True


def load_folder(root, image_size):
    """Opens a folder of class folders as an `ImageData` of `image_size` RGB images."""
    labels, *splits = _list_files(root)
    # Shuffled once, so that the first part of the samples has all classes.
    order = np.random.default_rng(0).permutation(len(splits[0]))
    splits[0] = [splits[0][i] for i in order]
    shape = (*image_size, 3)
    files = ImageFiles([path for split in splits for path, _ in split], shape)
    train, test = (FileSplit(*zip(*split, strict=True), shape, files.read) for split in splits)
    return ImageData(str(root), labels, shape, train, test)


def list_images(root, split="all"):
    """Lists the images in a folder of class folders.

    Args:
        root: The folder, laid out as for `datasets.load`.
        split: `"train"`, `"test"` or, for the images of both, `"all"`.

    Returns:
        A tuple: the class names; the `(path, class index)` pairs of the split, with paths as bytes;
        the number of images in both splits.

    Raises:
        ValueError: If the folder has fewer than two classes or a class without an image, or if the
            split is `"test"` and there are no test images. One line.
    """
    labels, train, test = _list_files(root, hold_out=False)
    if split == "test" and not test:
        raise ValueError(
            f"{root}: no class has 5 images, of which the fifth is a test image. Evaluate all "
            "images (--split all)."
        )
    pairs = {"train": train, "test": test, "all": sorted(train + test)}[split]
    return labels, pairs, len(train) + len(test)


def _list_files(root, hold_out=True):
    """Returns the class names and the (path, class index) pairs of both splits."""
    splits = {name.lower(): root / name for name in _folders(root)}
    held_out = next((n for n in ("test", "val", "valid", "validation") if n in splits), None)
    if held_out and "train" in splits:
        labels = _class_names(splits["train"])
        train, test = (
            [pair for group in _class_files(splits[name], labels) for pair in group]
            for name in ("train", held_out)
        )
        if not test:
            raise ValueError(
                f"{splits[held_out]}: expected a folder of images for each class; found none. Lay "
                f"the images out as {splits[held_out]}/<class name>/<image>."
            )
        return labels, train, test
    labels = _class_names(root)
    groups = _class_files(root, labels)
    train = [pair for group in groups for i, pair in enumerate(group) if i % 5 != 4]
    test = [pair for group in groups for pair in group[4::5]]
    if hold_out and not test:
        raise ValueError(
            f"{root}: no class has 5 images, of which the fifth would be held out for testing. Add "
            "images, or lay them out as train/<class name>/<image> and test/<class name>/<image>."
        )
    return labels, train, test


def _folders(root):
    try:
        return sorted(p.name for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
    except PermissionError:
        raise ValueError(f"{printable(root)}: no permission to read this folder.") from None


def _class_names(root):
    names = tuple(_folders(root))
    if len(names) < 2:
        found = f"{names[0]} alone" if names else "none"
        raise ValueError(
            f"{root}: expected a folder of images for each of two or more classes; found {found}. "
            f"Lay the images out as {root}/<class name>/<image>."
        )
    for name in names:
        if not is_label(name):
            raise ValueError(
                f"{os.fspath(root / name)!r}: labels.txt cannot hold this class name; expected one "
                "line of text. Rename the folder."
            )
    return names


def _class_files(root, labels):
    """Returns the (path, class index) pairs of each class; a test split may lack classes."""
    unknown = sorted(set(_folders(root)) - set(labels))
    if unknown:
        raise ValueError(f"{root}: there is no training folder for {', '.join(unknown)}.")
    return [
        [(os.fsencode(path), index) for path in find_images(root / label)]
        for index, label in enumerate(labels)
        if (root / label).is_dir()
    ]
