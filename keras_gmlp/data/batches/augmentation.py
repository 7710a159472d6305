"""What changes an image, given what `host_augmentation` or `device_augmentation` drew for it."""

import dataclasses
from numbers import Real

import numpy as np

from keras_gmlp.data.batches.rand_augment import apply_operations

SWITCHES = ("flip", "alternating_flip")  # True and False, or 1 and 0

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
        ValueError: If a field is outside [0, 1], `resized_crop` is no range of shares,
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
        scale = self.resized_crop
        is_pair = isinstance(scale, tuple | list) and len(scale) == 2
        numbers = is_pair and all(isinstance(share, int | float) for share in scale)
        if scale and not (numbers and 0 < scale[0] <= scale[1] <= 1):
            raise ValueError(
                "augmentation resized_crop must be the smallest and the largest share of the area, "
                f"such as [0.08, 1]; received {scale!r}."
            )
        object.__setattr__(self, "resized_crop", tuple(scale) if scale else None)  # JSON has lists
        for name, value in dataclasses.asdict(self).items():
            if name == "resized_crop":
                continue
            is_number = isinstance(value, Real) and (name in SWITCHES or value is not True)
            if not (is_number and 0 <= value <= 1):
                raise ValueError(
                    f"augmentation {name} must be a number in [0, 1]; received {value!r}."
                )
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

    def mixed_epochs(self, epochs):
        """Returns the epochs, of so many, in which MixUp and CutMix are active; from 0."""
        return range(round(self.mix_from * epochs), round(self.mix_until * epochs))


def first_mirrored(samples):
    """Returns which samples an alternating flip mirrors in the first epoch, booleans."""
    return np.random.Generator(np.random.Philox(0)).random(samples) < 0.5


def make_change(augmentation, mirror, classes, xp, rows=None):
    """Returns a function that changes a batch as drawn, except for `resized_crop`."""
    mixes, flip = bool(augmentation.mixup or augmentation.cutmix), augmentation.flip and mirror

    def change(images, labels, draws, mixing=True, mirrored=None):
        images = augment(images, draws, augmentation, flip, xp, mirrored)
        if rows is not None:
            labels = xp.gather(rows, labels)
        elif mixes:
            labels = xp.one_hot(labels, classes)
        if mixes:
            draw = xp.where(mixing, draws.choice(), 1.0)
            mixed = xp.cast(draw < augmentation.mixup + augmentation.cutmix, "int32")
            choice = mixed * xp.where(draw < augmentation.mixup, 1, 2)
            images, labels = mix(images, labels, choice, draws, xp)
        return images, labels

    return change


def augment(images, draws, augmentation, flip, xp, mirrored=None):
    """Changes each image as drawn; returns float32 images."""
    size = images.shape[1:3]
    padding = 0 if augmentation.resized_crop else augmentation.crop
    margins = [round(padding * side) for side in size]
    if flip and mirrored is None:
        mirrored = draws.mirrored()
    images = _crop_and_flip(images, margins, draws, mirrored if flip else None, xp)
    images = xp.cast(images, "float32")
    if augmentation.rand_augment:
        for index, strength, signed in draws.operations(augmentation.rand_augment):
            images = apply_operations(images, index, strength, signed, xp)
    if augmentation.cutout:
        sides = [augmentation.cutout * side for side in size]
        images = xp.where(_rectangles(size, sides, draws.cutout(size), xp), 0.0, images)
    if augmentation.erasing:
        images = _erase(images, augmentation.erasing, draws, xp)
    return images


def _crop_and_flip(images, margins, draws, mirrored, xp):
    """Takes random windows of the images padded with black; mirrors some of them."""
    for axis, margin, start in zip((1, 2), margins, draws.starts(margins), strict=True):
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


def _erase(images, probability, draws, xp):
    """Replaces a random rectangle by the image's mean colour in a share of the images."""
    height, width = size = images.shape[1:3]
    chance, area, ratio, centres = draws.erasing(size)
    pixels = height * width * area
    sides = xp.sqrt(pixels * ratio), xp.sqrt(pixels / ratio)
    chosen = (chance < probability)[:, None, None, None]
    inside = _rectangles(size, sides, centres, xp)
    return xp.where(inside & chosen, xp.mean(images, (1, 2), keepdims=True), images)


def mix(images, labels, choice, draws, xp):
    """Mixes images with their neighbours: 0 not at all, 1 by MixUp, 2 by CutMix; labels as well."""
    count, *size = images.shape[:3]

    def cutmix():
        part, centres = draws.cutmix(size)
        inside = _rectangles(size, [part * side for side in size], centres, xp)
        return 1.0 - xp.cast(inside, "float32")

    def mixup():
        return whole * draws.weights()[:, None, None, None]

    whole = xp.ones_like(images[..., :1])
    kept = xp.switch(choice, [lambda: whole, mixup, cutmix])  # the share of each pixel
    others = np.minimum(np.arange(count) ^ 1, count - 1)
    images = kept * images + (1.0 - kept) * xp.gather(images, others)
    kept = xp.mean(kept, (1, 2))
    return images, kept * labels + (1.0 - kept) * xp.gather(labels, others)
