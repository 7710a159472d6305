"""Packed data sets: all images scaled once, as arrays in files that are mapped into memory.

A packed set is a folder with `packed.json`, which describes it, and for each split the uint8 images
and the class indices as `.npy` files. Reading an image copies its pixels; nothing is decoded.
"""

import contextlib
import re
from pathlib import Path

import numpy as np

from keras_gmlp.data.images.fits import require_fit, resize_images
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.splits import ArraySplit
from keras_gmlp.utils import files

DESCRIPTION = "packed.json"
VERSION = 1


def pack(data, folder):
    """Writes a data set as a packed set, complete or not at all.

    Args:
        data: An `ImageData`; all images have its `image_shape`.
        folder: The folder to create.

    Returns:
        The number of bytes of the images.

    Raises:
        ValueError: If the folder exists, another process writes it or an image cannot be read.
        OSError: If the disk has too little space.
    """
    folder = Path(folder)
    if folder.exists():
        raise ValueError(f"{folder}: exists; give a new folder, or delete this one.")
    splits = data.splits()
    size = sum(map(len, splits.values())) * int(np.prod(data.image_shape))
    files.require_space(folder.parent, size)
    with _lock(folder), files.atomic_folder(folder) as temporary:
        temporary.mkdir()
        for name, split in splits.items():
            shape = (len(split), *data.image_shape)
            # Written, not mapped: a mapped file would kill the process when the disk is full.
            with open(temporary / f"{name}_images.npy", "wb") as file:
                header = {"descr": "|u1", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                labels = split.write_to(file)
            np.save(temporary / f"{name}_labels.npy", labels)
        recorded = {n: getattr(data, n) for n in ("labels", "image_shape", "mirror")}
        recorded |= {"source": data.name, "label_sets": data.label_sets, "fit": data.fit}
        files.write_json(temporary / DESCRIPTION, {"version": VERSION, **recorded})
    return size


@contextlib.contextmanager
def _lock(folder):
    """Locks the name of a folder to create, and deletes what a killed process left of it."""
    lock = folder.with_name(f".{folder.name}.lock")
    try:
        with files.directory_lock(lock):
            files.remove_leftovers(folder.parent, re.escape(folder.name))
            yield
    finally:
        with contextlib.suppress(OSError):
            lock.rmdir()


def is_packed(folder):
    """Returns whether a folder is a packed set."""
    return (Path(folder) / DESCRIPTION).is_file()


def load_packed(folder, image_size=None, fit=None, roles=None):
    """Opens a packed set as an `ImageData`."""
    description = files.read_json(Path(folder) / DESCRIPTION)
    try:
        version, labels = description["version"], description["labels"]
        rows, columns, channels = stored = tuple(description["image_shape"])
        mirror = bool(description["mirror"])
        label_sets = description.get("label_sets")
        if label_sets is not None:
            label_sets = tuple(map(tuple, label_sets))
        indices = [index for members in label_sets or () for index in members]
        known = range(len(labels))
        valid = all(type(index) is int and index in known for index in indices)
        if not (valid and isinstance(labels, list)):
            raise ValueError
        packed_fit = description.get("fit", "crop")
        require_fit(packed_fit)
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{Path(folder) / DESCRIPTION}: damaged; pack the set again.") from None
    if version != VERSION:
        raise ValueError(
            f"{folder}: packed in version {version}; expected {VERSION}. Pack the set again."
        )
    if fit not in (None, packed_fit):
        raise ValueError(
            f"{folder}: packed with the fit {packed_fit}; received {fit}. Pack the set again with "
            f"--fit {fit}, or choose the fit {packed_fit}."
        )
    height, width = image_size or (rows, columns)
    if packed_fit == "pad" and height * columns != width * rows:
        raise ValueError(
            f"{folder}: padded to {rows}x{columns}; received {height}x{width}, of another aspect "
            f"ratio. Pack the set again with --size {height}x{width}."
        )
    shape = (height, width, channels)
    has_validation = (Path(folder) / "validation_images.npy").exists()
    names = ("train", "test", "validation")[: 2 + has_validation]
    splits = {name: PackedSplit(folder, name, stored, shape, packed_fit) for name in names}
    if roles is not None:
        splits = _choose_recorded(splits, roles)
    own = {"mirror": mirror, "label_sets": label_sets, "fit": packed_fit}
    return ImageData(str(folder), tuple(labels), shape, **splits, **own)


def _choose_recorded(splits, roles):
    """Returns the splits that a run recorded, by the places of all images one after the other."""
    found, first = {}, 0
    for split in splits.values():
        places = {}
        for place in range(len(split)):
            places.setdefault(roles[first + place], []).append(place)
        for role in filter(None, places):  # of a set that was packed again, the larger part
            part = split.choose(np.array(places[role]))
            found[role] = max(part, found.get(role, ()), key=len)
        first += len(split)
    return found


class PackedSplit(ArraySplit):
    """Samples of a packed set; images of another shape than the stored one are scaled."""

    def __init__(self, folder, name, stored, shape, fit):
        remedy, place = "pack the set again", Path(folder)
        images = files.load_array(place / f"{name}_images.npy", remedy, mmap_mode="r")
        labels = files.load_array(place / f"{name}_labels.npy", remedy)
        try:
            super().__init__(images, labels)
            if images.shape[1:] != stored:
                raise ValueError(f"expected images {stored}; received {images.shape[1:]}.")
        except ValueError as error:
            message = f"{folder}: the {name} files do not match; {remedy} ({error})"
            raise ValueError(message) from None
        self.shape, self.fit = tuple(shape), fit

    def stored(self):
        """Returns the pixels of each image as they are in the file, a list of arrays."""
        return [self._images[place] for place in self._places]

    def _fit(self, images):
        if images.shape[-3:] == self.shape:
            return images
        return resize_images(images, self.shape, self.fit)
