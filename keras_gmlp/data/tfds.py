"""Sets of TensorFlow Datasets (TFDS), which it downloads and prepares where they are missing."""

import contextlib
import functools
import os
import re
import sys

from keras_gmlp.utils.environment import is_installed
from keras_gmlp.utils.errors import did_you_mean, first_line

# Data sets of letters and digits: a mirrored image has another label, or none.
MIRRORED_CHANGES_LABEL = (
    "binary_alpha_digits", "cmaterdb", "emnist", "kmnist", "mnist", "mnist_corrupted", "omniglot",
    "svhn_cropped",
)  # fmt: skip


def open_set(name, data_dir, others, check):
    """Returns the builder of a prepared set; before a download `check` gets its features."""
    if not is_installed("tensorflow_datasets"):
        raise ValueError(
            f"{name!r} is neither {others}; for a set of TensorFlow Datasets install it: "
            "pip install -e '.[train]'"
        )
    import tensorflow_datasets as tfds

    data_dir = os.path.expanduser(data_dir or os.environ.get("TFDS_DATA_DIR") or "") or None
    try:
        builder = tfds.builder(name, data_dir=data_dir)
    except Exception as error:  # mistakes in a name raise many types
        names = tfds.list_builders(with_community_datasets=False)
        base = re.split("[:/]", name)[0]
        hint = "" if base in names else did_you_mean(base, names, str, most=2, cutoff=0.8)
        raise ValueError(
            f"{name!r} is neither {others}, nor a data set of TensorFlow Datasets "
            f"({first_line(error)}).{hint}"
        ) from None
    check(dict(builder.info.features.items()))
    try:
        with contextlib.redirect_stdout(sys.stderr):  # standard output is for results
            builder.download_and_prepare()
    except Exception as error:  # network, disk, missing package, manual download
        raise ValueError(
            f"{name!r} is not in {builder.data_dir} and could not be downloaded. Set TFDS_DATA_DIR "
            f"to the folder that contains it, or connect to the internet. ({first_line(error)})"
        ) from None
    return builder


def read_split(builder, split, **options):
    """Returns a `tf.data.Dataset` of a split, in the same order each time."""
    import tensorflow_datasets as tfds

    # The cache of small sets would warn of each reader that stops early.
    config = tfds.ReadConfig(try_autocache=False)
    return builder.as_dataset(split=split, shuffle_files=False, read_config=config, **options)


def choose_test(builder, names, label):
    """Returns the first of some splits whose labels are not hidden, which are -1; or `None`."""
    for name in filter(builder.info.splits.__contains__, names):
        for sample in read_split(builder, name).take(1):
            if sample[label] >= 0:
                return name
    return None


def load_images(name, wanted, data_dir=None, fit="crop"):
    """Opens a set with the features image and label."""
    # Import Pillow, which texts do not require.
    from keras_gmlp.data.images.image_data import ImageData
    from keras_gmlp.data.images.read_image import read_image
    from keras_gmlp.data.images.resizing import choose_shape

    def check(features):
        image, label = (features.get(feature) for feature in ("image", "label"))
        is_image = image is not None and len(image.shape) == 3 and image.shape[2] in (None, 1, 3)
        if not is_image or image.dtype != "uint8" or not hasattr(label, "num_classes"):
            raise ValueError(
                f"{name!r} is not an image-classification data set: expected the features image, "
                f"of 1 or 3 channels, and label; it has {', '.join(sorted(features))}."
            )

    builder = open_set(name, data_dir, "a folder, nor 'digits'", check)
    features = builder.info.features
    stored = tuple(features["image"].shape)  # None if they vary
    shape = choose_shape(wanted, stored, (224, 224, 3))

    def read(split):
        import tensorflow as tf
        import tensorflow_datasets as tfds

        resize = functools.partial(read_image, image_shape=shape, fit=fit)

        def decode(sample):  # to the pixels that Pillow gives, unlike TFDS; also PNG
            channels = stored[2] or 3
            image = tf.io.decode_jpeg(sample["image"], channels, dct_method="INTEGER_ACCURATE")
            if stored != shape:
                image = tf.numpy_function(resize, [image], tf.uint8)
            return tf.ensure_shape(image, shape), sample["label"]

        samples = read_split(builder, split, decoders={"image": tfds.decode.SkipDecoding()})
        return samples.map(decode, num_parallel_calls=tf.data.AUTOTUNE)

    held_out = choose_test(builder, ("test", "validation"), "label")
    parts = ("train", held_out) if held_out else ("train[:80%]", "train[80%:]")
    mirror = builder.name not in MIRRORED_CHANGES_LABEL
    labels = tuple(features["label"].names)
    return ImageData(name, labels, shape, *map(read, parts), mirror, fit=fit)
