"""Where images come from: the bundled digits, folders of images, TensorFlow Datasets."""

import dataclasses
import os
from pathlib import Path

import numpy as np

from keras_gmlp.image_files import ImageFiles
from keras_gmlp.images import find_images


@dataclasses.dataclass(frozen=True)
class ImageData:
    """A data set ready to feed: `train` and `test` give (uint8 image, int64 class index).

    Attributes:
        name: TFDS name, folder, or "digits".
        labels: class names, in the order of their indices.
        image_shape: `(height, width, channels)` of all images.
        train, test: `tf.data.Dataset` of single samples, of known cardinality.
        mirror: whether a mirrored image keeps its label.
    """

    name: str
    labels: tuple[str, ...]
    image_shape: tuple[int, int, int]
    train: "tf.data.Dataset"  # noqa: F821
    test: "tf.data.Dataset"  # noqa: F821
    mirror: bool = True


def name_of(name):
    """The `name` of the `ImageData` that `load(name)` gives: a folder's without a last slash."""
    if not str(name):  # an unset variable of a shell, not the folder one is in
        raise ValueError("'': an empty name; expected a data set's, or a folder of class folders.")
    path = Path(os.path.expanduser(name))
    return str(path) if path.is_dir() and name != "digits" else str(name)


def check_path(name):
    """Raises a ValueError where a name can only be a path, and none of a folder that is there."""
    path = Path(os.path.expanduser(name))
    if path.is_file() and (path.suffix or path.parent != Path()):  # no data set's name
        raise ValueError(
            f"{name}: a file; expected a data set's name, or a folder of class folders."
        )
    is_path = str(name).startswith((".", "/", "~")) or str(name).endswith("/") or "\\" in str(name)
    if is_path and not path.is_dir():
        raise ValueError(f"{name}: no such folder.")


def load(name, image_size=None, data_dir=None, channels=None):
    """Opens a data set.

    Args:
        name: `"digits"` (scikit-learn's handwritten digits, bundled), a folder, or the name of an
            image-classification set of TensorFlow Datasets, for example `"cifar10"`. A folder
            holds one folder of images for each class, or `train` and `test` (or `val`) folders
            that do; without them, every fifth image of each class is held out as test data.
        image_size: `(height, width)` that all images are resized to (scaled to cover it, centre
            cropped). Defaults to the size of the set's images, or to 224 where they vary.
        data_dir: where TFDS keeps its sets. Defaults to TFDS' own, `$TFDS_DATA_DIR`.
        channels: 3 for colour, of which grey images get three equal parts, or 1 for grey. Defaults
            to the set's own; pictures of folders are read in colour.

    Returns:
        An `ImageData`.

    Raises:
        ValueError: no such set or folder, or one without images and classes.
    """
    return _with_channels(_open(name, image_size, data_dir), channels)


def _open(name, image_size, data_dir):
    if name == "digits":
        return _digits(image_size)
    path = Path(os.path.expanduser(name))
    if path.is_dir():
        return _folder(path, image_size or (224, 224))
    check_path(name)
    from keras_gmlp import tfds_source  # it makes an ImageData, which stands above

    return tfds_source.load(str(name), image_size, data_dir)


def first_part(data, fraction):
    """The same data set with the first part of its training samples alone.

    A smaller part lies within a larger one, and is the same for every model and seed.

    Args:
        data: an `ImageData`.
        fraction: of the training samples, in (0, 1]; at least one is kept.

    Returns:
        An `ImageData` with the same test split.

    Raises:
        ValueError: a fraction out of its range.
    """
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction must be in (0, 1]; received {fraction}.")
    samples = max(1, round(fraction * int(data.train.cardinality())))
    return dataclasses.replace(data, train=data.train.take(samples))


def _with_channels(data, channels):
    if channels in (None, data.image_shape[-1]):
        return data
    if channels not in (1, 3):
        raise ValueError(f"channels must be 1 or 3; received {channels!r}.")
    import tensorflow as tf

    def grey(image):  # as Pillow weighs them, in whole numbers
        parts = tf.cast(image, tf.int32) * [19595, 38470, 7471]
        return tf.cast((tf.reduce_sum(parts, -1, keepdims=True) + 2**15) // 2**16, tf.uint8)

    change = tf.image.grayscale_to_rgb if channels == 3 else grey
    train, test = (
        split.map(lambda image, label: (change(image), label), tf.data.AUTOTUNE)
        for split in (data.train, data.test)
    )
    shape = (*data.image_shape[:2], channels)
    return dataclasses.replace(data, image_shape=shape, train=train, test=test)


def _digits(image_size):
    """1,797 handwritten digits of 8x8 pixels, 360 of them for testing; a fixed split."""
    import tensorflow as tf
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = np.round(digits.images * 255 / 16)[..., None].astype("uint8")
    if image_size:
        images = cover(images, (*image_size, 1))
    order = np.random.default_rng(0).permutation(len(digits.target))
    train, test = (
        tf.data.Dataset.from_tensor_slices(
            (tf.gather(images, part), digits.target[part].astype("int64"))
        )
        for part in (order[360:], order[:360])
    )
    labels = tuple(map(str, range(10)))
    return ImageData("digits", labels, tuple(images.shape[1:]), train, test, mirror=False)


def _folder(root, image_size):
    """A folder of class folders, decoded as `classify` decodes."""
    import tensorflow as tf

    splits = {name.lower(): root / name for name in _folders(root)}
    held_out = next((n for n in ("test", "val", "valid", "validation") if n in splits), None)
    if held_out and "train" in splits:
        labels = _class_names(splits["train"])
        train = [pair for group in _class_files(splits["train"], labels) for pair in group]
        test = [pair for group in _class_files(splits[held_out], labels) for pair in group]
    else:
        labels = _class_names(root)
        groups = _class_files(root, labels)
        train = [pair for group in groups for i, pair in enumerate(group) if i % 5 != 4]
        test = [pair for group in groups for pair in group[4::5]]
    # Mixed once: in a stream, only what is in the buffer together gets mixed.
    train = [train[i] for i in np.random.default_rng(0).permutation(len(train))]
    if not test:
        raise ValueError(
            f"{root}: no class has 5 images, of which the fifth would be held out for testing. Add "
            "images, or lay them out as train/<class name>/<image> and test/<class name>/<image>."
        )
    shape = (*image_size, 3)

    files = ImageFiles([path for path, _ in (*train, *test)], shape)

    def decode(path, label):
        image = tf.numpy_function(files.read, [path], tf.uint8)
        return tf.ensure_shape(image, shape), label

    def dataset(pairs):
        paths, indices = zip(*pairs, strict=True)
        listing = tf.data.Dataset.from_tensor_slices((list(paths), np.array(indices, "int64")))
        return listing.map(decode, num_parallel_calls=tf.data.AUTOTUNE)

    return ImageData(str(root), labels, shape, dataset(train), dataset(test))


def _folders(root):
    return sorted(p.name for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))


def _class_names(root):
    names = tuple(_folders(root))
    if len(names) < 2:
        found = f"{names[0]} alone" if names else "none"
        raise ValueError(
            f"{root}: expected a folder of images for each of two or more classes; found {found}. "
            f"Lay the images out as {root}/<class name>/<image>."
        )
    return names


def _class_files(root, labels):
    """For each class the (path, index) of its images; a test split may lack classes."""
    unknown = sorted(set(_folders(root)) - set(labels))
    if unknown:
        raise ValueError(f"{root}: there is no training folder for {', '.join(unknown)}.")
    return [
        [(os.fsencode(path), index) for path in find_images(root / label)]
        for index, label in enumerate(labels)
        if (root / label).is_dir()
    ]


def cover(images, shape):
    """Scales one image or a batch until the target is covered, then crops around the centre."""
    import tensorflow as tf

    target = tf.constant(shape[:2], tf.float32)
    size = tf.cast(tf.shape(images)[-3:-1], tf.float32)
    scaled = tf.cast(tf.math.ceil(size * tf.reduce_max(target / size) - 1e-3), tf.int32)
    images = tf.image.resize(images, scaled, "bicubic", antialias=True)
    images = tf.image.resize_with_crop_or_pad(images, *shape[:2])
    return tf.cast(tf.clip_by_value(tf.round(images), 0, 255), tf.uint8)
