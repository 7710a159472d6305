"""Image-classification data sets in TensorFlow Datasets, by name."""

import contextlib
import difflib
import os
import re
import sys

from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.records import MIRRORED_CHANGES_LABEL, decode_image
from keras_gmlp.utils.errors import first_line


def load_tfds(name, image_size, data_dir, fit="crop"):
    """Opens a data set in TFDS as an `ImageData`; see `datasets.load`."""
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
            f"{name!r} is not an image-classification data set: expected the features image and "
            f"label; it has {', '.join(sorted(known)) or features}."
        )
    height, width, channels = known["image"].shape
    shape = (*(image_size or (height or 224, width or 224)), channels or 3)
    _prepare(name, builder)

    def decode(sample):
        image = tf.numpy_function(
            lambda encoded: decode_image(encoded, shape, name, fit=fit), [sample["image"]], tf.uint8
        )
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
    return ImageData(name, labels, shape, split(train), split(test), mirror, fit=fit)


def _builder(name, data_dir):
    import tensorflow_datasets as tfds

    try:
        return tfds.builder(name, data_dir=data_dir and os.path.expanduser(data_dir))
    except Exception as error:  # mistakes in a name raise many types
        names = tfds.list_builders(with_community_datasets=False)
        similar = difflib.get_close_matches(re.split("[:/]", name)[0], names, 2, cutoff=0.8)
        hint = f" Did you mean {' or '.join(similar)}?" if similar else ""
        raise ValueError(
            f"{name!r} is neither a folder, nor 'digits', nor a data set of TensorFlow Datasets "
            f"({first_line(error)}).{hint}"
        ) from None


def _prepare(name, builder):
    """Downloads the data set if it is missing."""
    try:
        # Standard output is for results.
        with _few_retries(), contextlib.redirect_stdout(sys.stderr):
            builder.download_and_prepare()
    except Exception as error:  # network, disk, missing package, manual download
        raise ValueError(
            f"{name!r} is not in {builder.data_dir} and could not be downloaded. Set TFDS_DATA_DIR "
            f"to the folder that contains it, or connect to the internet. ({first_line(error)})"
        ) from None


@contextlib.contextmanager
def _few_retries():
    """Reduces TFDS' ten attempts, which take 200 s without a network."""
    from tensorflow_datasets.core.download import downloader

    usual = downloader.MAX_RETRIES
    downloader.MAX_RETRIES = 4
    try:
        yield
    finally:
        downloader.MAX_RETRIES = usual


def _held_out(builder):
    """Returns the first test split with labels, or None; ImageNet's has the label -1 only."""
    import tensorflow_datasets as tfds

    label = tfds.decode.PartialDecoding({"label": True})
    for name in [name for name in ("test", "validation") if name in builder.info.splits]:
        dataset = builder.as_dataset(split=f"{name}[:1]", decoders=label)
        if all(int(sample["label"]) >= 0 for sample in dataset):
            return name
    return None
