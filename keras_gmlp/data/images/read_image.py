"""Reads images as arrays, in the same way for training and classification.

Requires Pillow and NumPy only.
"""

import contextlib
import importlib
import io
import math
import os
import struct

import numpy as np
from PIL import Image, ImageOps

from keras_gmlp.data.images.find_images import HEIC_ADVICE, is_heic
from keras_gmlp.data.images.resizing import (
    FITS,
    crop_picture,
    find_cover_size,
    find_part_box,
    pad_picture,
)
from keras_gmlp.utils.environment import is_installed
from keras_gmlp.utils.errors import first_line, printable, require_one_of

# Pillow's modules. Others may run programs (EPS).
PLUGINS = ("Png", "Jpeg", "WebP", "Avif", "Gif", "Bmp", "Tiff", "Ppm")
INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos")
MAX_PIXELS = 100_000_000  # up to 0.9 GB of memory, as WebP 1.7; more are refused
TOGETHER = 2**20  # pixels that are converted at a time


def read_image(source, image_shape, crop=None, interpolation="bicubic", window=None, fit="crop"):
    """Reads an image of any common format, mode and size."""
    return read_views(source, image_shape, (), crop, interpolation, window, fit)[0]


def read_views(
    source, image_shape, parts, crop=None, interpolation="bicubic", window=None, fit="crop"
):
    """Reads an image, then parts of it; see `find_part_box`. An array with a row for each."""
    height, width, channels = image_shape
    check_preparation(crop, interpolation, fit)
    resampling = Image.Resampling[interpolation.upper()]
    name = printable(source) if isinstance(source, str | os.PathLike) else "the image"
    # A crop and "nearest" must match published pixels exactly.
    exact = crop is not None or interpolation == "nearest"
    least = min([1, *(side for side, _, _ in parts)])
    reduced = None if exact else math.ceil(4 * max(height, width) / least)
    try:
        image = _decode(source, name, "L" if channels == 1 else "RGB", reduced)
        boxes = [find_part_box(image.size, (width, height), part) for part in parts]
        views = [image.resize((width, height), resampling, box) for box in boxes]
        if window is not None:
            top, left, rows, columns = map(int, window(image.height, image.width))
            image = image.crop((left, top, left + columns, top + rows))
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        elif fit == "stretch":
            image = image.resize((width, height), resampling)
        elif fit == "pad":
            image = pad_picture(image, (width, height), resampling)
        elif crop is None:
            image = ImageOps.fit(image, (width, height), resampling)
        else:
            scaled = find_cover_size(image.size, (width, height), crop)
            if scaled[0] * scaled[1] > MAX_PIXELS:
                raise ValueError(
                    f"{name}: {image.width} by {image.height} is too thin: scaled it would have "
                    f"more than {MAX_PIXELS:,} pixels. Cut it first."
                )
            image = crop_picture(image, scaled, (width, height), resampling)
    except MemoryError:
        raise MemoryError(f"{name}: not enough memory to decode and scale it.") from None
    return np.stack([np.asarray(view).reshape(image_shape) for view in (image, *views)])


def check_preparation(crop=None, interpolation="bicubic", fit="crop"):
    """Raises a `ValueError` if an argument of `read_image` is out of its range."""
    require_one_of("interpolation", interpolation, INTERPOLATIONS)
    require_one_of("fit", fit, FITS)
    if crop is not None and not (isinstance(crop, int | float) and 0 < crop <= 1):
        raise ValueError(f"crop must be in (0, 1]; received {crop!r}.")
    if crop is not None and fit != "crop":
        raise ValueError(f"crop requires the fit crop; received crop {crop} with the fit {fit}.")


def read_pixels(path):
    """Returns all pixels of an image file, upright and in RGB, `(height, width, 3)`."""
    return np.asarray(_decode(path, printable(path), "RGB", None))


def is_many(source):
    """Returns whether a source is several images: a list, a tuple or an array of images."""
    return isinstance(source, list | tuple) or getattr(source, "ndim", None) == 4


def _decode(source, name, mode, reduced):
    """Returns the image of a source, upright and in grey (`"L"`) or `"RGB"`."""
    try:
        with contextlib.ExitStack() as stack:
            image = _open_source(source, stack)
            if image.width * image.height > MAX_PIXELS:
                raise RefusedError(
                    f"more than {MAX_PIXELS:,} pixels, by its header. Scale the image down first."
                )
            if image is source:  # the steps below would change it
                image = source.copy()
                image.format = source.format  # says what white is
            if reduced is not None:
                _reduce(image, reduced)
            ImageOps.exif_transpose(image, in_place=True)
            return _to_mode(image, mode)
    except MemoryError:
        raise
    except RefusedError as error:
        raise ValueError(f"{name}: {error}") from None
    except Exception as error:  # a damaged file raises one of many types
        reason = f"damaged or truncated image ({printable(first_line(error))})"
        raise ValueError(f"{name}: {getattr(error, 'strerror', None) or reason}.") from None


def _open_source(source, stack):
    """Returns the Pillow image of a source; the stack closes what is opened for it."""
    if isinstance(source, Image.Image):
        return source
    if isinstance(source, np.ndarray):
        if source.dtype != np.uint8:  # Pillow has modes of more bits, without a known white
            raise RefusedError(f"expected a uint8 array; received {source.dtype} {source.shape}.")
        return Image.fromarray(source[..., 0] if source.shape[2:] == (1,) else source)
    if isinstance(source, str | os.PathLike):
        path, file = source, stack.enter_context(open(source, "rb"))  # noqa: SIM115
    else:
        path, file = "", io.BytesIO(source.read() if hasattr(source, "read") else source)
    return stack.enter_context(open_image(file, path))


def open_image(file, path):
    """Opens as `Image.open`, which would warn of large images: callers check `MAX_PIXELS`."""
    prefix = file.read(16)
    for plugin in PLUGINS:  # imported when needed, for a faster start
        importlib.import_module(f"PIL.{plugin}ImagePlugin")  # registers its format in Image.OPEN
        opens, accepts = Image.OPEN[plugin.upper()]
        if accepts(prefix) is True:
            with contextlib.suppress(SyntaxError, IndexError, TypeError, struct.error):
                file.seek(0)
                return opens(file, os.fspath(path))
    if is_heic(prefix):
        if not is_installed("pillow_heif"):
            raise RefusedError(f"a HEIC picture; {HEIC_ADVICE}, or convert it to JPEG.")
        from pillow_heif.as_plugin import HeifImageFile

        file.seek(0)
        return HeifImageFile(file, os.fspath(path))
    raise RefusedError(f"not an image, or not in a format that is read ({', '.join(PLUGINS)}).")


def _reduce(image, side):
    """Sets a JPEG to be decoded faster, at a fraction of its size, but not below `side`."""
    for scale in (8, 4, 2):
        size = (image.width // scale, image.height // scale)
        if image.width % scale == image.height % scale == 0 and min(size) >= side:
            image.draft(None, size)
            return


def _to_mode(image, mode):
    """Converts any mode to grey or RGB, transparency to white."""
    high = image.mode.startswith(("I", "F"))  # more than 8 bits: Pillow would clip at 255
    if not high and not image.has_transparency_data:
        return image if image.mode == mode else image.convert(mode)
    if image.mode == "F" or (image.mode, image.format) == ("I", "TIFF"):
        raise RefusedError("pixels of 32 bits, which have no known white. Scale them to 8 bits.")
    result, rows = Image.new(mode, image.size), max(1, TOGETHER // image.width)
    for top in range(0, image.height, rows):  # in whole, it would take three times the memory
        box = (0, top, image.width, min(top + rows, image.height))
        part = image.crop(box)
        if high:
            values = np.asarray(part, "float32").clip(0, 65535)
            part = Image.fromarray((values * np.float32(255 / 65535)).round().astype("uint8"))
        else:
            part = part.convert("RGBA")
            part = Image.alpha_composite(Image.new("RGBA", part.size, "white"), part)
        result.paste(part.convert(mode), box)
    return result


class RefusedError(ValueError):
    """Raised for what cannot be read, without its name."""
