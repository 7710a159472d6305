"""Data sets as tf.data pipelines: TFDS names, folders of images, the bundled digits.

TensorFlow and keras-cv are imported inside the functions that need them, so that importing this
module costs nothing; they feed models on every backend.
"""

import contextlib
import dataclasses
import difflib
import os
import re
import sys
import textwrap
from pathlib import Path

import numpy as np

from keras_gmlp.augmentation import Augmentation, make_augmenter
from keras_gmlp.images import find_images, read_image

# TFDS sets of letters and digits, whose mirror images are something else.
MIRRORED_CHANGES_LABEL = (
    "binary_alpha_digits",
    "cmaterdb",
    "emnist",
    "kmnist",
    "mnist",
    "mnist_corrupted",
    "omniglot",
    "svhn_cropped",
)
MEMORY_LIMIT = 4 * 2**30  # bytes of decoded pixels kept in memory (while read, twice); or streamed
SHUFFLE_BUFFER = 10_000  # samples, of a data set that is streamed


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


def load(name, image_size=None, data_dir=None):
    """Opens a data set.

    Args:
        name: `"digits"` (scikit-learn's handwritten digits, bundled), a folder, or the name of an
            image-classification set of TensorFlow Datasets, for example `"cifar10"`. A folder
            holds one folder of images for each class, or `train` and `test` (or `val`) folders
            that do; without them, every fifth image of each class is held out as test data.
        image_size: `(height, width)` that all images are resized to (scaled to cover it, centre
            cropped). Defaults to the size of the set's images, or to 224 where they vary.
        data_dir: where TFDS keeps its sets. Defaults to TFDS' own, `$TFDS_DATA_DIR`.

    Returns:
        An `ImageData`.

    Raises:
        ValueError: no such set or folder, or one without images and classes.
    """
    if name == "digits":
        return _digits(image_size)
    path = Path(os.path.expanduser(name))
    if path.is_dir():
        return _folder(path, image_size or (224, 224))
    if str(name).startswith((".", "/", "~")) or str(name).endswith("/") or "\\" in str(name):
        raise ValueError(f"{name}: no such folder.")
    return _tfds(str(name), image_size, data_dir)


def training_batches(data, batch_size, augmentation=None, seed=0, initial_epoch=0):
    """Shuffled, augmented batches of the training split; one iteration is one epoch.

    Decoded pixels are kept in memory when they fit (`MEMORY_LIMIT`). The same seed gives the same
    batches, epoch for epoch, and `initial_epoch=k` begins with the (k+1)-th epoch's, so that a
    resumed run sees what it would have seen. Larger sets are shuffled through a buffer of
    `SHUFFLE_BUFFER` samples.

    Args:
        data: an `ImageData`.
        batch_size: samples in a batch; the rest of an epoch that fills none is left out.
        augmentation: an `Augmentation`; `None` for none. `flip` is ignored where it would change
            the label.
        seed: of the order and of the augmentation.
        initial_epoch: epochs that were done before.

    Returns:
        A `tf.data.Dataset` of (float32 images in [0, 255], labels): class indices, or rows of
        probabilities where MixUp or CutMix is on.

    Raises:
        ValueError: an image cannot be read (one line that names the file; where samples are
            streamed see `one_line_errors`).
    """
    import tensorflow as tf

    size = int(data.train.cardinality())
    batch_size = min(batch_size, size)
    augment = make_augmenter(augmentation or Augmentation(0, False), data, seed)
    epoch = tf.Variable(initial_epoch, dtype=tf.int64, trainable=False)
    fold_in = tf.random.experimental.stateless_fold_in

    if _fits_in_memory(data, size):
        images, labels = _in_memory(data.train)

        def batches_of(key):
            return (
                tf.data.Dataset.range(size)
                .batch(batch_size, drop_remainder=True)
                .map(lambda i: tf.random.experimental.index_shuffle(i, key, size - 1))
                .map(lambda i: (tf.gather(images, i), tf.gather(labels, i)))
            )
    else:

        def batches_of(key):
            tf.compat.v1.set_random_seed(1)  # of this function, where Keras' seed would count too
            order = tf.random.stateless_uniform((), key, None, None, tf.int64)
            return data.train.shuffle(SHUFFLE_BUFFER, order).batch(batch_size, drop_remainder=True)

    def with_keys(key):
        # Every batch draws from its own key, so that it depends on nothing that was drawn before.
        return batches_of(key).enumerate().map(lambda i, batch: (fold_in(key, i), *batch))

    root = tf.constant([seed, 0], tf.int64)
    keys = tf.data.Dataset.range(1).map(lambda _: fold_in(root, epoch.assign_add(1)))
    batches = keys.flat_map(with_keys).map(augment, augment.parallel_calls)
    batches = batches.apply(tf.data.experimental.assert_cardinality(size // batch_size))
    return batches.prefetch(tf.data.AUTOTUNE)


def evaluation_batches(data, batch_size=250):
    """Batches of the test split in order: (uint8 images, class indices)."""
    import tensorflow as tf

    if _fits_in_memory(data, int(data.test.cardinality())):
        return tf.data.Dataset.from_tensor_slices(_in_memory(data.test)).batch(batch_size)
    return data.test.batch(batch_size).prefetch(tf.data.AUTOTUNE)


@contextlib.contextmanager
def one_line_errors():
    """Turns TensorFlow's report of an image that cannot be read into a ValueError of one line.

    Data that fit in memory are read within it; for the batches of a larger set, put it around
    what consumes them.
    """
    import tensorflow as tf

    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        raise RuntimeError(f"out of memory; lower batch_size ({_first_line(error)}).") from None
    except tf.errors.OpError as error:
        from_python = re.search(r"ValueError: (.+)", error.message)
        if not from_python:
            raise ValueError(f"TensorFlow failed: {_first_line(error)}") from None
        raise ValueError(f"{from_python[1]} Remove the file or repair it.") from None


def _fits_in_memory(data, samples):
    return samples * np.prod(data.image_shape) <= MEMORY_LIMIT


def _in_memory(dataset):
    """All samples as two tensors."""
    with one_line_errors():
        return dataset.batch(int(dataset.cardinality())).get_single_element()


def _digits(image_size):
    """1,797 handwritten digits of 8x8 pixels, 360 of them for testing; a fixed split."""
    import tensorflow as tf
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = np.round(digits.images * 255 / 16)[..., None].astype("uint8")
    if image_size:
        images = _cover(images, (*image_size, 1))
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

    def decode(path, label):
        image = tf.numpy_function(lambda p: read_image(os.fsdecode(p), shape), [path], tf.uint8)
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
        raise ValueError(
            f"{root}: expected a folder of images for each of two or more classes; found "
            f"{len(names)}. Lay the images out as {root}/<class name>/<image>."
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


def _tfds(name, image_size, data_dir):
    import tensorflow as tf
    import tensorflow_datasets as tfds

    builder = _builder(name, data_dir)
    features = builder.info.features
    known = dict(features.items()) if isinstance(features, tfds.features.FeaturesDict) else {}
    if not (
        isinstance(known.get("image"), tfds.features.Image)
        and isinstance(known.get("label"), tfds.features.ClassLabel)
    ):
        raise ValueError(
            f"{name!r} is no image-classification set: expected the features image and label; it "
            f"has {', '.join(known) or features}."
        )
    height, width, channels = known["image"].shape
    shape = (*(image_size or (height or 224, width or 224)), channels or 3)
    _prepare(name, builder)

    def decode(sample):
        # Bit for bit what Pillow decodes, which classification uses. It reads PNG too.
        image = tf.io.decode_jpeg(sample["image"], shape[-1], dct_method="INTEGER_ACCURATE")
        if (height, width) != shape[:2]:
            image = _cover(image, shape)
        return tf.ensure_shape(image, shape), sample["label"]

    def split(which):
        decoders = tfds.decode.PartialDecoding(
            {"image": True, "label": True}, {"image": tfds.decode.SkipDecoding()}
        )
        dataset = builder.as_dataset(split=which, decoders=decoders)
        size = dataset.cardinality()
        dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
        return dataset.apply(tf.data.experimental.assert_cardinality(size))

    held_out = _held_out(builder)
    train, test = ("train", held_out) if held_out else ("train[:80%]", "train[80%:]")
    labels = tuple(known["label"].names)
    mirror = builder.name not in MIRRORED_CHANGES_LABEL
    return ImageData(name, labels, shape, split(train), split(test), mirror)


def _builder(name, data_dir):
    import tensorflow_datasets as tfds

    try:
        return tfds.builder(name, data_dir=data_dir and os.path.expanduser(data_dir))
    except Exception as error:  # each kind of mistake in a name raises another
        names = tfds.list_builders(with_community_datasets=False)
        similar = difflib.get_close_matches(re.split("[:/]", name)[0], names, 2, cutoff=0.8)
        hint = f" Did you mean {' or '.join(similar)}?" if similar else ""
        raise ValueError(
            f"{name!r} is neither a folder, nor 'digits', nor a data set of TensorFlow Datasets "
            f"({_first_line(error)}).{hint}"
        ) from None


def _prepare(name, builder):
    """Downloads the set, unless it is there."""
    from tensorflow_datasets.core.download import downloader

    # Of TFDS' ten, between which it waits longer and longer: without a network, 200 s in all.
    downloader.MAX_RETRIES = 4
    try:
        with contextlib.redirect_stdout(sys.stderr):  # standard output is for results
            builder.download_and_prepare()
    except Exception as error:  # of the network, the disk, a missing package, a manual download
        raise ValueError(
            f"{name!r} is not in {builder.data_dir} and could not be downloaded. Set TFDS_DATA_DIR "
            f"to where it is, or connect. ({_first_line(error)})"
        ) from None


def _held_out(builder):
    """The first split for testing that has labels; ImageNet's test split has none (-1)."""
    import tensorflow_datasets as tfds

    for name in ("test", "validation"):
        if name in builder.info.splits:
            label = tfds.decode.PartialDecoding({"label": True})
            dataset = builder.as_dataset(split=f"{name}[:1]", decoders=label)
            if all(int(sample["label"]) >= 0 for sample in dataset):
                return name
    return None


def _first_line(error):
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return textwrap.shorten(lines[0], 200, placeholder=" ...")


def _cover(images, shape):
    """Scales one image or a batch until the target is covered, then crops around the centre."""
    import tensorflow as tf

    target = tf.constant(shape[:2], tf.float32)
    size = tf.cast(tf.shape(images)[-3:-1], tf.float32)
    scaled = tf.cast(tf.math.ceil(size * tf.reduce_max(target / size) - 1e-3), tf.int32)
    images = tf.image.resize(images, scaled, "bicubic", antialias=True)
    images = tf.image.resize_with_crop_or_pad(images, *shape[:2])
    return tf.cast(tf.clip_by_value(tf.round(images), 0, 255), tf.uint8)
