"""Data sets of one's own images in memory: arrays and tf.data."""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_gmlp.data.dividing import divide
from keras_gmlp.data.images import samples
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.utils.errors import first_of, one_line_errors


def is_raw(data):
    """Returns whether data are what `from_arrays` takes, and not an `ImageData`."""
    return hasattr(data, "as_numpy_iterator") or isinstance(data, tuple | list | dict)


def from_arrays(
    train: Any, test: Any = None, labels: Sequence[str] | None = None, name: str | None = None
) -> ImageData:
    """Makes an `ImageData` of images in memory.

    Args:
        train: Training images: a pair of uint8 images `(samples, height, width, channels)` or
            `(samples, height, width)` and class indices or names `(samples,)`; or a
            `tf.data.Dataset` of such pairs, single or in batches. Several splits are a dict with
            the keys `"train"`, `"test"` and `"validation"`, or two pairs, as `keras.datasets`
            gives them. The columns of a data set of Hugging Face are such a pair:
            `(np.stack(data["image"]), data["label"])`.
        test: The same for the test images. Defaults to a fifth of the training images of each
            class.
        labels: Class names, in the order of their indices. Defaults to those in the data, in
            alphabetical order, or to `"0"`, `"1"`, ...
        name: Name of the data. Defaults to `"arrays-"` and a checksum, so that a run never goes on
            with other images.

    Returns:
        An `ImageData`.

    Raises:
        ValueError: If the data are of another kind, size or type, or too few, or a class has no
            training image. One line.

    Example:
        >>> images = np.zeros((10, 8, 8, 3), "uint8")
        >>> data = from_arrays((images, ["cat", "dog"] * 5))
        >>> data.labels, len(data.train), len(data.test)
        (('cat', 'dog'), 8, 2)
    """
    parts = {"train": train, "test": test}
    if isinstance(train, dict):
        parts = {split: train.get(split) for split in ("train", "test", "validation")}
    elif isinstance(train, tuple | list) and len(train) == 2 and isinstance(train[0], tuple):
        parts = {"train": train[0], "test": train[1]}
    parts = {key: _read(part) for key, part in parts.items() if part is not None}
    if labels is None:
        found = np.concatenate([indices for _, indices in parts.values()])
        numbered = found.dtype.kind in "biuf"
        labels = range(int(found.max(initial=0)) + 1) if numbered else np.unique(found)
    labels = tuple(map(str, labels))
    splits = {key: _index(*part, labels) for key, part in parts.items()}
    if name is None:
        checksum = 0
        for array in (array for key in splits for array in splits[key].arrays()):
            checksum = zlib.crc32(np.ascontiguousarray(array), checksum)
        name = f"arrays-{checksum:08x}"
    if "test" not in splits:
        whole = splits["train"]
        kept, cut = divide(range(len(whole)), whole.labels, 0.2, seed=0)
        if not cut:
            raise ValueError(f"{name}: too few images to test on; give test images.")
        splits |= {"train": whole.take(kept), "test": whole.take(cut)}
    shapes = {split.shape for split in splits.values()}
    if len(shapes) > 1:
        raise ValueError(f"{name}: images of {len(shapes)} shapes, {shapes}; expected one.")
    data = ImageData(name, labels, shapes.pop(), **splits)
    trained = set(data.train.labels.tolist())
    if missing := [label for index, label in enumerate(labels) if index not in trained]:
        raise ValueError(
            f"{name}: no training image of class {first_of(missing, 3)} ({len(labels)} classes). "
            "Give some, or leave the class out. Class indices start at 0."
        )
    return data


def _read(samples):
    """Returns the images of a split, and their class indices or names."""
    if hasattr(samples, "as_numpy_iterator"):
        if not isinstance(samples.element_spec, tuple):  # a dict, without as_supervised=True
            raise ValueError(f"expected (image, label); received {samples.element_spec}.")
        batched = samples.element_spec[0].shape.rank == 4
        with one_line_errors():
            single = samples.unbatch() if batched else samples
            images, labels = zip(*single.as_numpy_iterator(), strict=True)
    else:
        images, labels = samples
    images, labels = np.asarray(images), np.asarray(labels)
    images = images[..., None] if images.ndim == 3 else images
    if images.ndim == 4 and images.shape[1] in (1, 3) and images.shape[3] not in (1, 3):
        raise ValueError(
            f"images {images.shape} have their channels first; expected (samples, height, width, "
            "channels): images.transpose(0, 2, 3, 1)."
        )
    if labels.dtype.kind in "OST":  # names of pandas, of tf.data and of NumPy's StringDType
        names = [name.decode() if isinstance(name, bytes) else name for name in labels.ravel()]
        labels = np.array(names).reshape(labels.shape)
        if len({isinstance(name, str) for name in names}) > 1 or labels.dtype.kind not in "Ubiuf":
            raise ValueError("expected a name or a class index for each image; some are neither.")
    return images, labels[:, 0] if labels.shape[1:] == (1,) else labels


def _index(images, labels, names):
    """Returns the `Samples` of images with class indices or names."""
    if labels.dtype.kind == "U":
        places = {name: place for place, name in enumerate(names)}
        if unknown := set(labels.tolist()) - set(places):
            raise ValueError(f"class {min(unknown)!r} is not among the labels.")
        labels = np.array([places[label] for label in labels.tolist()], "int64")
    return samples.from_pixels(images, labels)
