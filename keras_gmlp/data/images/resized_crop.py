"""Random resized crop: a random window of an image, scaled to one size.

The windows are drawn as by torchvision's `RandomResizedCrop`.
"""

ATTEMPTS = 10  # windows drawn before the largest one around the centre is taken
DRAWS = 2 * ATTEMPTS + 2  # uniform numbers for an image: areas, aspects and the place
ASPECT = (3 / 4, 4 / 3)  # width relative to height, uniform on a logarithmic scale


def draw_window(draws, height, width, scale, numpy):
    """Returns a random window of an image."""
    shares = scale[0] + draws[:ATTEMPTS] * (scale[1] - scale[0])
    aspects = ASPECT[0] * (ASPECT[1] / ASPECT[0]) ** draws[ATTEMPTS : 2 * ATTEMPTS]
    heights = numpy.round(numpy.sqrt(height * width * shares / aspects))
    widths = numpy.round(numpy.sqrt(height * width * shares * aspects))
    fits = (heights > 0) & (heights <= height) & (widths > 0) & (widths <= width)
    first = numpy.argmax(numpy.where(fits, 1.0, 0.0))
    found = fits[first]
    rows = numpy.minimum(height, numpy.round(width / ASPECT[0]))
    columns = numpy.minimum(width, numpy.round(height * ASPECT[1]))
    rows = numpy.where(found, heights[first], rows)
    columns = numpy.where(found, widths[first], columns)
    place = [
        numpy.where(found, numpy.floor(draw * (size - part + 1)), numpy.floor((size - part) / 2))
        for draw, size, part in ((draws[-2], height, rows), (draws[-1], width, columns))
    ]
    return *place, rows, columns


def crop_and_resize(image, draws, scale):
    """Scales a random window of an image to the image's size, bilinearly, in JAX."""
    import jax.numpy as jnp

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
