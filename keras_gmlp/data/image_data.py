"""The data set that batches are made from."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class ImageData:
    """Image data set with a training and a test split of (uint8 image, int64 class index).

    Attributes:
        name: Name in TFDS, path of a folder, or `"digits"`.
        labels: Class names, in the order of their indices.
        image_shape: `(height, width, channels)` of all images.
        train, test: `tf.data.Dataset` of single samples, of known cardinality.
        mirror: Whether mirrored images keep their label.
    """

    name: str
    labels: tuple[str, ...]
    image_shape: tuple[int, int, int]
    train: "tf.data.Dataset"  # noqa: F821
    test: "tf.data.Dataset"  # noqa: F821
    mirror: bool = True


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
    samples = max(1, round(fraction * int(data.train.cardinality())))
    return dataclasses.replace(data, train=data.train.take(samples))


def resize_to_cover(images, shape):
    """Scales uint8 images to cover a shape `(height, width, ...)`, then crops around the centre."""
    import tensorflow as tf

    target = tf.constant(shape[:2], tf.float32)
    size = tf.cast(tf.shape(images)[-3:-1], tf.float32)
    scaled = tf.cast(tf.math.ceil(size * tf.reduce_max(target / size) - 1e-3), tf.int32)
    images = tf.image.resize(images, scaled, "bicubic", antialias=True)
    images = tf.image.resize_with_crop_or_pad(images, *shape[:2])
    return tf.cast(tf.clip_by_value(tf.round(images), 0, 255), tf.uint8)
