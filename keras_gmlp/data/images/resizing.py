"""Fits: how an image of another aspect ratio becomes the input of a model.

`"crop"` scales the image to cover the input and leaves out what is beyond it on both sides.
`"stretch"` scales height and width independently. `"pad"` scales the image to fit inside the input,
around its centre, and fills the rest with black.
"""

import math

from PIL import Image

FITS = ("crop", "stretch", "pad")


def choose_shape(wanted, *others):
    """Returns the shape of images; `None` in a wanted one is that in the first of others."""
    columns = zip(wanted, *others, strict=True)
    return tuple(next(filter(None, column)) for column in columns)


def find_inner_size(size, target):
    """Returns the size at which an image fits inside a target."""
    tight = 0 if target[0] * size[1] <= target[1] * size[0] else 1
    # In integers, so that the page and TensorFlow compute the same.
    return tuple(
        max(1, (2 * target[tight] * side + size[tight]) // (2 * size[tight])) for side in size
    )


def pad_picture(image, size, resampling):
    """Returns a Pillow image scaled to fit inside `(width, height)`, on black."""
    inner = find_inner_size(image.size, size)
    place = tuple((want - have) // 2 for have, want in zip(inner, size, strict=True))
    result = Image.new(image.mode, size)
    result.paste(image.resize(inner, resampling), place)
    return result


def find_cover_size(own, size, crop):
    """Returns the size at which an image covers `size / crop`, rounded as torchvision's Resize."""
    least = [math.floor(side / crop) for side in size]
    # The tight side gets its target exactly; the other is rounded down.
    tight = 0 if least[0] * own[1] >= least[1] * own[0] else 1
    scaled = [int(least[tight] * side / own[tight]) for side in own]
    scaled[tight] = least[tight]
    return scaled


def find_part_box(size, target, part):
    """Returns the box of a part `(side, across, down)` of a picture, with fractions of pixels."""
    side, across, down = part
    # The largest box of the target's aspect ratio, times side, at a share of the free room.
    scale = side * min(have / want for have, want in zip(size, target, strict=True))
    width, height = (scale * want for want in target)
    left, top = max(0, size[0] - width) * across, max(0, size[1] - height) * down
    return left, top, left + width, top + height


def crop_picture(image, scaled, size, resampling):
    """Returns the pixels of torchvision's Resize to `scaled` and CenterCrop to `size`."""
    image = image.resize(scaled, resampling)
    left, top = (round((have - want) / 2) for have, want in zip(scaled, size, strict=True))
    return image.crop((left, top, left + size[0], top + size[1]))
