"""Packed data sets: all images scaled once, as arrays in files that are mapped into memory.

A packed set is a folder with `packed.json`, which describes it, and for each split the uint8 images
and the class indices as `.npy` files. Reading an image copies its pixels; nothing is decoded.
"""

import mmap
import re
from pathlib import Path

import numpy as np

from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.resizing import choose_shape
from keras_gmlp.data.images.samples import (
    Samples,
    check_indices,
    read_images,
    read_windows,
    resize_images,
)
from keras_gmlp.utils import files
from keras_gmlp.utils.errors import naming_errors

DESCRIPTION = "packed.json"
VERSION = 1


def pack(data: ImageData, folder: str | Path) -> int:
    """Writes a data set as a packed set, complete or not at all.

    Args:
        data: An `ImageData`; all images have its `image_shape`.
        folder: The folder to create.

    Returns:
        The number of bytes of the images.

    Raises:
        ValueError: If the folder exists, another process writes next to it or an image cannot be
            read.
        OSError: If the disk has too little space.
    """
    folder = Path(folder)
    if folder.exists():
        raise ValueError(f"{folder}: exists; give a new folder, or delete this one.")
    splits = data.splits()
    size = sum(map(len, splits.values())) * int(np.prod(data.image_shape))
    files.require_space(folder.parent, size)
    with files.directory_lock(folder.parent), files.atomic_folder(folder) as temporary:
        files.remove_leftovers(folder.parent, re.escape(folder.name))
        temporary.mkdir()
        for name, split in splits.items():
            shape = (len(split), *data.image_shape)
            # Written, not mapped: a mapped file would kill the process when the disk is full.
            with open(temporary / f"{name}_images.npy", "wb") as file:
                header = {"descr": "|u1", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                for images in split.stream():
                    file.write(np.ascontiguousarray(images))
            np.save(temporary / f"{name}_labels.npy", split.labels)
        recorded = {n: getattr(data, n) for n in ("labels", "image_shape", "mirror")}
        recorded |= {"source": data.name, "label_sets": data.label_sets, "fit": data.fit}
        files.write_json(temporary / DESCRIPTION, {"version": VERSION, **recorded})
    return size


def is_packed(folder):
    """Returns whether a folder is a packed set."""
    return (Path(folder) / DESCRIPTION).is_file()


def load_packed(folder, wanted=(None, None, None), fit=None, roles=None):
    """Opens a packed set as an `ImageData`."""
    folder = Path(folder)
    description = files.read_json(folder / DESCRIPTION)
    if not isinstance(description, dict) or description.get("version") != VERSION:
        raise ValueError(
            f"{folder / DESCRIPTION}: damaged, or of a later version; pack the set again."
        )
    packed_fit, label_sets = description.get("fit", "crop"), description.get("label_sets")
    if fit not in (None, packed_fit):
        raise ValueError(
            f"{folder}: packed with the fit {packed_fit}; received {fit}. Pack the set again with "
            f"--fit {fit}, or choose the fit {packed_fit}."
        )
    rows, columns, _ = description["image_shape"]
    height, width, _ = shape = choose_shape(wanted, description["image_shape"])
    if packed_fit == "pad" and height * columns != width * rows:
        raise ValueError(
            f"{folder}: padded to {rows}x{columns}; received {height}x{width}, of another aspect "
            f"ratio. Pack the set again with --size {height}x{width}."
        )
    has_validation = (folder / "validation_images.npy").exists()
    names = ("train", "test", "validation")[: 2 + has_validation]
    arrays, labels = zip(*(_open_arrays(folder, name) for name in names), strict=True)
    samples = from_pack(arrays, labels, shape, packed_fit)
    if roles is None:
        roles = np.repeat(names, list(map(len, labels)))
    else:  # by place; `None` for an image that came after the run
        roles = np.array([roles[place] or "" for place in range(len(samples))])
    names = ("train", "test", "validation")[: 2 + ("validation" in roles)]
    splits = {name: samples.take(np.flatnonzero(roles == name)) for name in names}
    return ImageData(
        str(folder),
        tuple(description["labels"]),
        shape,
        **splits,
        mirror=description["mirror"],
        label_sets=label_sets and tuple(map(tuple, label_sets)),
        fit=packed_fit,
    )


def _open_arrays(folder, name):
    """Returns the images of a split, mapped into memory, and its class indices."""
    remedy, place = "pack the set again", folder / f"{name}_labels.npy"
    images = files.load_array(folder / f"{name}_images.npy", remedy, mmap_mode="r")
    with naming_errors(place):
        return images, check_indices(images, files.load_array(place, remedy))


def from_pack(arrays, labels, shape, fit="crop"):
    """Returns the `Samples` of mapped arrays, one after the other, scaled to a shape."""
    ends = np.cumsum([len(array) for array in arrays])

    def find(place):
        number = np.searchsorted(ends, place, "right")
        return arrays[number], place - ends[number]  # from the end: both are negative

    def stored(place):
        array, row = find(place)
        return array[row]

    def request(places):
        """Asks the system for images, so that a disk works on many at a time."""
        for array, row in map(find, places if hasattr(mmap, "MADV_WILLNEED") else ()):
            size = array[0].size
            start = array.offset + (len(array) + row) * size
            page = start - start % mmap.PAGESIZE
            array.base.madvise(mmap.MADV_WILLNEED, page, start + size - page)

    def read(places):
        request(places)
        if arrays[0].shape[1:] == shape:
            return read_images(stored, shape, places)
        return resize_images(map(stored, places), shape, fit)

    def cut(places, windows):
        request(places)
        return read_windows([stored(place) for place in places], windows, shape)

    return Samples(np.concatenate(labels), shape, read, stored, cut=cut)
