"""RandAugment for batches: every draw follows from the batch's key.

The operations and their ranges are those of keras-cv's `RandAugment`, whose own draws have a state
and run on one thread. Here the same key gives the same batch on any number of threads.
"""

import functools

from keras_gmlp.data.batches.share import WHOLE

OPERATIONS_PER_IMAGE = 2

STRENGTH_STDDEV = 0.15


def rand_augment(images, key, magnitude, share=WHOLE):
    """Applies two random operations to each image (Cubuk et al. 2019, arXiv:1909.13719)."""
    import tensorflow as tf

    keys = tf.unstack(tf.random.experimental.stateless_split(key, OPERATIONS_PER_IMAGE))
    shape = images.shape
    for step_key in keys:
        draws = draw_operations(step_key, share.whole(tf.shape(images)[0]), magnitude)
        images = apply_operations(images, *map(share.take, draws))
    return tf.ensure_shape(images, shape)


def draw_operations(key, samples, magnitude):
    """Draws an operation and its strength for each image."""
    import tensorflow as tf

    keys = tf.unstack(tf.random.experimental.stateless_split(key, 3))
    uniform = functools.partial(tf.random.stateless_uniform, (samples,))
    index = uniform(keys[0], 0, len(OPERATIONS) + 1, tf.int32)
    normal = tf.random.stateless_normal((samples,), keys[1], magnitude, STRENGTH_STDDEV)
    return index, tf.clip_by_value(normal, 0.0, 1.0), uniform(keys[2], -magnitude, magnitude)


def apply_operations(images, index, strength, signed):
    """Applies to each image the operation drawn for it; see `draw_operations`."""
    import tensorflow as tf

    # Each operation computes its own images only, about an eleventh of the batch.
    groups = tf.dynamic_partition(tf.range(tf.shape(images)[0]), index, len(OPERATIONS) + 1)
    changed = [tf.gather(images, group) for group in groups]
    for i, operation in enumerate(OPERATIONS.values()):
        numbers = (tf.gather(draw, groups[i])[:, None, None, None] for draw in (strength, signed))
        changed[i] = tf.clip_by_value(operation(changed[i], *numbers), 0.0, 255.0)
    return tf.dynamic_stitch(groups, changed)


def _auto_contrast(images, strength, signed):
    """Stretches each channel to the range from 0 to 255."""
    import keras_cv

    return keras_cv.layers.AutoContrast((0, 255))(images)


def _equalize(images, strength, signed):
    """Makes all levels of each channel equally frequent, as `keras_cv.layers.Equalization`."""
    import tensorflow as tf

    height, width, channels = images.shape[1:]
    levels = tf.cast(images, tf.int32)
    rows = tf.range(tf.shape(images)[0] * channels)  # one histogram for each channel of each image
    index = levels + 256 * tf.reshape(rows, (-1, 1, 1, channels))
    histogram = tf.math.bincount(tf.reshape(index, (-1,)), minlength=256 * tf.size(rows))
    histogram = tf.reshape(histogram, (-1, 256))
    fewest = tf.reduce_min(tf.where(histogram == 0, height * width, histogram), 1, keepdims=True)
    step = (height * width - fewest) // 255
    below = tf.cumsum(histogram, axis=1, exclusive=True)
    table = (below + step // 2) // tf.maximum(step, 1)
    table = tf.where(step == 0, tf.range(256), table)  # of fewer than 256 pixels
    return tf.cast(tf.gather(tf.reshape(table, (-1,)), index), tf.float32)


def _solarize(images, strength, signed):
    """Brightens the image, then inverts what is bright."""
    import tensorflow as tf

    images = tf.minimum(images + 110.0 * strength, 255.0)
    return tf.where(images < 255.0 * (1.0 - strength), images, 255.0 - images)


def _remove_color(images, strength, signed):
    import tensorflow as tf

    if images.shape[-1] == 1:
        return images
    return images + strength * (tf.image.rgb_to_grayscale(images) - images)


def _change_contrast(images, strength, signed):
    import tensorflow as tf

    mean = tf.reduce_mean(images, axis=(1, 2), keepdims=True)
    return mean + (1.0 + signed) * (images - mean)


def _change_brightness(images, strength, signed):
    return images + 255.0 * signed


def _shear_x(images, strength, signed):
    return _shift(images, _direction(strength, signed) * _range(images, axis=1), axis=2)


def _shear_y(images, strength, signed):
    return _shift(images, _direction(strength, signed) * _range(images, axis=2), axis=1)


def _translate_x(images, strength, signed):
    return _shift(images, images.shape[2] * signed, axis=2)


def _translate_y(images, strength, signed):
    return _shift(images, images.shape[1] * signed, axis=1)


def _direction(strength, signed):
    import tensorflow as tf

    return strength * tf.sign(signed)


def _range(images, axis):
    """Returns coordinates along an axis, of shape `(1, height, 1, 1)` or `(1, 1, width, 1)`."""
    import tensorflow as tf

    shape = [-1 if i == axis else 1 for i in range(4)]
    return tf.reshape(tf.range(images.shape[axis], dtype=tf.float32), shape)


def _shift(images, distance, axis):
    """Takes each pixel from a distance along an axis, interpolated, mirrored beyond the border."""
    import tensorflow as tf

    height, width, channels = images.shape[1:]
    size = images.shape[axis]
    place = _range(images, axis) + distance
    first = tf.floor(place)
    pixels = tf.reshape(images, (-1, height * width, channels))
    other = tf.cast(_range(images, 3 - axis), tf.int32)

    def take(index):
        index = tf.math.floormod(index, 2 * size)
        index = tf.minimum(index, 2 * size - 1 - index)
        index = index * width + other if axis == 1 else index + other * width
        return tf.gather(pixels, tf.reshape(index, (-1, height * width)), batch_dims=1)

    share = tf.reshape(place - first + 0.0 * tf.cast(other, tf.float32), (-1, height * width, 1))
    first = tf.cast(first, tf.int32)
    near, far = take(first), take(first + 1)
    return tf.reshape(near + share * (far - near), tf.shape(images))


# In keras-cv's order. Each takes images and its two draws of shape (batch, 1, 1, 1).
OPERATIONS = {
    "auto_contrast": _auto_contrast,
    "equalize": _equalize,
    "solarize": _solarize,
    "color": _remove_color,
    "contrast": _change_contrast,
    "brightness": _change_brightness,
    "shear_x": _shear_x,
    "shear_y": _shear_y,
    "translate_x": _translate_x,
    "translate_y": _translate_y,
}
