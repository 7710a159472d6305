"""Image files to arrays of pixels, the same way in training and in classification.

Needs Pillow and NumPy alone.
"""

import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

EXTENSIONS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm")
MAX_PIXELS = 100_000_000  # decoded, 300 MB: larger files are refused before they are decoded


def read_image(path, image_shape):
    """Reads an image file of any common format, mode and size.

    The picture is turned upright by its EXIF tag, laid on white where it is transparent, scaled
    until it covers the target (bicubic, antialiased) and cropped around its centre. Of an
    animation the first frame counts.

    Args:
        path: the file.
        image_shape: `(height, width, channels)`, with 1 channel (grey) or 3 (RGB).

    Returns:
        A uint8 array of that shape, values 0 to 255.

    Raises:
        ValueError: the file is missing, cannot be read, is empty, damaged, no image, or larger
            than `MAX_PIXELS`. The message is one line that starts with the path.
    """
    height, width, channels = image_shape
    try:
        with warnings.catch_warnings():
            # Pillow warns of large or odd files; the size is checked below, the rest is decoded.
            warnings.simplefilter("ignore")
            with Image.open(path) as image:
                pixels = image.width * image.height
                if pixels > MAX_PIXELS:
                    raise ValueError(
                        f"{path}: {image.width}x{image.height} pixels are too many; at most "
                        f"{MAX_PIXELS:,} are read. Scale the image down first."
                    )
                # JPEG alone: decodes at a fraction of the size, never below twice the target.
                image.draft(None, (2 * width, 2 * height))
                image = ImageOps.exif_transpose(image)
                image = _to_mode(image, "L" if channels == 1 else "RGB")
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file.") from None
    except IsADirectoryError:
        raise ValueError(f"{path}: is a folder, not an image file.") from None
    except PermissionError:
        raise ValueError(f"{path}: no permission to read it.") from None
    except Image.DecompressionBombError:
        raise ValueError(
            f"{path}: its header claims far too many pixels; at most {MAX_PIXELS:,} are read."
        ) from None
    except UnidentifiedImageError:
        raise ValueError(f"{path}: {_why_no_image(path)}") from None
    except (OSError, SyntaxError, EOFError, IndexError, TypeError, MemoryError) as error:
        raise ValueError(f"{path}: damaged or truncated image ({error}).") from None
    image = ImageOps.fit(image, (width, height), Image.Resampling.BICUBIC)
    return np.asarray(image).reshape(image_shape)


def find_images(path):
    """The image files under a folder, sorted; a file stands for itself.

    Raises:
        ValueError: there is no such path, or the folder holds no image file.
    """
    path = Path(path)
    if not path.is_dir():
        if not path.exists():
            raise ValueError(f"{path}: no such file or folder.")
        return [path]
    found = sorted(p for p in path.rglob("*") if p.suffix.lower() in EXTENSIONS and p.is_file())
    if not found:
        raise ValueError(f"{path}: no image in this folder ({', '.join(EXTENSIONS)}).")
    return found


def _to_mode(image, mode):
    """Grey or RGB from any of Pillow's modes, transparency over white."""
    if image.mode.startswith(("I", "F")):  # 16 or 32 bits: Pillow's own conversion clips at 255
        values = np.asarray(image, dtype="float64")
        top = 65535 if values.max(initial=0) > 255 else 255
        image = Image.fromarray(np.clip(values * 255 / top, 0, 255).round().astype("uint8"))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert(mode)


def _why_no_image(path):
    if Path(path).stat().st_size == 0:
        return "the file is empty."
    return "not an image in a format that Pillow reads (PNG, JPEG, WebP, GIF, BMP, TIFF, ...)."
