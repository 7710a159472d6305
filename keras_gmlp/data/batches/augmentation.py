"""What changes a batch of images: its random numbers, and a pure function of them.

The numbers of a step follow only from the seed, the epoch and the step, so that a resumed or
repeated run sees the same images, with tf.data and with JAX. keras-cv's random layers draw from
generators with a state, and its CutMix gives labels that differ from the pixels' shares.
"""

import dataclasses
from numbers import Real

import numpy as np

from keras_gmlp.data.batches.order import make_generator
from keras_gmlp.data.batches.rand_augment import (
    OPERATIONS,
    OPERATIONS_PER_IMAGE,
    STRENGTH_STDDEV,
    apply_operations,
)
from keras_gmlp.data.images.resized_crop import DRAWS
from keras_gmlp.utils.errors import check_ranges

SHARE = (lambda value: isinstance(value, Real) and 0 <= value <= 1, "a number in [0, 1]")

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
        mix_from: Share of the epochs after which MixUp and CutMix begin. Late mixing slows the
            first epochs less, and keeps a model from overfitting in the last ones.
        mix_until: Share of the epochs after which MixUp and CutMix stop.

    Raises:
        ValueError: If a field is outside [0, 1], `resized_crop` is not a range of shares,
            `mixup + cutmix` is above 1, or `mix_from` is above `mix_until`.
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
    mix_from: float = 0.0
    mix_until: float = 1.0

    def __post_init__(self):
        scale, (fits, _) = self.resized_crop, SHARE
        is_pair = isinstance(scale, tuple | list) and len(scale) == 2
        if scale and not (is_pair and all(map(fits, scale)) and 0 < scale[0] <= scale[1]):
            raise ValueError(
                "augmentation resized_crop must be the smallest and the largest share of the area, "
                f"such as [0.08, 1]; received {scale!r}."
            )
        object.__setattr__(self, "resized_crop", tuple(scale) if scale else None)  # JSON has lists
        names = [field.name for field in dataclasses.fields(self)]
        check_ranges(self, {name: SHARE for name in names if name != "resized_crop"})
        if self.mixup + self.cutmix > 1:
            raise ValueError(
                "mixup and cutmix are shares of the batches, together at most 1; received "
                f"{self.mixup} and {self.cutmix}."
            )
        if self.mix_from > self.mix_until:
            raise ValueError(
                "mix_from must be at most mix_until, since MixUp and CutMix are active between "
                f"them; received {self.mix_from} and {self.mix_until}."
            )


# Where a sample's random numbers are. All are uniform in [0, 1) but, where they are used, the
# strengths of RandAugment, which are normal, and the weights of MixUp. `CHOICE` decides how a batch
# mixes and is equal in all rows. `WINDOW` is drawn for a random resized crop only. What follows is
# drawn after all others, and only if it is used, so that existing seeds draw what they drew.
CROP, FLIP, CUTOUT, ERASING = slice(0, 2), 2, slice(3, 5), slice(5, 10)
OPERATION, STRENGTH, SIGN = (slice(10 + 2 * i, 12 + 2 * i) for i in range(3))
MIXUP, CUTMIX, CHOICE, WINDOW = 16, slice(17, 20), 20, slice(21, 21 + DRAWS)
COLUMNS = WINDOW.stop


def make_draw(augmentation, seed, samples, epochs=None):
    """Returns a function from epoch, step and samples to float32 `(samples, numbers)`."""
    limits = (augmentation.mix_from, augmentation.mix_until)
    if limits != (0, 1) and epochs is None:
        raise ValueError(
            "mix_from and mix_until are shares of the epochs, of which batches of your own know no "
            "number; use keras_gmlp.train."
        )
    mixed = range(*(round(limit * (epochs or 2**62)) for limit in limits))
    columns = WINDOW.stop if augmentation.resized_crop else WINDOW.start
    first_mirrored = np.random.Generator(np.random.Philox(0)).random(samples) < 0.5

    def draw(epoch, step, indices):
        generator = make_generator(seed, epoch, step)
        numbers = np.zeros((len(indices), COLUMNS), "float32")
        numbers[:, :columns] = generator.random((len(indices), columns), "float32")
        if augmentation.rand_augment:
            numbers[:, STRENGTH] = generator.standard_normal((len(indices), 2))
        if augmentation.mixup:
            numbers[:, MIXUP] = generator.beta(MIXUP_ALPHA, MIXUP_ALPHA, len(indices))
        numbers[:, CHOICE] = numbers[0, CHOICE] if epoch in mixed else 1
        if augmentation.alternating_flip:
            numbers[:, FLIP] = first_mirrored[indices] == epoch % 2  # 0 mirrors
        return numbers

    return draw


def make_augmenter(augmentation, mirror, classes, xp, rows=None):
    """Returns a function that changes uint8 images and indices, except for `resized_crop`."""
    # `rows` are the targets of each set of labels, `xp` is one of the `namespaces`.
    mixes, flip = bool(augmentation.mixup or augmentation.cutmix), augmentation.flip and mirror

    def change(images, labels, numbers):
        images = augment(images, numbers, augmentation, flip, xp)
        if rows is not None:
            labels = xp.gather(rows, labels)
        elif mixes:
            labels = xp.one_hot(labels, classes)
        if mixes:
            draw = numbers[0, CHOICE]
            mixed = xp.cast(draw < augmentation.mixup + augmentation.cutmix, "int32")
            choice = mixed * xp.where(draw < augmentation.mixup, 1, 2)
            images, labels = mix(images, labels, choice, numbers, xp)
        return images, labels

    return change


def augment(images, numbers, augmentation, flip, xp):
    """Changes each image by its numbers; returns float32 images."""
    size = images.shape[1:3]
    padding = 0 if augmentation.resized_crop else augmentation.crop
    margins = [round(padding * side) for side in size]
    starts = _integers(numbers[:, CROP], [2 * margin + 1 for margin in margins], xp)
    images = _crop_and_flip(images, margins, starts, numbers[:, FLIP] < 0.5 if flip else None, xp)
    images = xp.cast(images, "float32")
    if augmentation.rand_augment:
        for draws in draw_operations(numbers, augmentation.rand_augment, xp):
            images = apply_operations(images, *draws, xp)
    if augmentation.cutout:
        sides = [augmentation.cutout * side for side in size]
        inside = _rectangles(size, sides, _integers(numbers[:, CUTOUT], size, xp), xp)
        images = xp.where(inside, 0.0, images)
    if augmentation.erasing:
        images = _erase(images, augmentation.erasing, numbers[:, ERASING], xp)
    return images


def draw_operations(numbers, magnitude, xp):
    """Yields an operation of RandAugment, its strength and its signed strength for each image."""
    for i in range(OPERATIONS_PER_IMAGE):
        operation, strength, sign = (numbers[:, part][:, i] for part in (OPERATION, STRENGTH, SIGN))
        index = xp.cast(operation * (len(OPERATIONS) + 1), "int32")
        strength = xp.minimum(xp.maximum(magnitude + STRENGTH_STDDEV * strength, 0.0), 1.0)
        yield index, strength, magnitude * (2 * sign - 1)


def _integers(numbers, counts, xp):
    """Returns a whole number below each count from the columns of uniform numbers."""
    return [xp.cast(numbers[:, i] * count, "int32") for i, count in enumerate(counts)]


def _crop_and_flip(images, margins, starts, mirrored, xp):
    """Takes windows of the images padded with black; mirrors some of them."""
    for axis, margin, start in zip((1, 2), margins, starts, strict=True):
        mirrors = mirrored is not None and axis == 2
        if not margin and not mirrors:
            continue
        places = start[:, None] + np.arange(images.shape[axis], dtype="int32")
        if mirrors:  # in the same gather, since a reversed copy takes five times as long
            places = xp.where(mirrored[:, None], places[:, ::-1], places)
        if margin:
            images = xp.pad(images, [[margin, margin] if i == axis else [0, 0] for i in range(4)])
        images = xp.take(images, places, axis)
    return images


def _rectangles(size, sides, centres, xp):
    """Returns masks, true in a rectangle around a pixel, cut off at the border."""
    inside = []
    for length, side, centre in zip(size, sides, centres, strict=True):
        side = xp.cast(xp.round(side), "int32")
        position = np.arange(length, dtype="int32") - (centre - side // 2)[:, None]
        inside.append((position >= 0) & (position < side[..., None]))
    rows, columns = inside
    return rows[:, :, None, None] & columns[:, None, :, None]


def _erase(images, probability, numbers, xp):
    """Replaces a random rectangle by the image's mean colour in a share of the images."""
    height, width = size = images.shape[1:3]
    (low, high), (narrow, wide) = ERASED_AREA, ERASED_ASPECT
    pixels = height * width * (low + numbers[:, 1] * (high - low))
    ratio = narrow * (wide / narrow) ** numbers[:, 2]
    sides = xp.sqrt(pixels * ratio), xp.sqrt(pixels / ratio)
    chosen = (numbers[:, 0] < probability)[:, None, None, None]
    inside = _rectangles(size, sides, _integers(numbers[:, 3:], size, xp), xp)
    return xp.where(inside & chosen, xp.mean(images, (1, 2), keepdims=True), images)


def mix(images, labels, choice, numbers, xp):
    """Mixes images with their neighbours: 0 not at all, 1 by MixUp, 2 by CutMix; labels as well."""
    count, *size = images.shape[:3]

    def cutmix():
        drawn = numbers[:, CUTMIX]
        sides = [xp.sqrt(drawn[:, 0]) * side for side in size]
        inside = _rectangles(size, sides, _integers(drawn[:, 1:], size, xp), xp)
        return 1.0 - xp.cast(inside, "float32")

    def mixup():
        return whole * numbers[:, MIXUP][:, None, None, None]

    whole = xp.ones_like(images[..., :1])
    kept = xp.switch(choice, [lambda: whole, mixup, cutmix])  # the share of each pixel
    others = np.minimum(np.arange(count) ^ 1, count - 1)
    images = kept * images + (1.0 - kept) * xp.gather(images, others)
    kept = xp.mean(kept, (1, 2))
    return images, kept * labels + (1.0 - kept) * xp.gather(labels, others)
