"""The augmentation in tf.data: each batch is changed by its own random key.

The same key gives the same batch, whatever was drawn before and on any number of threads, so that
a resumed or repeated run sees the same images. keras-cv's random layers draw from generators with
a state, and its CutMix gives labels that differ from the pixels' shares.
"""

import math

import tensorflow as tf

from keras_gmlp.data.batches import augmentation as shared
from keras_gmlp.data.batches.namespaces import tensorflow_namespace
from keras_gmlp.data.batches.rand_augment import OPERATIONS, OPERATIONS_PER_IMAGE, STRENGTH_STDDEV
from keras_gmlp.data.images.resized_crop import DRAWS

_fold_in = tf.random.experimental.stateless_fold_in


def _split(key, number):
    return tf.unstack(tf.random.experimental.stateless_split(key, number))


def draw_windows(key, samples):
    """Returns uniform numbers for the random resized crop of a batch, `(samples, DRAWS)`."""
    return tf.random.stateless_uniform((samples, DRAWS), _fold_in(key, 6))


def make_augmenter(augmentation, data, batch_size, own=slice(None)):
    """Returns a function that augments a batch, or some rows of it, except for `resized_crop`."""
    if augmentation.rand_augment:
        # If it is missing, fail here with its name: tf.data would bury it in its own traceback.
        import keras_cv  # noqa: F401

    change = shared.make_change(
        augmentation, data.mirror, len(data.labels), tensorflow_namespace(), data.label_rows()
    )

    def augment(key, images, labels, *rest):
        draws = HostDraws(key, batch_size, own)
        if isinstance(labels, dict):  # with a teacher's answers
            images, changed = change(images, labels["labels"], draws, *rest)
            return images, {**labels, "labels": changed}
        return change(images, labels, draws, *rest)

    return augment


class HostDraws:
    """The random numbers of rows of a batch; each part of the augmentation has its key."""

    # Drawn for the whole batch, so that a sample does not depend on the number of processes.

    def __init__(self, key, batch_size, own=slice(None)):
        self._crop, self._flip, self._operations, self._cutout, mixing = _split(key, 5)
        self._erasing = _fold_in(key, 5)
        self._choice, _, self._weight, self._place = _split(mixing, 4)
        self._shape, self._own = (batch_size,), own

    def starts(self, margins):
        """Returns the first row and the first column of windows of padded images."""
        return self._integers(self._crop, [2 * margin + 1 for margin in margins])

    def mirrored(self):
        """Returns which images to mirror."""
        return self._uniform(self._flip) < 0.5

    def operations(self, magnitude):
        """Yields an operation of RandAugment and its strengths for each image."""
        for key in _split(self._operations, OPERATIONS_PER_IMAGE):
            operation, strength, sign = _split(key, 3)
            index = self._uniform(operation, 0, len(OPERATIONS) + 1, "int32")
            normal = tf.random.stateless_normal(self._shape, strength, magnitude, STRENGTH_STDDEV)
            strength = tf.clip_by_value(normal, 0.0, 1.0)[self._own]
            yield index, strength, self._uniform(sign, -magnitude, magnitude)

    def cutout(self, size):
        """Returns the row and the column of the squares' centres."""
        return self._integers(self._cutout, size)

    def erasing(self, size):
        """Returns a chance, the share of the area, the aspect and the centre of a rectangle."""
        chance, area, aspect, place = _split(self._erasing, 4)
        ratio = tf.exp(self._uniform(aspect, *map(math.log, shared.ERASED_ASPECT)))
        area = self._uniform(area, *shared.ERASED_AREA)
        return self._uniform(chance), area, ratio, self._integers(place, size)

    def choice(self):
        """Returns the number that decides how the batch mixes."""
        return tf.random.stateless_uniform((), self._choice)

    def weights(self):
        """Returns the shares that MixUp keeps."""
        return self._beta(shared.MIXUP_ALPHA)

    def cutmix(self, size):
        """Returns the sides of rectangles relative to the image's, and their centres."""
        return tf.sqrt(1.0 - self._beta(1.0)), self._integers(self._place, size)

    def _beta(self, alpha):
        draws = tf.random.stateless_gamma((2, *self._shape), self._weight, alpha)
        first, second = tf.unstack(draws[:, self._own])
        return first / (first + second)

    def _integers(self, key, counts):
        keys = _split(key, 2)
        return [self._uniform(k, 0, n, "int32") for k, n in zip(keys, counts, strict=True)]

    def _uniform(self, key, low=0, high=1, dtype="float32"):
        return tf.random.stateless_uniform(self._shape, key, low, high, dtype)[self._own]
