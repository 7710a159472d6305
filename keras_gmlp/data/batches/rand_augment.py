"""RandAugment's operations for batches (arXiv:1909.13719), with the ranges of keras-cv's."""

import functools

import numpy as np

OPERATIONS_PER_IMAGE = 2
STRENGTH_STDDEV = 0.15
GREY = np.array([0.2989, 0.587, 0.114], "float32")  # as TensorFlow's rgb_to_grayscale


def apply_operations(images, index, strength, signed, xp):
    """Applies to each image the operation drawn for it: `OPERATIONS[index]`, or none beyond."""
    numbers = [array[:, None, None, None] for array in (index, strength, signed)]
    functions = [functools.partial(function, xp=xp) for function in (*COLOURS.values(), _shift)]
    # The four last operations are one function.
    kinds = xp.where(index < len(OPERATIONS), xp.minimum(index, len(COLOURS)), len(functions))
    images = xp.apply_each(functions, kinds, images, *numbers)
    return xp.minimum(xp.maximum(images, 0.0), 255.0)


def _auto_contrast(images, index, strength, signed, xp):
    """Stretches each channel to the range from 0 to 255."""
    return xp.auto_contrast(images)


def _equalize(images, index, strength, signed, xp):
    """Makes all levels of each channel equally frequent, as `keras_cv.layers.Equalization`."""
    pixels = images.shape[1] * images.shape[2]

    def make_table(histogram):
        used = xp.where(histogram == 0, pixels, histogram)
        fewest = xp.smallest(used)
        step = (pixels - fewest) // 255
        below = xp.cumsum(histogram, axis=-1) - histogram
        table = (below + step // 2) // xp.maximum(step, 1)
        return xp.where(step == 0, np.arange(256, dtype="int32"), table)  # of few pixels

    return xp.cast(xp.map_levels(xp.cast(images, "int32"), make_table), "float32")


def _solarize(images, index, strength, signed, xp):
    """Brightens the image, then inverts what is bright."""
    images = xp.minimum(images + 110.0 * strength, 255.0)
    return xp.where(images < 255.0 * (1.0 - strength), images, 255.0 - images)


def _remove_color(images, index, strength, signed, xp):
    if images.shape[-1] == 1:
        return images
    grey = xp.tensordot(images, GREY, [[-1], [-1]])[..., None]
    return images + strength * (grey - images)


def _change_contrast(images, index, strength, signed, xp):
    mean = xp.mean(images, (1, 2), keepdims=True)
    return mean + (1.0 + signed) * (images - mean)


def _change_brightness(images, index, strength, signed, xp):
    return images + 255.0 * signed


def _shift(images, index, strength, signed, xp):
    """Shears or translates, interpolated between two pixels, mirrored beyond the border."""
    height, width, channels = images.shape[1:]
    y, x = np.arange(height, dtype="float32")[:, None, None], np.arange(width, dtype="float32")
    x = x[:, None]
    along_x, shears = index % 2 == 0, index < OPERATIONS.index("translate_x")
    slope = strength * xp.sign(signed)
    moved_x = x + xp.where(shears, slope * y, width * signed)
    moved_y = y + xp.where(shears, slope * x, height * signed)
    place = xp.where(along_x, moved_x, moved_y)
    first = xp.floor(place)
    # Pixels are counted row by row: where the place is along one axis, the rest is constant.
    size = width if width == height else xp.where(along_x, width, height)
    step = xp.where(along_x, 1, width)
    rest = xp.where(along_x, width * np.int32(y), np.int32(x))
    pixels = xp.reshape(images, (-1, height * width, channels))

    def take(position):
        position = position % (2 * size)
        position = xp.minimum(position, 2 * size - 1 - position)
        return xp.take(pixels, xp.reshape(position * step + rest, (-1, height * width)), 1)

    share = xp.reshape(place - first, (-1, height * width, 1))
    first = xp.cast(first, "int32")
    near, far = take(first), take(first + 1)
    return xp.reshape(near + share * (far - near), (-1, height, width, channels))


# In keras-cv's order. Each takes images, and the numbers of `apply_operations` for each of them.
COLOURS = {
    "auto_contrast": _auto_contrast,
    "equalize": _equalize,
    "solarize": _solarize,
    "color": _remove_color,
    "contrast": _change_contrast,
    "brightness": _change_brightness,
}

OPERATIONS = [*COLOURS, "shear_x", "shear_y", "translate_x", "translate_y"]
