"""Generated pictures and their copies, for tests of the data check."""

import io

import numpy as np
from PIL import Image


def scene(rng, width=80, height=64):
    """Returns a picture of smooth blobs in random colours."""
    colours = rng.integers(0, 256, (4, 5, 3), "uint8")
    return Image.fromarray(colours).resize((width, height), Image.Resampling.BICUBIC)


def digit(pixels):
    return Image.fromarray((pixels * 255 / 16).astype("uint8")).convert("RGB")


def compress(image):
    file = io.BytesIO()
    image.save(file, "JPEG", quality=50)
    return Image.open(file).convert("RGB")


def crop(image):
    width, height = image.size
    return image.resize(image.size, box=(0.05 * width, 0, width, 0.95 * height))


def thumbnails(images):
    return np.array([np.asarray(image.resize((32, 32))) for image in images])
