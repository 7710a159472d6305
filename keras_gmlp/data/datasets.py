"""Data sets by name: bundled digits, image folders, tables, packed sets, TensorFlow Datasets."""

import os
import re
from pathlib import Path

import numpy as np

from keras_gmlp.data.images.folder import load_folder
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.packed import is_packed, load_packed
from keras_gmlp.data.images.resizing import choose_shape
from keras_gmlp.data.images.samples import from_pixels, resize_images
from keras_gmlp.data.images.table import is_table
from keras_gmlp.data.tfds import load_images
from keras_gmlp.utils.errors import printable, require_one_of
from keras_gmlp.utils.files import why_missing


def find_path(name):
    """Returns the path that a data set's name is, if it is one."""
    if not str(name):  # an unset variable of a shell, not the current folder
        raise ValueError("'': an empty name; expected a data set's, or a folder of class folders.")
    return Path(os.path.expanduser(name))


def canonical_name(name):
    """Returns the `name` that `load(name)` gives its `ImageData`: a folder loses its last slash."""
    path = find_path(name)
    return str(path) if name != "digits" and (path.is_dir() or is_table(path)) else str(name)


def holds_files(name):
    """Returns whether a data set is image files: a folder of class folders, or a table."""
    path = find_path(name)
    is_folder = name != "digits" and path.is_dir() and not is_packed(path)
    return is_folder or is_table(path)


def check_path(name):
    """Checks a name that can only be a path."""
    path = find_path(name)
    found = path.is_file() if is_table(path) else path.is_dir()
    looks_like_path = is_table(path) or path.is_file() or re.search(r"^[./~]|/$|\\", str(name))
    if looks_like_path and not found:
        raise ValueError(f"{name}: {why_missing(path, 'file' if is_table(path) else 'folder')}.")


def load(
    name: str | Path,
    image_size: tuple[int, int] | None = None,
    data_dir: str | Path | None = None,
    channels: int | None = None,
    groups: str | None = None,
    fit: str | None = None,
    roles: dict | None = None,
) -> ImageData:
    r"""Opens a data set.

    Args:
        name: `"digits"` (scikit-learn's handwritten digits, bundled), a folder, a table, or the
            name of an image-classification data set in TensorFlow Datasets, for example
            `"cifar10"`. A folder holds one folder of images for each class, or `train` and `test`
            folders with one for each class, and perhaps `val`. Without them, every fifth image of
            each class is test data.
            A table is a `.csv` or `.tsv` file with the columns `path`, relative to it, `label`
            and perhaps `split` (`train`, `test`, `validation`). With several labels, as in
            `cat|dog`, or with the column `labels` in place of `label`, images have any number.
            A folder that `pack` wrote is a packed set.
            TFDS downloads and prepares a set that is not on the disk.
        image_size: `(height, width)` of the loaded images. Defaults to the data set's size, or 224
            if sizes vary.
        data_dir: The folder of TFDS. Defaults to `$TFDS_DATA_DIR`, then to TFDS' own default.
        channels: 3 for colour or 1 for grey; images are converted. Defaults to the data set's
            channels, and to 3 for folders and tables.
        groups: Regular expression that finds the group of each image in its path, for folders and
            tables: images of one burst, patient or video, such as `r"patient(\d+)"`. The group is
            what the parentheses match, or all that it matches. A group has training or test
            images, not both. `None` for no groups.
        fit: How images of another aspect ratio become this size: `"crop"` scales them to cover it
            and crops around the centre, `"stretch"` scales height and width independently, `"pad"`
            scales them to fit inside and fills the rest with black. Defaults to `"crop"`, and to
            the fit of a packed set.
        roles: The split of each image, as a run recorded it; see `Run.data`. `None` to divide as
            above.

    Returns:
        An `ImageData`.

    Raises:
        ValueError: If the data set or folder does not exist, or has no images or classes; if
            the fit is unknown, or not that of a packed set.
    """
    require_one_of("channels", channels, (None, 1, 3))
    path, wanted = find_path(name), (*(image_size or (None, None)), channels)
    if holds_files(name):
        return load_folder(path, wanted, groups, fit or "crop", roles)
    if groups is not None:
        raise ValueError(
            f"groups require a folder of image files; received {printable(name)}. A table of them "
            "works, too."
        )
    if name == "digits":
        return _digits(wanted, fit or "crop")
    if path.is_dir():
        return load_packed(path, wanted, fit, roles)
    check_path(name)
    return load_images(str(name), wanted, data_dir, fit or "crop")


def _digits(wanted, fit):
    """Loads 1,797 handwritten digits of 8x8 pixels; a fixed split holds out 360 for testing."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = np.round(digits.images * 255 / 16)[..., None].astype("uint8")
    shape = choose_shape(wanted, images.shape[1:])
    images = images if shape == images.shape[1:] else resize_images(images, shape, fit)
    order = np.random.default_rng(0).permutation(len(digits.target))
    parts = (order[360:], order[:360])
    train, test = (from_pixels(images[part], digits.target[part]) for part in parts)
    labels = tuple(map(str, range(10)))
    return ImageData("digits", labels, shape, train, test, mirror=False, fit=fit)


def same_data(name, other):
    """Returns whether two names are equal, or paths of the same file or folder."""
    if str(name) == str(other):
        return True
    paths = [find_path(each) for each in (name, other)]
    return all(map(os.path.exists, paths)) and os.path.samefile(*paths)
