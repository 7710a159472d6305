"""What is done to training images, each batch by a random key of its own.

The same key gives the same batch, whatever was drawn before and on however many threads: a run
that is resumed, or made again, sees the same images. keras-cv's layers draw from generators with a
state, some of them without their seed, and its CutMix gives labels that are not the pixels' shares;
of these RandAugment alone is used, with its generators set from the key.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Augmentation:
    """What is done to training images; every field at 0 or False means nothing.

    Attributes:
        crop: padding before a random crop back to size, as a share of the side (0.125: 4 of 32).
        flip: mirror left and right, half of the images.
        rand_augment: magnitude of RandAugment's two operations, in [0, 1].
        cutout: side of the square that is blacked out, as a share of the image's side.
        mixup: share of batches that MixUp blends; cutmix: share that CutMix pastes. Together at
            most 1; a batch gets one or the other.
    """

    crop: float = 0.125
    flip: bool = True
    rand_augment: float = 0.0
    cutout: float = 0.0
    mixup: float = 0.0
    cutmix: float = 0.0

    def __post_init__(self):
        for name, value in dataclasses.asdict(self).items():
            if not 0 <= value <= 1:
                raise ValueError(f"augmentation {name} must be in [0, 1]; received {value}.")
        if self.mixup + self.cutmix > 1:
            raise ValueError(
                "mixup and cutmix are shares of the batches, together at most 1; received "
                f"{self.mixup} and {self.cutmix}."
            )


def make_augmenter(augmentation, data, seed):
    """A function of (key, uint8 images, class indices) that augments the batch."""
    import tensorflow as tf

    rand_augment = None
    if augmentation.rand_augment:
        rand_augment = _rand_augment(augmentation.rand_augment, data, seed)

    def augment(key, images, labels):
        keys = _split(key, 5)
        images = tf.cast(images, tf.float32)
        if augmentation.crop:
            images = _crop(images, augmentation.crop, keys[0])
        if augmentation.flip and data.mirror:
            images = _flip(images, keys[1])
        if rand_augment:
            images = rand_augment(images, keys[2])
        if augmentation.cutout:
            images = tf.where(_rectangles(images, augmentation.cutout, keys[3]), 0.0, images)
        if augmentation.mixup or augmentation.cutmix:
            labels = tf.one_hot(labels, len(data.labels))
            images, labels = _mix(images, labels, augmentation, keys[4])
        return images, labels

    # RandAugment's generators are reset for each batch, which two at once would take for theirs.
    augment.parallel_calls = None if rand_augment else tf.data.AUTOTUNE
    return augment


def _crop(images, padding, key):
    """Windows of the images' size, anywhere in the images with a black margin around them."""
    import tensorflow as tf

    for axis, axis_key in zip((1, 2), _split(key, 2), strict=True):
        size = images.shape[axis]
        margin = round(padding * size)
        start = tf.random.stateless_uniform(
            (tf.shape(images)[0], 1), axis_key, 0, 2 * margin + 1, tf.int32
        )
        images = tf.pad(images, [[margin, margin] if i == axis else [0, 0] for i in range(4)])
        images = tf.gather(images, start + tf.range(size), axis=axis, batch_dims=1)
    return images


def _flip(images, key):
    """Every second image, about, mirrored left and right."""
    import tensorflow as tf

    draws = tf.random.stateless_uniform((tf.shape(images)[0], 1, 1, 1), key)
    return tf.where(draws < 0.5, images[:, :, ::-1], images)


def _rand_augment(magnitude, data, seed):
    """keras-cv's RandAugment as a function of (images, key)."""
    import keras_cv
    import tensorflow as tf

    grey = data.image_shape[-1] == 1
    layer = keras_cv.layers.RandAugment((0, 255), 2, magnitude, seed=1)
    parts = [layer, layer._random_choice, *layer.layers]

    def rand_augment(images, key):
        # Which operations an image goes through is drawn from the layers' generators, how strong
        # they are by TensorFlow operations: these follow the graph's seed, each epoch alike.
        tf.compat.v1.set_random_seed(seed)
        for i, part in enumerate(parts):
            part._random_generator.reset(tf.concat([key, [i]], axis=0))
        if grey:  # its operations on colours take three channels
            images = tf.image.grayscale_to_rgb(images)
        # One image after the other: left to itself the layer draws for all of them at once, in an
        # order that changes from run to run.
        images = tf.map_fn(lambda x: layer(x, training=True), images, parallel_iterations=1)
        if grey:
            images = tf.image.rgb_to_grayscale(images)
        return tf.clip_by_value(tf.ensure_shape(images, (None, *data.image_shape)), 0.0, 255.0)

    return rand_augment


def _rectangles(images, share, key):
    """For each image a mask, true in a rectangle around a random pixel, cut off at the border.

    `share` is that of the rectangle's sides in the image's, a number or one for each image.
    """
    import tensorflow as tf

    inside = []
    for axis, axis_key in zip((1, 2), _split(key, 2), strict=True):
        size = images.shape[axis]
        side = tf.cast(tf.round(share * size), tf.int32)
        centre = tf.random.stateless_uniform((tf.shape(images)[0],), axis_key, 0, size, tf.int32)
        position = tf.range(size) - (centre - side // 2)[:, None]
        inside.append((position >= 0) & (position < side[..., None]))
    rows, columns = inside
    return rows[:, :, None, None] & columns[:, None, :, None]


def _mix(images, labels, augmentation, key):
    """MixUp, CutMix or neither, for the whole batch; labels mix as the pixels do."""
    import tensorflow as tf

    choice, order, weight, place = _split(key, 4)
    samples = tf.shape(images)[0]

    def beta(alpha):
        first, second = tf.unstack(tf.random.stateless_gamma((2, samples), weight, alpha))
        return first / (first + second)

    def mixup():
        return tf.ones_like(images[..., :1]) * beta(0.8)[:, None, None, None]

    def cutmix():
        return 1.0 - tf.cast(_rectangles(images, tf.sqrt(1.0 - beta(1.0)), place), tf.float32)

    draw = tf.random.stateless_uniform((), choice)
    kept = tf.case(  # of each pixel, the share that stays
        [
            (draw < augmentation.mixup, mixup),
            (draw < augmentation.mixup + augmentation.cutmix, cutmix),
        ],
        default=lambda: tf.ones_like(images[..., :1]),
    )
    others = tf.random.experimental.stateless_shuffle(tf.range(samples), order)
    images = kept * images + (1.0 - kept) * tf.gather(images, others)
    kept = tf.reduce_mean(kept, axis=(1, 2))
    return images, kept * labels + (1.0 - kept) * tf.gather(labels, others)


def _split(key, number):
    import tensorflow as tf

    return tf.unstack(tf.random.experimental.stateless_split(key, number))
