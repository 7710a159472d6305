"""Labelled images that classifiers of any format read, each in its own size."""

import collections
import itertools
import os

from keras_gmlp.data.datasets import holds_files
from keras_gmlp.data.images.samples import from_files
from keras_gmlp.data.validation import load_divided
from keras_gmlp.utils.errors import printable, require_one_of

SPLITS = ("test", "train", "validation", "all")
BATCH = 64  # images that are in memory at a time


class LabelledImages:
    """Labelled images, which each classifier reads in its own size; see `evaluate`."""

    # `parts` are arguments of `divide_training`, `roles` the splits that a run recorded.
    def __init__(self, name, split="test", groups=None, parts=None, roles=None):
        require_one_of("split", split, SPLITS)
        parts = parts if split in ("train", "validation") else None
        if split == "all" and holds_files(name):  # also of too few images for a test split
            roles = collections.defaultdict(lambda: "test")
        self._division = {"groups": groups, "parts": parts, "roles": roles}
        data = load_divided(name, **self._division)
        self.name, self.split = data.name, split
        self.labels, self.label_rows = data.labels, data.label_rows()
        splits = self._choose(data)
        pairs = (zip(s.paths, s.labels, strict=True) for s in splits.values() if s.paths)
        self._pairs = sorted(itertools.chain(*pairs))
        places = (f"{name}/{i}" for name, each in splits.items() for i in range(len(each)))
        self.names = tuple(os.fsdecode(path) for path, _ in self._pairs) or tuple(places)

    def __len__(self):
        return len(self.names)

    def batches(self, classifier):
        """Yields uint8 images as a `Classifier` takes them, and their indices, in order."""
        shape, preparation = classifier.image_shape, classifier.preparation
        if self._pairs:
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
            data = load_divided(self.name, shape, fit=fit, **self._division)
            splits = self._choose(data).values()
        for samples in splits:
            yield from samples.batches(BATCH)

    def _choose(self, data):
        """Returns the splits that these images are, by name."""
        chosen = SPLITS if self.split == "all" else (self.split,)
        splits = {name: split for name, split in data.splits().items() if name in chosen}
        if not any(map(len, splits.values())):
            raise ValueError(
                f"{printable(self.name)}: has no {self.split} images. Choose another split "
                "(--split), or train with --validation."
            )
        return splits
