"""Labelled images that classifiers of any format read, each in its own size."""

import os
from pathlib import Path

from keras_gmlp.data.datasets import canonical_name, holds_files, load
from keras_gmlp.data.images.folder import CHOOSE, list_images
from keras_gmlp.data.images.label_sets import make_rows
from keras_gmlp.data.images.samples import from_files
from keras_gmlp.data.validation import divide_training
from keras_gmlp.utils.errors import printable, require_one_of

SPLITS = ("test", "train", "validation", "all")
BATCH = 64  # images that are in memory at a time


class LabelledImages:
    """Labelled images, which each classifier reads in its own size.

    Args:
        name: A folder of class folders, a table, or a data set by name; see `data.load`.
        split: `"test"`, `"train"`, `"validation"`, or `"all"` for all of these.
        groups: Regular expression that divided the images of a folder; see `data.load`.
        parts: How a run divided the training images, arguments of `divide_training`; `None` or
            empty for all of them. The test images stay those of the data.
        roles: The split of each image, as a run recorded it; see `Run.data`.

    Attributes:
        name, split: The arguments.
        labels: Class names.
        label_rows: A row of 0 and 1 for each set of labels, `(sets, classes)`, if images have
            several labels; the batches then have the index of a set. `None` for one label each.
        names: File of each image, or its place in its split, such as `"test/17"`.
        total: Number of images in all splits.

    Raises:
        ValueError: If the data do not exist or have no images or classes. One line.
    """

    def __init__(self, name, split="test", groups=None, parts=None, roles=None):
        require_one_of("split", split, SPLITS)
        self.name, self.split = canonical_name(name), split
        self._division, self._pairs = {"groups": groups, "roles": roles}, None
        self._parts = parts if split in ("train", "validation") else None
        if holds_files(self.name):
            folder = Path(self.name)
            listed = "all" if self._parts else split
            self.labels, self._pairs, self.total, label_sets = list_images(
                folder, listed, **self._division
            )
            self.label_rows = label_sets and make_rows(label_sets, len(self.labels))
            if self._parts:
                chosen = self._choose(load(folder, **self._division))[0]
                self._pairs = sorted(zip(chosen.paths, chosen.labels, strict=True))
            self.names = tuple(os.fsdecode(path) for path, _ in self._pairs)
            return
        data = load(self.name, **self._division)
        self.labels, self.total = data.labels, sum(map(len, data.splits().values()))
        self.label_rows = data.label_rows()
        names = [n for n in SPLITS if n in data.splits()] if split == "all" else [split]
        sizes = zip(names, map(len, self._choose(data)), strict=True)
        self.names = tuple(f"{name}/{i}" for name, size in sizes for i in range(size))

    def __len__(self):
        return len(self.names)

    def batches(self, classifier):
        """Yields uint8 images as a `Classifier` takes them, and their indices, in order.

        Raises:
            ValueError: If an image cannot be read, or the card of the model asks for a crop or an
                interpolation and the data are not image files. One line.
        """
        shape, preparation = classifier.image_shape, classifier.preparation
        if self._pairs is not None:
            splits = [from_files(self._pairs, shape, **preparation)]
        elif "crop" in preparation or preparation.get("interpolation", "bicubic") != "bicubic":
            cut = ", ".join(f"{name} {value}" for name, value in preparation.items())
            raise ValueError(
                f"{printable(classifier.path)}: reads images with {cut}, which requires image "
                f"files; received {printable(self.name)}. Give a folder of class folders or a "
                "table."
            )
        else:
            fit = preparation.get("fit", "crop")
            data = load(self.name, shape[:2], channels=shape[2], fit=fit, **self._division)
            splits = self._choose(data)
        for samples in splits:
            yield from samples.batches(BATCH)

    def _choose(self, data):
        """Returns the splits that these images are, a list."""
        if self._parts:
            data = divide_training(data, **self._parts, groups=self._division["groups"])
        splits = data.splits()
        if self.split == "all":
            return [splits[name] for name in SPLITS if name in splits]
        if self.split not in splits:
            raise ValueError(f"{printable(self.name)}: has no validation images. {CHOOSE}")
        return [splits[self.split]]
