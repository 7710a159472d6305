"""Which files are images: by their suffix or their first bytes. Requires no Pillow."""

import contextlib
import re
from pathlib import Path

from keras_gmlp.utils.environment import is_installed
from keras_gmlp.utils.errors import first_of, printable
from keras_gmlp.utils.files import why_missing
from keras_gmlp.utils.inputs import HEIC, IMAGES, list_visible_files, warn_left_out

# How image files begin, whatever their name. The formats that are left out begin as other files do.
_IMAGE = re.compile(rb"\x89PNG\r\n|\xff\xd8\xff|GIF8[79]a|RIFF....WEBP|....ftypavi[fs]", re.DOTALL)
_HEIC = re.compile(rb"....ftyp(hei[cxms]|hev[cxms]|mif1|msf1)", re.DOTALL)
HEIC_ADVICE = "pip install pillow-heif reads HEIC"


def find_images(path, left_out=None):
    """Lists the image files in a folder and its subfolders; `left_out` gets the other files."""
    path, name = Path(path), printable(path)
    if not path.is_dir():
        if not path.is_file():  # reading a pipe would block
            raise ValueError(f"{name}: {why_missing(path)}.")
        return [path]
    files = list_visible_files(path)
    images = list(filter(is_image_file, files))
    others = sorted(set(files) - set(images))
    if not images:
        found = f"; found {first_of([printable(p.name) for p in others], 3)}" if others else ""
        raise ValueError(f"{name}: no image in this folder ({', '.join(IMAGES)}){found}.")
    if left_out is None:
        warn_no_images(path, others)
    else:
        left_out += others
    return images


def warn_no_images(place, paths):
    """Warns of files in a folder that are not read as images."""
    is_any = any(path.suffix.lower() in HEIC for path in paths)
    advice = f" {HEIC_ADVICE}; otherwise convert them to JPEG." if is_any else ""
    warn_left_out(place, paths, "which are not read as images", advice)


def is_image_file(path):
    """Returns whether a file is an image by its suffix or its content, or a link to nowhere."""
    suffix, start = path.suffix.lower(), b""
    if suffix in IMAGES or (suffix in HEIC and is_installed("pillow_heif")):
        return path.is_file() or not path.exists()
    if path.is_file():  # reading a pipe would block
        with contextlib.suppress(OSError), open(path, "rb") as file:
            start = file.read(16)
    return bool(_IMAGE.match(start)) or (is_heic(start) and is_installed("pillow_heif"))


def is_heic(start):
    """Returns whether the first bytes of a file are those of a HEIC picture."""
    return bool(_HEIC.match(start))
