"""Augmentation of training batches, each by its own random key.

The same key gives the same batch, whatever was drawn before and on any number of threads, so that
a resumed or repeated run sees the same images. keras-cv's random layers draw from generators with
a state, and its CutMix gives labels that differ from the pixels' shares. The project uses those of
its layers that draw nothing, in `rand_augment`.
"""

import dataclasses
import math

import numpy as np

from keras_gmlp.data.batches.rand_augment import rand_augment
from keras_gmlp.data.batches.share import WHOLE
from keras_gmlp.data.images.resized_crop import DRAWS

MIXUP_ALPHA = 0.8  # MixUp's weights follow beta(0.8, 0.8), as in timm's recipes

# Random erasing: shares of the image's area, and height relative to width (arXiv:1708.04896).
ERASED_AREA = (0.02, 1 / 3)

ERASED_ASPECT = (0.3, 1 / 0.3)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Augmentation:
    """Settings of the augmentation, by name; a field at 0 or False turns its part off.

    Attributes:
        crop: Padding before a random crop back to size, as a share of the side (0.125: 4 of 32).
        resized_crop: Smallest and largest area, as a share of the image's, that a random window
            has; it is scaled to the image's size. For example `(0.08, 1.0)`, or `None`. It
            replaces `crop`. Images in files that do not fit in memory are cut from the whole
            picture.
        flip: Mirror half of the images left and right.
        alternating_flip: Whether an epoch mirrors exactly the images that the epoch before did not,
            instead of a random half (https://arxiv.org/abs/2404.00498, section 3.6).
        rand_augment: Mean strength of RandAugment's two operations, in [0, 1].
        cutout: Side of a black square, as a share of the image's side.
        erasing: Share of the images in which a random rectangle, 2 to 33 % of the area, takes the
            image's mean colour.
        mixup: Share of the batches that MixUp blends.
        cutmix: Share of the batches that CutMix pastes. Each batch gets MixUp, CutMix or neither;
            together the shares are at most 1.
        mix_until: Share of the epochs after which MixUp and CutMix stop.

    Raises:
        ValueError: If a field is outside [0, 1], `resized_crop` is no range of shares, or
            `mixup + cutmix` is above 1.
    """

    crop: float = 0.125
    resized_crop: tuple[float, float] | None = None
    flip: bool = True
    alternating_flip: bool = False
    rand_augment: float = 0.0
    cutout: float = 0.0
    erasing: float = 0.0
    mixup: float = 0.0
    cutmix: float = 0.0
    mix_until: float = 1.0

    def __post_init__(self):
        _check_scale(self.resized_crop)
        scale = tuple(self.resized_crop) if self.resized_crop else None  # JSON has lists
        object.__setattr__(self, "resized_crop", scale)
        for name, value in dataclasses.asdict(self).items():
            if name != "resized_crop" and not 0 <= value <= 1:
                raise ValueError(f"augmentation {name} must be in [0, 1]; received {value}.")
        if self.mixup + self.cutmix > 1:
            raise ValueError(
                "mixup and cutmix are shares of the batches, together at most 1; received "
                f"{self.mixup} and {self.cutmix}."
            )


def _check_scale(scale):
    """Raises a `ValueError` if a value cannot be `resized_crop`."""
    is_pair = isinstance(scale, tuple | list) and len(scale) == 2
    numbers = is_pair and all(isinstance(share, int | float) for share in scale)
    if scale and not (numbers and 0 < scale[0] <= scale[1] <= 1):
        raise ValueError(
            "augmentation resized_crop must be the smallest and the largest share of the area, "
            f"such as [0.08, 1]; received {scale!r}."
        )


def draw_windows(key, samples):
    """Returns uniform numbers for the random resized crop of a batch, `(samples, DRAWS)`."""
    import tensorflow as tf

    return tf.random.stateless_uniform((samples, DRAWS), _fold_in(key, 6))


def first_mirrored(samples):
    """Returns which samples an alternating flip mirrors in the first epoch, booleans."""
    return np.random.Generator(np.random.Philox(0)).random(samples) < 0.5


def make_augmenter(augmentation, data, share=WHOLE):
    """Returns a function that augments a batch, except for `resized_crop`."""
    import tensorflow as tf

    if augmentation.rand_augment:
        # If it is missing, fail here with its name: tf.data would bury it in its own traceback.
        import keras_cv  # noqa: F401

    rows = data.label_rows()

    def augment(key, images, labels, *rest):
        if isinstance(labels, dict):  # with a teacher's answers
            images, changed = change(key, images, labels["labels"], *rest)
            return images, {**labels, "labels": changed}
        return change(key, images, labels, *rest)

    def change(key, images, labels, mixing=True, mirrored=None):
        keys = _split(key, 5)
        flip = augmentation.flip and data.mirror
        crop = 0 if augmentation.resized_crop else augmentation.crop
        if crop or flip:
            images = _crop_and_flip(images, crop, flip, keys, share, mirrored)
        images = tf.cast(images, tf.float32)
        labels = labels if rows is None else tf.gather(rows, labels)
        if augmentation.rand_augment:
            images = rand_augment(images, keys[2], augmentation.rand_augment, share)
        if augmentation.cutout:
            sides = [augmentation.cutout * side for side in images.shape[1:3]]
            images = tf.where(_rectangles(images, sides, keys[3], share), 0.0, images)
        if augmentation.erasing:
            images = _erase(images, augmentation.erasing, _fold_in(key, 5), share)
        if augmentation.mixup or augmentation.cutmix:
            labels = tf.one_hot(labels, len(data.labels)) if rows is None else labels
            images, labels = _mix(images, labels, augmentation, keys[4], mixing, share)
        return images, labels

    return augment


def _crop_and_flip(images, padding, flip, keys, share, mirrored=None):
    """Takes random windows of the images padded with black; mirrors some of them if `flip`."""
    import tensorflow as tf

    shape = (share.whole(tf.shape(images)[0]), 1)
    for axis, axis_key in zip((1, 2), _split(keys[0], 2), strict=True):
        size = images.shape[axis]
        margin, mirrors = round(padding * size), flip and axis == 2
        if not margin and not mirrors:
            continue
        start = tf.random.stateless_uniform(shape, axis_key, 0, 2 * margin + 1, tf.int32)
        places = share.take(start) + tf.range(size)
        if mirrors:  # in the same gather, since a reversed copy takes five times as long
            if mirrored is None:
                chosen = share.take(tf.random.stateless_uniform(shape, keys[1])) < 0.5
            else:
                chosen = mirrored[:, None]
            places = tf.where(chosen, places[:, ::-1], places)
        if margin:
            images = tf.pad(images, [[margin, margin] if i == axis else [0, 0] for i in range(4)])
        images = tf.gather(images, places, axis=axis, batch_dims=1)
    return images


def _rectangles(images, sides, key, share):
    """Returns masks, true in a rectangle around a random pixel, cut off at the border."""
    import tensorflow as tf

    inside, samples = [], share.whole(tf.shape(images)[0])
    for axis, side, axis_key in zip((1, 2), sides, _split(key, 2), strict=True):
        size = images.shape[axis]
        side = tf.cast(tf.round(side), tf.int32)
        centre = tf.random.stateless_uniform((samples,), axis_key, 0, size, tf.int32)
        position = tf.range(size) - (share.take(centre) - side // 2)[:, None]
        inside.append((position >= 0) & (position < side[..., None]))
    rows, columns = inside
    return rows[:, :, None, None] & columns[:, None, :, None]


def _erase(images, probability, key, share):
    """Replaces a random rectangle by the image's mean colour in a share of the images."""
    import tensorflow as tf

    chance, area, aspect, place = _split(key, 4)
    samples, (height, width) = share.whole(tf.shape(images)[0]), images.shape[1:3]

    def uniform(key, low=0.0, high=1.0):
        return share.take(tf.random.stateless_uniform((samples,), key, low, high))

    pixels = height * width * uniform(area, *ERASED_AREA)
    ratio = tf.exp(uniform(aspect, *(math.log(ratio) for ratio in ERASED_ASPECT)))
    sides = tf.sqrt(pixels * ratio), tf.sqrt(pixels / ratio)
    chosen = uniform(chance)[:, None, None, None] < probability
    inside = _rectangles(images, sides, place, share)
    return tf.where(inside & chosen, tf.reduce_mean(images, (1, 2), keepdims=True), images)


def _mix(images, labels, augmentation, key, mixing, share):
    """Applies MixUp, CutMix or neither to the whole batch; labels mix in the pixels' shares."""
    import tensorflow as tf

    choice, _, weight, place = _split(key, 4)
    samples = tf.shape(images)[0]

    def beta(alpha):
        draws = tf.random.stateless_gamma((2, share.whole(samples)), weight, alpha)
        first, second = tf.unstack(share.take(draws, axis=1))
        return first / (first + second)

    def mixup():
        return tf.ones_like(images[..., :1]) * beta(MIXUP_ALPHA)[:, None, None, None]

    def cutmix():
        part = tf.sqrt(1.0 - beta(1.0))
        sides = [part * side for side in images.shape[1:3]]
        return 1.0 - tf.cast(_rectangles(images, sides, place, share), tf.float32)

    draw = tf.where(mixing, tf.random.stateless_uniform((), choice), 1.0)  # 1.0: neither
    kept = tf.case(  # share of each pixel that is kept
        [
            (draw < augmentation.mixup, mixup),
            (draw < augmentation.mixup + augmentation.cutmix, cutmix),
        ],
        default=lambda: tf.ones_like(images[..., :1]),
    )
    others = tf.minimum(tf.bitwise.bitwise_xor(tf.range(samples), 1), samples - 1)
    images = kept * images + (1.0 - kept) * tf.gather(images, others)
    kept = tf.reduce_mean(kept, axis=(1, 2))
    return images, kept * labels + (1.0 - kept) * tf.gather(labels, others)


def _fold_in(key, number):
    import tensorflow as tf

    return tf.random.experimental.stateless_fold_in(key, number)


def _split(key, number):
    import tensorflow as tf

    return tf.unstack(tf.random.experimental.stateless_split(key, number))
