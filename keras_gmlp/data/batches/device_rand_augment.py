"""RandAugment in JAX, for one image at a time under `jax.vmap`; see `data.rand_augment`.

Given an operation and its strength, an image changes as in the tf.data form.
"""

from keras_gmlp.data.batches.rand_augment import OPERATIONS, OPERATIONS_PER_IMAGE, STRENGTH_STDDEV

NAMES = tuple(OPERATIONS)

SHIFTS = ("shear_x", "shear_y", "translate_x", "translate_y")


def rand_augment(image, draws, magnitude):
    """Applies two random operations to an image."""
    for numbers in draws.reshape(OPERATIONS_PER_IMAGE, 3):
        image = apply_operation(image, *draw_operation(numbers, magnitude))
    return image


def draw_operation(draws, magnitude):
    """Turns three uniform numbers into an operation and its strengths."""
    import jax
    import jax.numpy as jnp

    index = (draws[0] * (len(NAMES) + 1)).astype("int32")
    normal = jax.scipy.special.ndtri(jnp.maximum(draws[1], 1e-7))  # uniform numbers may be 0
    strength = jnp.clip(magnitude + STRENGTH_STDDEV * normal, 0.0, 1.0)
    return index, strength, magnitude * (2 * draws[2] - 1)


def apply_operation(image, index, strength, signed):
    """Applies the operation `NAMES[index]`, or none for `index == len(NAMES)`."""
    import jax.numpy as jnp

    results = {
        "auto_contrast": _auto_contrast(image),
        "equalize": _equalize(image),
        "solarize": _solarize(image, strength),
        "color": _remove_color(image, strength),
        "contrast": _change_contrast(image, signed),
        "brightness": image + 255.0 * signed,
    }
    shifted = _shift(image, index, strength, signed)
    results |= dict.fromkeys(SHIFTS, shifted)
    changed = image
    for place, name in enumerate(NAMES):
        changed = jnp.where(index == place, results[name], changed)
    return jnp.clip(changed, 0.0, 255.0)


def _auto_contrast(image):
    import jax.numpy as jnp

    low, high = image.min(axis=(0, 1)), image.max(axis=(0, 1))
    stretched = (image - low) * (255.0 / jnp.where(high > low, high - low, 1.0))
    return jnp.where(high > low, stretched, image)


def _equalize(image):
    import jax.numpy as jnp

    height, width, channels = image.shape
    levels = image.astype("int32")
    index = levels + 256 * jnp.arange(channels)
    histogram = jnp.zeros(256 * channels, "int32").at[index.ravel()].add(1).reshape(channels, 256)
    fewest = jnp.where(histogram == 0, height * width, histogram).min(axis=1, keepdims=True)
    step = (height * width - fewest) // 255
    below = jnp.cumsum(histogram, axis=1) - histogram
    table = (below + step // 2) // jnp.maximum(step, 1)
    table = jnp.where(step == 0, jnp.arange(256), table)  # of fewer than 256 pixels
    return table.ravel()[index].astype("float32")


def _solarize(image, strength):
    import jax.numpy as jnp

    image = jnp.minimum(image + 110.0 * strength, 255.0)
    return jnp.where(image < 255.0 * (1.0 - strength), image, 255.0 - image)


def _remove_color(image, strength):
    import jax.numpy as jnp

    if image.shape[-1] == 1:
        return image
    grey = image @ jnp.array([0.2989, 0.587, 0.114])  # as TensorFlow's rgb_to_grayscale
    return image + strength * (grey[..., None] - image)


def _change_contrast(image, signed):
    mean = image.mean(axis=(0, 1))
    return mean + (1.0 + signed) * (image - mean)


def _shift(image, index, strength, signed):
    """Shears or translates, interpolated between two pixels, mirrored beyond the border."""
    import jax.numpy as jnp

    height, width, _ = image.shape
    rows, columns = jnp.arange(height)[:, None], jnp.arange(width)[None, :]
    sheared = strength * jnp.sign(signed)
    distances = {
        "shear_x": sheared * rows + 0.0 * columns,
        "shear_y": sheared * columns + 0.0 * rows,
        "translate_x": width * signed + 0.0 * (rows + columns),
        "translate_y": height * signed + 0.0 * (rows + columns),
    }
    distance = jnp.zeros((height, width))
    along_x = False
    for name, value in distances.items():
        chosen = index == NAMES.index(name)
        distance = jnp.where(chosen, value, distance)
        along_x |= chosen & name.endswith("_x")
    size = jnp.where(along_x, width, height)
    place = jnp.where(along_x, columns, rows) + distance
    first = jnp.floor(place)
    share = (place - first)[..., None]

    def take(position):
        position = position % (2 * size)
        position = jnp.minimum(position, 2 * size - 1 - position)
        row = jnp.where(along_x, rows, position)
        column = jnp.where(along_x, position, columns)
        return image[row, column]

    first = first.astype("int32")
    near, far = take(first), take(first + 1)
    return near + share * (far - near)
