"""Writes a SavedModel for serving: from pixels or image files to classes and scores."""

import math

import keras

from keras_gmlp.export.tflite import own_weights
from keras_gmlp.tasks.confidence import read_confidence
from keras_gmlp.utils.files import atomic_folder

# TensorFlow's kernels for the interpolations of `read_image`; a model with another, which is
# "nearest", has no signature for files.
KERNELS = {"bilinear": "triangle", "bicubic": "keyscubic", "lanczos": "lanczos3"}


def write_saved_model(model, path, options):
    """Writes a SavedModel for any number of texts, or of images as floats, bytes or files."""
    import tensorflow as tf

    card, module = options.card, own_weights(model)
    temperature = read_confidence(card).temperature
    several = card.get("thresholds") is not None
    names = tf.constant(list(options.labels or map(str, range(model.output_shape[-1]))))

    def answer(*arrays):
        logits = model(keras.tree.pack_sequence_as(model.input, arrays), training=False)
        if len(logits.shape) != 2:  # of a language model
            return {"logits": logits}
        classes = tf.broadcast_to(names, tf.shape(logits))
        # With thresholds, any number of labels applies.
        probabilities = tf.sigmoid(logits) if several else tf.nn.softmax(logits / temperature)
        return {"logits": logits, "probabilities": probabilities, "classes": classes}

    def decode(files):
        spec = tf.TensorSpec(shape, tf.float32)
        return tf.map_fn(lambda file: read(file, shape, card), files, fn_output_signature=spec)

    def signature(prepare, dtype, shape):
        spec = tf.TensorSpec((None, *shape), dtype, name="image")
        return tf.function(lambda image: answer(prepare(image)), input_signature=[spec])

    specs = [tf.TensorSpec((None, *size[1:]), *rest) for size, *rest in options.list_inputs(model)]
    signatures = {"serving_default": tf.function(answer, input_signature=specs)}
    if options.task is None:
        shape = tuple(model.input_shape[1:])
        signatures["uint8"] = signature(lambda image: tf.cast(image, tf.float32), tf.uint8, shape)
        if (card.get("interpolation") or "bicubic") in KERNELS:
            signatures["encoded"] = signature(decode, tf.string, ())
    for name, function in signatures.items():
        setattr(module, name, function)
    with atomic_folder(path) as temporary:
        # Through a module: `model.export` would store the weights twice.
        tf.saved_model.save(module, str(temporary), signatures=signatures)
        options.write_card(temporary, model)


def read(file, shape, card):
    """Decodes an image file and scales it to the model's pixels, by default to cover them."""
    import tensorflow as tf

    height, width, channels = shape
    pixels = _decode(file, channels)
    size = tf.shape(pixels)[:2]
    wanted = tf.constant([height, width])
    fit, inner = card.get("fit") or "crop", wanted
    if fit == "pad":  # as `data.images.resizing.find_inner_size`
        tight = tf.argmin(wanted / size)
        inner = tf.maximum((2 * wanted[tight] * size + size[tight]) // (2 * size[tight]), 1)
    if fit != "crop":
        scaled, offset = inner, tf.zeros(2)
    elif card.get("crop"):  # in whole pixels, as published weights were tested
        least = tf.constant([math.floor(side / card["crop"]) for side in (height, width)])
        tight = tf.argmax(least / size)  # the side that is smaller for its target
        scaled = least[tight] * size // size[tight]
        offset = tf.round((scaled - wanted) / 2)
    else:
        scaled = tf.cast(size, tf.float64) * tf.reduce_max(wanted / size)
        offset = (scaled - tf.cast(wanted, tf.float64)) / 2
    scale = tf.cast(tf.cast(scaled, tf.float64) / tf.cast(size, tf.float64), tf.float32)
    offset = tf.cast(offset, tf.float32)
    # One after the other, each rounded to whole levels, as in Pillow.
    for axis in (1, 0):
        one = tf.one_hot(axis, 2)
        pixels = tf.raw_ops.ScaleAndTranslate(
            images=pixels[None],
            size=[inner[0] if axis == 0 else size[0], inner[1]],
            scale=1 + one * (scale - 1),
            translation=-offset * one,
            kernel_type=KERNELS[card.get("interpolation") or "bicubic"],
            antialias=True,
        )
        pixels = tf.clip_by_value(tf.round(pixels[0]), 0, 255)
    top, left = tf.unstack((wanted - inner) // 2)  # on black
    return tf.ensure_shape(tf.image.pad_to_bounding_box(pixels, top, left, height, width), shape)


def _decode(file, channels):
    """Decodes a JPEG or PNG file, upright, to grey or RGB in float32, transparency over white."""
    import tensorflow as tf

    def jpeg():  # the default decoder differs from other programs by up to 5 levels
        rgb = tf.io.decode_jpeg(file, channels=3, dct_method="INTEGER_ACCURATE")
        return _turn_upright(tf.cast(rgb, tf.float32), file, b"Exif\0\0")

    def png():
        rgba = tf.cast(tf.io.decode_png(file, channels=4), tf.float32)
        alpha = rgba[..., 3:]
        # TensorFlow gives an opaque PNG of 1, 2 or 4 bits the largest alpha of so few bits.
        least, most = tf.reduce_min(alpha), tf.reduce_max(alpha)
        is_opaque = (least == most) & tf.reduce_any(most == [1.0, 3.0, 15.0])
        opacity = tf.where(is_opaque, 1.0, alpha / 255)
        rgb = tf.round(rgba[..., :3] * opacity + 255 * (1 - opacity))
        return _turn_upright(rgb, file, b"eXIf")

    rgb = tf.ensure_shape(tf.cond(tf.io.is_jpeg(file), jpeg, png), (None, None, 3))
    return rgb if channels == 3 else tf.round(rgb @ [[0.299], [0.587], [0.114]])


def _turn_upright(pixels, file, marker):
    """Turns and mirrors pixels as the EXIF orientation of their file says."""
    import tensorflow as tf

    # After the marker: the byte order, the place of the tags, their number and the tags of 12
    # bytes each, of which the first two bytes are a name and the ninth and tenth a value.
    tags = tf.strings.split(file, marker, maxsplit=1)[-1]
    is_little = tf.strings.substr(tags, 0, 4) == b"II*\0"
    is_exif = is_little | (tf.strings.substr(tags, 0, 4) == b"MM\0*")
    little, big = (tf.io.decode_raw(tags, tf.uint16, flag, 1 << 16) for flag in (True, False))
    words = tf.cast(tf.where(is_little, little, big), tf.int32)
    start = (words[2] + words[3]) // 2
    rows = words[start + 1 :][: 6 * tf.reduce_sum(words[start : start + 1])]
    values = rows[4::6]
    found = tf.boolean_mask(values, is_exif & (rows[::6][: tf.size(values)] == 0x112))
    orientation = tf.concat([found, [1]], 0)[0]
    mirrors = [tf.reduce_any(orientation == kinds) for kinds in ([3, 4, 7, 8], [2, 3, 6, 7])]
    is_lying = (orientation >= 5) & (orientation <= 8)
    pixels = tf.cond(is_lying, lambda: tf.transpose(pixels, (1, 0, 2)), lambda: pixels)
    return tf.reverse(pixels, tf.boolean_mask([0, 1], mirrors))
