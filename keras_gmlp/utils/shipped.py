"""The trained models that come with a clone of the repository, by name."""

import os
import re
from pathlib import Path

from keras_gmlp.utils.errors import did_you_mean

FOLDER = Path(__file__).resolve().parents[2] / "saved_models"
DEFAULT_LANGUAGE_MODEL = "amlp_nano-wiki"  # fills in masks, and finds similar texts
DEFAULT_BACKBONE = "gmlp_photo_64"  # for a user's own images
MOST = 3  # names that an error suggests


def list_shipped():
    """Returns the names of the included models, in alphabetical order; none in a wheel."""
    if not FOLDER.is_dir():
        return []
    return sorted(p.name for p in FOLDER.iterdir() if p.is_dir() and not p.name.startswith("."))


def find_shipped(source):
    """Returns the path of an included model, or of a file of it; any other source as it is."""
    # A path that exists comes before a name.
    if not isinstance(source, str | os.PathLike) or os.path.exists(source):
        return source
    name, *rest = re.split(r"[/\\]", str(source))
    known = name in list_shipped() and ".." not in rest
    return FOLDER / source if known and (FOLDER / source).exists() else source


def suggest_shipped(source):
    """Returns the end of an error for a source that is missing: the included models' near names."""
    if not re.fullmatch(r"[\w-]+", str(source)):  # a path mostly has a separator or a suffix
        return ""
    if not FOLDER.is_dir():
        return " Included models come with a clone of the repository: pip install -e . in it."
    return did_you_mean(source, list_shipped(), str, MOST)
