"""Mutated image files of all formats that are read."""

import io
import struct
import zlib

import numpy as np
from PIL import Image

from attack.kinds import Cases
from attack.mutations import mutate
from keras_gmlp.data.images.read_image import read_image

SHAPES = ((16, 16, 3), (1, 7, 1), (64, 48, 3))

KINDS = (
    *(("png", mode, {}) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")),
    *(("jpeg", mode, {"progressive": p}) for mode in ("L", "RGB", "CMYK") for p in (False, True)),
    *(("webp", mode, {"lossless": w}) for mode in ("RGB", "RGBA") for w in (False, True)),
    *(("gif", mode, {}) for mode in ("L", "P", "RGBA")),
    *(("bmp", mode, {}) for mode in ("1", "L", "P", "RGB", "RGBA")),
    *(("ppm", mode, {}) for mode in ("1", "L", "RGB", "I;16")),
    *(("tiff", mode, {}) for mode in ("1", "L", "P", "RGB", "RGBA", "CMYK", "I;16", "F")),
    *(
        ("tiff", "RGB", {"compression": name})
        for name in ("tiff_lzw", "tiff_deflate", "packbits", "jpeg")
    ),
)


class Images(Cases):
    """Each case is an image file that has been damaged, one in fifty is not."""

    def make(self, rng, folder):
        form, mode, options = rng.choice(KINDS)
        height, width = rng.randrange(1, 64), rng.randrange(1, 64)
        pixels = np.frombuffer(rng.randbytes(height * width * 4), "uint8")
        image = Image.fromarray(pixels.reshape(height, width, 4))
        image = image.convert("L") if mode == "I;16" else image
        image = image.convert(mode)
        buffer = io.BytesIO()
        image.save(buffer, form, **options)
        data, whole = buffer.getvalue(), rng.random() < 0.02
        if not whole:
            data = mutate(data, rng)
        if form == "png" and rng.random() < 0.7:
            data = repair_png(data)
        path = folder / f"image.{form}"
        path.write_bytes(data)
        return path, rng.choice(SHAPES), whole

    def check(self, case):
        path, shape, whole = case
        try:
            pixels = read_image(path, shape)
        except ValueError:
            assert not whole, "a good image is refused"
            raise
        assert (pixels.shape, pixels.dtype) == (shape, "uint8")


def repair_png(data):
    """Returns a PNG file whose chunks have right checksums, so that its content is decoded."""
    result, place = bytearray(data), 8
    while place + 12 <= len(data):
        end = place + 8 + struct.unpack_from(">I", data, place)[0]
        if end + 4 > len(data):
            break
        struct.pack_into(">I", result, end, zlib.crc32(data[place + 4 : end]))
        place = end + 4
    return bytes(result)
