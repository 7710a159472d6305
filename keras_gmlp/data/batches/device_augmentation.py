"""The augmentation of `data.augmentation` in JAX, for training steps on an accelerator.

Distributions are those of the tf.data form; the draws differ. Each sample's draws follow from
the epoch and the sample's position in it, so that the images do not depend on how steps are grouped
or devices share them.
"""

import functools

from keras_gmlp.data.batches.augmentation import ERASED_AREA, ERASED_ASPECT, MIXUP_ALPHA
from keras_gmlp.data.batches.device_rand_augment import rand_augment
from keras_gmlp.data.images.resized_crop import DRAWS as WINDOW_DRAWS
from keras_gmlp.data.images.resized_crop import draw_window

# Where each part finds its uniform numbers among those of a sample. One draw of all is compiled and
# computed faster than a key for each part. The last ones are drawn for a random resized crop only.
CROP, FLIP, RAND_AUGMENT, CUTOUT = slice(0, 2), 2, slice(3, 9), slice(9, 11)

ERASING, MIXUP, CUTMIX, DRAWS = slice(11, 16), 16, slice(17, 20), 20

WINDOW = slice(DRAWS, DRAWS + WINDOW_DRAWS)


def make_device_augmenter(augmentation, classes, mirror):
    """Returns a JAX function that augments a batch."""
    import jax
    import jax.numpy as jnp

    mixes = bool(augmentation.mixup or augmentation.cutmix)
    number = WINDOW.stop if augmentation.resized_crop else DRAWS
    quantiles = beta_quantiles(MIXUP_ALPHA) if augmentation.mixup else None
    change = functools.partial(
        _augment_one, augmentation=augmentation, flip=augmentation.flip and mirror
    )

    def draw(key, position):
        return jax.random.uniform(jax.random.fold_in(key, position), (number,))

    def augment(key, images, labels, position, mixing=True, odd=False, mirrored=None):
        draws = jax.vmap(draw, (None, 0))(key, position + jnp.arange(len(images)))
        if mirrored is not None:  # takes the place of the draw, below 0.5 for a mirrored image
            draws = draws.at[:, FLIP].set(jnp.where(mirrored ^ odd, 0.0, 1.0))
        images = jax.vmap(change)(images, draws)
        if mixes:
            labels = jax.nn.one_hot(labels, classes)
            # From 2**31 on no position follows: this key is the batch's.
            batch_key = jax.random.fold_in(key, jnp.uint32(2**31) + jnp.uint32(position))
            choice = draw_mixing(augmentation, batch_key, mixing)
            weights = jnp.ones(len(images))
            if quantiles is not None:
                values, probabilities = quantiles
                weights = jnp.interp(draws[:, MIXUP], probabilities, values)
            images, labels = mix(images, labels, choice, weights, draws[:, CUTMIX])
        return images, labels

    def augment_in_turn(key, images, labels, mirrored, position, mixing=True, odd=False):
        return augment(key, images, labels, position, mixing, odd, mirrored)

    return augment_in_turn if augmentation.alternating_flip else augment


def _augment_one(image, draws, augmentation, flip):
    import jax.numpy as jnp

    if augmentation.resized_crop:
        image = crop_and_resize(image, draws[WINDOW], augmentation.resized_crop)
    elif augmentation.crop:
        image = crop(image, augmentation.crop, draws[CROP])
    if flip:
        image = jnp.where(draws[FLIP] < 0.5, image[:, ::-1], image)
    image = image.astype("float32")
    if augmentation.rand_augment:
        image = rand_augment(image, draws[RAND_AUGMENT], augmentation.rand_augment)
    if augmentation.cutout:
        sides = [augmentation.cutout * side for side in image.shape[:2]]
        image = jnp.where(rectangle(image.shape, sides, draws[CUTOUT]), 0.0, image)
    if augmentation.erasing:
        image = erase(image, augmentation.erasing, draws[ERASING])
    return image


def crop(image, padding, draws):
    """Takes a random window of an image padded with black, of the image's size."""
    import jax
    import jax.numpy as jnp

    margins = [round(padding * side) for side in image.shape[:2]]
    starts = [
        (draw * (2 * margin + 1)).astype("int32")
        for draw, margin in zip(draws, margins, strict=True)
    ]
    padded = jnp.pad(image, [*((margin, margin) for margin in margins), (0, 0)])
    return jax.lax.dynamic_slice(padded, (*starts, 0), image.shape)


def crop_and_resize(image, draws, scale):
    """Scales a random window of an image to the image's size, bilinearly."""
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


def rectangle(shape, sides, draws):
    """Returns a mask, true in a rectangle around a random pixel, cut off at the border."""
    import jax.numpy as jnp

    inside = []
    for size, side, draw in zip(shape[:2], sides, draws, strict=True):
        side = jnp.round(side).astype("int32")
        place = jnp.arange(size) - ((draw * size).astype("int32") - side // 2)
        inside.append((place >= 0) & (place < side))
    return inside[0][:, None, None] & inside[1][None, :, None]


def erase(image, probability, draws):
    """Replaces a random rectangle by the image's mean colour, with the given probability."""
    import jax.numpy as jnp

    chance, area, aspect = draws[:3]
    height, width, _ = image.shape
    pixels = height * width * (ERASED_AREA[0] + area * (ERASED_AREA[1] - ERASED_AREA[0]))
    ratio = ERASED_ASPECT[0] * (ERASED_ASPECT[1] / ERASED_ASPECT[0]) ** aspect
    sides = jnp.sqrt(pixels * ratio), jnp.sqrt(pixels / ratio)
    inside = rectangle(image.shape, sides, draws[3:]) & (chance < probability)
    return jnp.where(inside, image.mean(axis=(0, 1)), image)


def draw_mixing(augmentation, key, mixing):
    """Draws how a batch mixes: 0 for not at all, 1 for MixUp or 2 for CutMix."""
    import jax
    import jax.numpy as jnp

    draw = jax.random.uniform(key)
    is_mixup = draw < augmentation.mixup
    is_cutmix = ~is_mixup & (draw < augmentation.mixup + augmentation.cutmix)
    return jnp.where(mixing, is_mixup + 2 * is_cutmix, 0)


def mix(images, labels, choice, weights, draws):
    """Blends images with their neighbours, pastes rectangles of them, or neither."""
    import jax
    import jax.numpy as jnp

    def cutmix(draws):
        side = jnp.sqrt(draws[0])  # beta(1, 1) is uniform
        shape = images.shape[1:]
        return 1.0 - rectangle(shape, [side * size for size in shape[:2]], draws[1:])

    shape = (*images.shape[:3], 1)
    kept = jax.lax.switch(  # share of each pixel that is kept
        choice,
        [
            lambda: jnp.ones(shape),
            lambda: jnp.broadcast_to(weights[:, None, None, None], shape),
            lambda: jax.vmap(cutmix)(draws).astype("float32"),
        ],
    )
    others = jnp.minimum(jnp.arange(len(images)) ^ 1, len(images) - 1)
    images = kept * images + (1.0 - kept) * images[others]
    kept = kept.mean(axis=(1, 2))
    return images, kept * labels + (1.0 - kept) * labels[others]


def beta_quantiles(alpha, points=1025):
    """Returns values and their cumulative probabilities under a beta(alpha, alpha) distribution."""
    import jax
    import numpy as np

    values = np.sin(np.linspace(0, np.pi / 2, points)) ** 2  # dense at both ends
    probabilities = jax.scipy.special.betainc(alpha, alpha, values)
    return values.astype("float32"), np.array(probabilities, "float32")
