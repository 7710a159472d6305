"""The data set that batches are made from."""

import dataclasses
import functools

import numpy as np

from keras_gmlp.data.images.fits import find_inner_size, find_place, require_fit
from keras_gmlp.data.images.splits import Split, as_split
from keras_gmlp.data.images.table import make_rows
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.labels import check_labels


@dataclasses.dataclass(frozen=True)
class ImageData:
    """Image data set whose splits hold pairs of (uint8 image, int64 class index).

    Attributes:
        name: Name in TFDS, path of a folder, or `"digits"`.
        labels: Class names, in the order of their indices.
        image_shape: `(height, width, channels)` of all images.
        train, test: `Split`. A `tf.data.Dataset` of single samples, of known cardinality, becomes
            a `DatasetSplit`.
        mirror: Whether mirrored images keep their label.
        validation: `Split` that training tests after each epoch, in place of `test`; `None` for
            none.
        label_sets: Where images have any number of labels, tuples of class indices. The splits
            then hold the index of a set in place of a class. `None` where images have one label.
        fit: How images of another aspect ratio became these, one of `data.fits.FITS`.

    Raises:
        ValueError: If a split is neither, `labels.txt` cannot hold a class name, a split in memory
            has a class index out of range, or the fit is unknown.
    """

    name: str
    labels: tuple[str, ...]
    image_shape: tuple[int, int, int]
    train: Split
    test: Split
    mirror: bool = True
    validation: Split | None = None
    label_sets: tuple[tuple[int, ...], ...] | None = None
    fit: str = "crop"

    def __post_init__(self):
        check_labels(self.labels, self.name)
        require_fit(self.fit)
        for name in ("train", "test"):
            object.__setattr__(self, name, as_split(getattr(self, name)))
        if self.validation is not None:
            object.__setattr__(self, "validation", as_split(self.validation))
        self._check_indices()

    def _check_indices(self):
        count = len(self.labels if self.label_sets is None else self.label_sets)
        for name, split in self.splits().items():
            found = split.read_labels() if split.holds_labels else ()
            if not len(found):
                continue
            low, high = found.min(), found.max()
            if not (low >= 0 and high < count) or np.any(found % 1):
                raise ValueError(
                    f"{printable(self.name)}: class indices from {low} to {high} in {name}; "
                    f"expected whole numbers from 0 to {count - 1}."
                )

    def label_rows(self):
        """Returns a row of 0 and 1 for each set of labels, float32 `(sets, classes)`, or `None`."""
        if self.label_sets is None:
            return None
        return make_rows(self.label_sets, len(self.labels))

    def splits(self):
        """Returns the splits by name, a dict; without `validation` if there is none."""
        splits = {"train": self.train, "test": self.test, "validation": self.validation}
        return {name: split for name, split in splits.items() if split is not None}


def take_fraction(data, fraction):
    """Keeps the first part of the training samples.

    Smaller parts are subsets of larger parts, and the same for every model and seed.

    Args:
        data: An `ImageData`.
        fraction: Share of the training samples in (0, 1]; at least one sample is kept.

    Returns:
        An `ImageData` with the same test split.

    Raises:
        ValueError: If `fraction` is outside (0, 1].
    """
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction must be in (0, 1]; received {fraction}.")
    samples = max(1, round(fraction * len(data.train)))
    return dataclasses.replace(data, train=data.train.take(samples))


def resize_images(images, shape, fit="crop"):
    """Scales uint8 images to a size, as `read_image` fits those of another aspect ratio."""
    if fit == "crop":
        return resize_to_cover(images, shape)
    target = tuple(shape[:2])
    inner = target if fit == "stretch" else find_inner_size(images.shape[-3:-1], target)
    top, left = find_place(inner, target)
    result = np.zeros((*images.shape[:-3], *target, images.shape[-1]), "uint8")
    place = slice(top, top + inner[0]), slice(left, left + inner[1])
    result[..., *place, :] = _to_bytes(_scale_both(images, inner))
    return result


def resize_to_cover(images, shape):
    """Scales uint8 images to cover a size, then crops around the centre."""
    size, target = images.shape[-3:-1], shape[:2]
    ratio = max(np.float32(new) / np.float32(old) for new, old in zip(target, size, strict=True))
    scaled = [int(np.ceil(np.float32(old) * ratio - np.float32(1e-3))) for old in size]
    result = _scale_both(images, scaled)
    top, left = ((have - want) // 2 for have, want in zip(scaled, target, strict=True))
    result = result[..., top : top + target[0], left : left + target[1], :]
    return _to_bytes(result)


def _to_bytes(images):
    return np.clip(np.round(images), 0, 255).astype("uint8")


def _scale_both(images, size):
    """Returns images scaled to `(height, width)`, in float32."""
    result = images.astype("float32")
    if tuple(size) != images.shape[-3:-1]:
        for axis in (-3, -2):
            result = _scale(result, axis, size[axis + 3])
    return result


def _scale(images, axis, size):
    """Scales float32 images along one axis, which is negative."""
    first, weights = _taps(images.shape[axis], size)
    shape = list(images.shape)
    shape[axis] = size
    result, part = np.zeros(shape, "float32"), np.empty(shape, "float32")
    for tap in range(weights.shape[1]):  # one after the other: the sum's order rounds the pixels
        np.take(images, first + tap, axis, out=part, mode="clip")
        part *= weights[:, tap].reshape(-1, *(1,) * (-axis - 1))
        result += part
    return result


@functools.lru_cache(maxsize=256)
def _taps(old, new):
    """Returns the first pixel that each scaled pixel reads, `(new,)`, and its weights."""
    one, half = np.float32(1), np.float32(0.5)
    step = one / (np.float32(new) / np.float32(old))  # between the centres, in old pixels
    stretch = max(step, one)  # of the kernel: a wider one averages when images shrink
    centre = (np.arange(new, dtype="float32") + half) * step
    reach = np.float32(2) * stretch
    first, last = (
        np.clip(edge.astype("int64"), 0, old - 1)
        for edge in (np.ceil(centre - reach - half), np.floor(centre + reach - half))
    )
    pixels = first[:, None] + np.arange((last - first).max() + 1)
    weights = _keys(np.abs((pixels.astype("float32") + half - centre[:, None]) * (one / stretch)))
    weights[pixels > last[:, None]] = 0
    total = np.zeros(new, "float32")
    for column in weights.T:  # one after the other, as above
        total += column
    return first, weights * (one / total)[:, None]


def _keys(x):
    """Returns the weights of Keys' cubic kernel at float32 distances."""
    near = ((1.5 * x - 2.5) * x) * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x < 1, near, np.where(x < 2, far, np.float32(0)))
