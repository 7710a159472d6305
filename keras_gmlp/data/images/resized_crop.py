"""Random resized crop: a random window of an image, scaled to one size.

The windows are drawn as by torchvision's `RandomResizedCrop`.
"""

import functools

ATTEMPTS = 10  # windows drawn before the largest one around the centre is taken
DRAWS = 2 * ATTEMPTS + 2  # uniform numbers for an image: areas, aspects and the place
ASPECT = (3 / 4, 4 / 3)  # width relative to height, uniform on a logarithmic scale
HEAD = 4096  # bytes of a JPEG in which a camera's orientation is searched

# Orientation 2 to 8 in the Exif data of a JPEG, in either byte order, or named in its XMP data.
TURNED = (
    r"\C*(\x01\x12\x00\x03\x00\x00\x00\x01\x00[\x02-\x08]"
    r"|\x12\x01\x03\x00\x01\x00\x00\x00[\x02-\x08]|tiff:Orientation)\C*"
)


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


def crop_jpeg(encoded, draws, scale, shape):
    """Decodes and scales a random window of a JPEG in TensorFlow, which takes the least time."""
    import tensorflow as tf

    size = tf.cast(tf.io.extract_jpeg_shape(encoded), tf.float32)
    window = tf.cast(tf.stack(draw_window(draws, size[0], size[1], scale, tf)), tf.int32)

    def decode(ratio):
        edges = (tf.stack([window[:2], window[:2] + window[2:]]) + ratio // 2) // ratio
        part = tf.concat([edges[0], edges[1] - edges[0]], 0)
        return tf.io.decode_and_crop_jpeg(
            encoded, part, channels=shape[-1], ratio=ratio, dct_method="INTEGER_ACCURATE"
        )

    ratios = (1, 2, 4, 8)
    larger = tf.reduce_min(window[2:] // shape[:2])
    index = tf.reduce_sum(tf.cast(larger >= ratios[1:], tf.int32))
    image = tf.switch_case(index, [functools.partial(decode, ratio) for ratio in ratios])
    # In float32, because TensorFlow takes twice as long to scale uint8. Averaging where images
    # shrink would take four times as long, and they shrink to a half at most.
    image = tf.image.resize(tf.cast(image, tf.float32), shape[:2])
    return tf.ensure_shape(tf.cast(tf.round(image), tf.uint8), shape)


def is_upright_jpeg(encoded):
    """Returns whether bytes are a JPEG that `crop_jpeg` decodes as `read_image` does."""
    import tensorflow as tf

    start = tf.maximum(tf.strings.length(encoded) - 2, 0)
    whole = tf.strings.substr(encoded, start, 2) == b"\xff\xd9"
    turned = tf.strings.regex_full_match(tf.strings.substr(encoded, 0, HEAD), TURNED)
    return tf.io.is_jpeg(encoded) & whole & ~turned
