"""The augmentation in JAX, with the distributions of tf.data and other draws.

A sample's draws follow from the epoch and its position in it, however steps are grouped or devices
share them.
"""

import jax
import jax.numpy as jnp
import numpy as np

from keras_gmlp.data.batches import augmentation as shared
from keras_gmlp.data.batches.namespaces import jax_namespace
from keras_gmlp.data.batches.rand_augment import OPERATIONS, OPERATIONS_PER_IMAGE, STRENGTH_STDDEV
from keras_gmlp.data.images.resized_crop import DRAWS as WINDOW_DRAWS
from keras_gmlp.data.images.resized_crop import draw_window

# Where each part finds its uniform numbers among those of a sample. One draw of all is compiled and
# computed faster than a key for each part. The last ones are drawn for a random resized crop only.
CROP, FLIP, RAND_AUGMENT, CUTOUT = slice(0, 2), 2, slice(3, 9), slice(9, 11)
ERASING, MIXUP, CUTMIX, DRAWS = slice(11, 16), 16, slice(17, 20), 20
WINDOW = slice(DRAWS, DRAWS + WINDOW_DRAWS)


def make_device_augmenter(augmentation, classes, mirror):
    """Returns a JAX function that augments a batch."""
    change = shared.make_change(augmentation, mirror, classes, jax_namespace())
    scale, quantiles = augmentation.resized_crop, None
    if augmentation.mixup:
        quantiles = beta_quantiles(shared.MIXUP_ALPHA)

    def augment(key, images, labels, position, mixing=True, odd=False, mirrored=None):
        draws = DeviceDraws(key, position, len(images), WINDOW.stop if scale else DRAWS, quantiles)
        if scale:
            cut = jax.vmap(lambda image, window: crop_and_resize(image, window, scale))
            images = cut(images, draws.numbers[:, WINDOW])
        return change(images, labels, draws, mixing, None if mirrored is None else mirrored ^ odd)

    def augment_in_turn(key, images, labels, mirrored, *rest):
        return augment(key, images, labels, *rest, mirrored=mirrored)

    return augment_in_turn if augmentation.alternating_flip else augment


class DeviceDraws:
    """The random numbers of a batch, with the methods of `HostDraws`."""

    def __init__(self, key, position, rows, number=DRAWS, quantiles=None):
        def draw(place):
            return jax.random.uniform(jax.random.fold_in(key, place), (number,))

        self.numbers = jax.vmap(draw)(position + jnp.arange(rows))
        self._key, self._position, self._quantiles = key, position, quantiles

    def choice(self):
        # From 2**31 on no position follows: this key is the batch's.
        number = jnp.uint32(2**31) + jnp.uint32(self._position)
        return jax.random.uniform(jax.random.fold_in(self._key, number))

    def starts(self, margins):
        return self._integers(CROP, [2 * margin + 1 for margin in margins])

    def mirrored(self):
        return self.numbers[:, FLIP] < 0.5

    def operations(self, magnitude):
        numbers = self.numbers[:, RAND_AUGMENT].T.reshape(OPERATIONS_PER_IMAGE, 3, -1)
        for operation, strength, sign in numbers:
            index = (operation * (len(OPERATIONS) + 1)).astype("int32")
            normal = jax.scipy.special.ndtri(jnp.maximum(strength, 1e-7))  # numbers may be 0
            strength = jnp.clip(magnitude + STRENGTH_STDDEV * normal, 0.0, 1.0)
            yield index, strength, magnitude * (2 * sign - 1)

    def cutout(self, size):
        return self._integers(CUTOUT, size)

    def erasing(self, size):
        chance, area, aspect = self.numbers[:, ERASING].T[:3]
        low, high = shared.ERASED_AREA
        narrow, wide = shared.ERASED_ASPECT
        places = self._integers(slice(ERASING.start + 3, ERASING.stop), size)
        return chance, low + area * (high - low), narrow * (wide / narrow) ** aspect, places

    def weights(self):
        if self._quantiles is None:  # the branch is compiled, and never taken
            return self.numbers[:, MIXUP]
        values, probabilities = self._quantiles
        return jnp.interp(self.numbers[:, MIXUP], probabilities, values)

    def cutmix(self, size):
        area = self.numbers[:, CUTMIX.start]  # beta(1, 1) is uniform
        return area**0.5, self._integers(slice(CUTMIX.start + 1, CUTMIX.stop), size)

    def _integers(self, part, counts):
        columns = self.numbers[:, part].T
        return [(u * count).astype("int32") for u, count in zip(columns, counts, strict=True)]


def crop_and_resize(image, draws, scale):
    """Scales a random window of an image to the image's size, bilinearly."""
    top, left, height, width = draw_window(draws, *map(float, image.shape[:2]), scale, jnp)
    image = image.astype("float32")
    for axis, start, length in ((0, top, height), (1, left, width)):
        size = image.shape[axis]
        # Where the centres of the new pixels are in the window; its border repeats outside.
        place = (jnp.arange(size) + 0.5) * length / size - 0.5
        place = start + jnp.clip(place, 0, length - 1)
        first = jnp.floor(place).astype("int32")
        second = jnp.minimum(first + 1, size - 1)
        share = jnp.expand_dims(place - first, tuple(range(1, image.ndim - axis)))
        pixels, others = (jnp.take(image, index, axis) for index in (first, second))
        image = pixels + share * (others - pixels)
    return jnp.round(image)


def beta_quantiles(alpha, points=1025):
    """Returns values and their cumulative probabilities under a beta(alpha, alpha) distribution."""
    values = np.sin(np.linspace(0, np.pi / 2, points)) ** 2  # dense at both ends
    probabilities = jax.scipy.special.betainc(alpha, alpha, values)
    return values.astype("float32"), np.array(probabilities, "float32")
