"""The data set that batches are made from."""

import dataclasses

import numpy as np

from keras_gmlp.data.images.resizing import FITS
from keras_gmlp.data.images.samples import Samples, from_dataset
from keras_gmlp.data.label_sets import make_rows
from keras_gmlp.utils.errors import printable, require_one_of
from keras_gmlp.utils.labels import check_labels


@dataclasses.dataclass(frozen=True)
class ImageData:
    """Image data set whose splits hold pairs of (uint8 image, int64 class index).

    Attributes:
        name: Name in TFDS, path of a folder, or `"digits"`.
        labels: Class names, in the order of their indices.
        image_shape: `(height, width, channels)` of all images.
        train, test: `Samples`, or a `tf.data.Dataset` of single samples, of known cardinality.
        mirror: Whether mirrored images keep their label.
        validation: `Samples` that training tests after each epoch, in place of `test`; `None`
            for none.
        label_sets: Where images have any number of labels, tuples of class indices. The splits
            then hold the index of a set in place of a class. `None` where images have one label.
        fit: How images of another aspect ratio became these, one of `data.images.resizing.FITS`.

    Raises:
        ValueError: If a split is neither, `labels.txt` cannot hold a class name, `Samples` have a
            class index out of range, or the fit is unknown.
    """

    name: str
    labels: tuple[str, ...]
    image_shape: tuple[int, int, int]
    train: Samples
    test: Samples
    mirror: bool = True
    validation: Samples | None = None
    label_sets: tuple[tuple[int, ...], ...] | None = None
    fit: str = "crop"

    def __post_init__(self):
        check_labels(self.labels, self.name)
        require_one_of("fit", self.fit, FITS)
        for name in ("train", "test", "validation"):
            split = getattr(self, name)
            if not isinstance(split, Samples) and (split is not None or name != "validation"):
                object.__setattr__(self, name, from_dataset(split))
        count = len(self.labels if self.label_sets is None else self.label_sets)
        for name, split in self.splits().items():
            if split.in_order or not len(split):
                continue
            low, high = split.labels.min(), split.labels.max()
            if low < 0 or high >= count:
                raise ValueError(
                    f"{printable(self.name)}: class indices from {low} to {high} in {name}; "
                    f"expected whole numbers from 0 to {count - 1}."
                )

    def label_rows(self) -> np.ndarray | None:
        """Returns a row of 0 and 1 for each set of labels, float32 `(sets, classes)`, or `None`."""
        if self.label_sets is None:
            return None
        return make_rows(self.label_sets, len(self.labels))

    def splits(self) -> dict[str, Samples]:
        """Returns the splits by name, a dict; without `validation` if there is none."""
        splits = {"train": self.train, "test": self.test, "validation": self.validation}
        return {name: split for name, split in splits.items() if split is not None}


def take_fraction(data, fraction):
    """Keeps the first part of the training samples, at least one; smaller parts are subsets."""
    samples = max(1, round(fraction * len(data.train)))
    return dataclasses.replace(data, train=data.train.take(slice(samples)))
