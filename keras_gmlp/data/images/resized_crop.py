"""Random resized crop: a random window of an image, scaled to one size.

The windows are drawn as by torchvision's `RandomResizedCrop`.
"""

ATTEMPTS = 10  # windows drawn before the largest one around the centre is taken
DRAWS = 2 * ATTEMPTS + 2  # uniform numbers for an image: areas, aspects and the place
ASPECT = (3 / 4, 4 / 3)  # width relative to height, uniform on a logarithmic scale


def draw_windows(draws, height, width, scale, numpy):
    """Returns a random window of each image: top, left, height and width `(..., 4)`."""
    areas = height * width * (scale[0] + draws[..., :ATTEMPTS] * (scale[1] - scale[0]))
    aspects = ASPECT[0] * (ASPECT[1] / ASPECT[0]) ** draws[..., ATTEMPTS : 2 * ATTEMPTS]
    heights, widths = (numpy.round(numpy.sqrt(a)) for a in (areas / aspects, areas * aspects))
    fits = (heights > 0) & (heights <= height) & (widths > 0) & (widths <= width)
    found, first = numpy.any(fits, axis=-1), numpy.argmax(fits, axis=-1)[..., None]
    places, sides = [], []
    for size, drawn, largest, draw in (
        (height, heights, min(height, round(width / ASPECT[0])), draws[..., -2]),
        (width, widths, min(width, round(height * ASPECT[1])), draws[..., -1]),
    ):
        side = numpy.take_along_axis(drawn, first, axis=-1)[..., 0]
        sides.append(numpy.where(found, side, largest))
        free = size - sides[-1]
        places.append(numpy.floor(numpy.where(found, draw * (free + 1), free / 2)))
    return numpy.stack([*places, *sides], axis=-1)


def crop_and_resize(image, draws, scale):
    """Scales a random window of an image to the image's size, bilinearly, in JAX."""
    import jax.numpy as jnp

    top, left, height, width = draw_windows(draws, *image.shape[:2], scale, jnp)
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
