"""Small data sets as TensorFlow Datasets prepares them, by its own writer."""

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds


def write_set(root, name, features, **splits):
    """Writes a set: `features` of TFDS, and for each split the columns of its samples, a dict."""
    tables = {split: tf.data.Dataset.from_tensor_slices(c) for split, c in splits.items()}
    place, _, config = name.partition("/")
    tfds.dataset_builders.store_as_tfds_dataset(
        place,
        "1.0.0",
        tfds.features.FeaturesDict(features),
        tables,
        config or None,
        str(root),
        disable_shuffling=True,
    )


def write_images(root, name="planted", shape=None, names="abc", **splits):
    """Writes a set of images: for each split uint8 images and class indices."""
    images = next(iter(splits.values()))[0]
    shape = images.shape[1:] if shape is None else shape
    features = {"image": tfds.features.Image(shape=shape)}
    features["label"] = tfds.features.ClassLabel(names=list(names))
    columns = {s: {"image": i, "label": np.asarray(n, "int64")} for s, (i, n) in splits.items()}
    write_set(root, name, features, **columns)
