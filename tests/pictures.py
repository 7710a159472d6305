"""Generated pictures and folders of them, for tests of reading and of the data check."""

import io
import struct
import zlib

import numpy as np
from PIL import Image


def photo(height=47, width=61):
    """A smooth random picture."""
    small = np.random.default_rng(0).integers(0, 256, (7, 9, 3), "uint8")
    return Image.fromarray(small).resize((width, height), Image.BICUBIC)


def scene(rng, width=80, height=64):
    """Returns a picture of smooth blobs in random colours."""
    colours = rng.integers(0, 256, (4, 5, 3), "uint8")
    return Image.fromarray(colours).resize((width, height), Image.Resampling.BICUBIC)


def digit(pixels):
    return Image.fromarray((pixels * 255 / 16).astype("uint8")).convert("RGB")


def compress(image):
    return Image.open(io.BytesIO(encode(image, "JPEG", quality=50))).convert("RGB")


def crop(image):
    width, height = image.size
    return image.resize(image.size, box=(0.05 * width, 0, width, 0.95 * height))


def thumbnails(images):
    return np.array([np.asarray(image.resize((32, 32))) for image in images])


def encode(picture, kind="PNG", **options):
    """Returns the bytes of a file of a Pillow image, or of pixels."""
    file = io.BytesIO()
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(np.array(picture))
    image.save(file, kind, **options)
    return file.getvalue()


def write_pictures(root, names, colour=0, size=(4, 4)):
    """Writes pictures of one colour; returns their folder."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, colour).save(path)
    return root


def write_noise(root, suffix, least, most):
    """Writes twenty random pictures, with sides of least to most, of the classes a and b."""
    generator = np.random.default_rng(0)
    for number in range(20):
        path = root / "ab"[number % 2] / f"{number}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        size = *generator.integers(least, most, 2, endpoint=True), 3
        Image.fromarray(generator.integers(0, 256, size, "uint8")).save(path)
    return root


def png_header(width, height):
    """Returns the bytes of a PNG file with a size but no pixels."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    start = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header
    return start + struct.pack(">I", zlib.crc32(header)) + struct.pack(">I", 9) + b"IDATxxxxxxxxx"
