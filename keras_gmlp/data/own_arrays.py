"""Data sets of one's own images in memory: arrays, tf.data, and data sets of Hugging Face."""

import zlib

import numpy as np

from keras_gmlp.data.dividing import divide
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.data.images.splits import ArraySplit
from keras_gmlp.utils.errors import one_line_errors


def is_raw(data):
    """Returns whether data are what `from_arrays` takes, and no `ImageData`."""
    is_table = hasattr(data, "column_names") or hasattr(data, "as_numpy_iterator")
    return is_table or isinstance(data, tuple | list | dict)


def from_arrays(train, test=None, labels=None, name=None, image_size=None):
    """Makes an `ImageData` of images in memory.

    Args:
        train: Training images: a pair of uint8 images `(samples, height, width, channels)` or
            `(samples, height, width)` and class indices or names `(samples,)`; a
            `tf.data.Dataset` of such pairs, single or in batches; or a data set of Hugging Face
            with a column of images and one of classes. Several splits are a dict with the keys
            `"train"`, `"test"` and `"validation"`, or two pairs, as `keras.datasets` gives them.
        test: The same for the test images. Defaults to a fifth of the training images of each
            class.
        labels: Class names, in the order of their indices. Defaults to those in the data, in
            alphabetical order, or to `"0"`, `"1"`, ...
        name: Name of the data. Defaults to `"arrays-"` and a checksum, so that a run never goes on
            with other images.
        image_size: `(height, width)` to which images of Hugging Face are scaled. Defaults to
            their size, if it is the same for all.

    Returns:
        An `ImageData`.

    Raises:
        ValueError: If the data are of another kind, size or type, or too few. One line.

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
    parts = {key: _read(part, image_size) for key, part in parts.items() if part is not None}
    if "train" not in parts:
        raise ValueError(f"expected a split train; received {', '.join(map(str, train))}.")
    found = np.concatenate([indices for _, indices, _ in parts.values()])
    if labels is None:
        (*_, labels) = parts["train"]
    if labels is None:
        numbered = found.dtype.kind in "biuf"
        labels = range(int(found.max(initial=0)) + 1) if numbered else np.unique(found)
    labels = tuple(map(str, labels))
    splits = {key: _index(*part[:2], labels) for key, part in parts.items()}
    if name is None:
        checksum = 0
        for array in (array for key in splits for array in splits[key].arrays()):
            checksum = zlib.crc32(np.ascontiguousarray(array), checksum)
        name = f"arrays-{checksum:08x}"
    if "test" not in splits:
        whole = splits["train"]
        kept, cut = divide(range(len(whole)), whole.read_labels(), 0.2, seed=0)
        if not cut:
            raise ValueError(f"{name}: too few images to test on; give test images.")
        splits |= {"train": whole.choose(kept), "test": whole.choose(cut)}
    shapes = {split.shape for split in splits.values()}
    if len(shapes) > 1:
        raise ValueError(f"{name}: images of {len(shapes)} shapes, {shapes}; expected one.")
    return ImageData(name, labels, shapes.pop(), **splits)


def _read(samples, image_size):
    """Returns the images and labels of a split, and class names if it has them."""
    names = None
    if hasattr(samples, "column_names"):
        images, labels, names = _read_columns(samples, image_size)
    elif hasattr(samples, "as_numpy_iterator"):
        spec = samples.element_spec
        if not isinstance(spec, tuple) or len(spec) != 2:
            raise ValueError(f"expected a tf.data.Dataset of (image, label); received {spec}.")
        with one_line_errors():
            single = samples.unbatch() if spec[0].shape.rank == 4 else samples
            images, labels = zip(*single.as_numpy_iterator(), strict=True)
    elif isinstance(samples, tuple | list) and len(samples) == 2:
        images, labels = samples
    else:
        raise ValueError(
            "expected images and labels, a tf.data.Dataset or a data set of Hugging Face; received "
            f"{type(samples).__name__}."
        )
    if isinstance(images, tuple | list) and len({np.shape(image) for image in images}) > 1:
        raise ValueError("the images have several sizes; scale them to one (image_size).")
    images, labels = np.asarray(images), np.asarray(labels)
    images = images[..., None] if images.ndim == 3 else images
    return images, labels[:, 0] if labels.shape[1:] == (1,) else labels, names


def _read_columns(table, image_size):
    """Returns the images, the labels and the class names of a data set of Hugging Face."""
    columns = [
        [name for name in table.column_names if type(table.features[name]).__name__ == kind]
        or [name for name in table.column_names if name in usual]
        for kind, usual in (("Image", ("image", "img")), ("ClassLabel", ("label", "labels")))
    ]
    if [len(names) for names in columns] != [1, 1]:
        raise ValueError(
            "expected one column of images and one of classes; received the columns "
            f"{', '.join(table.column_names)}. Choose two with select_columns."
        )
    (image,), (label,) = columns
    pictures = list(table[image])
    channels = 1 if all(picture.mode == "L" for picture in pictures) else 3
    images = [
        read_image(picture, (*(image_size or picture.size[::-1]), channels)) for picture in pictures
    ]
    return images, list(table[label]), getattr(table.features[label], "names", None)


def _index(images, labels, names):
    """Returns the `ArraySplit` of images with class indices or names."""
    if labels.dtype.kind == "U":
        places = {name: place for place, name in enumerate(names)}
        if unknown := set(labels.tolist()) - set(places):
            raise ValueError(f"class {min(unknown)!r} is not among the labels.")
        labels = np.array([places[label] for label in labels.tolist()], "int64")
    return ArraySplit(images, labels)
