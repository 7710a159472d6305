"""Functions that read one sample by its number, for `tf.data.Dataset.map`."""

import ctypes
import mmap

import numpy as np

from keras_gmlp.data.images.resized_crop import crop_tensor
from keras_gmlp.utils.environment import require


def mapped_reader(path, start, shape, labels):
    """Returns a function as `Split.reader` does, for images in a memory-mapped file."""
    tf = require_tensorflow()
    size = int(np.prod(shape))
    with tf.device("CPU"):
        labels = tf.constant(labels)
    pixels = tf.experimental.dlpack.from_dlpack(_map_file(path).__dlpack__())

    def read(index):
        image = tf.slice(pixels, [start + index * size], [size])
        return tf.reshape(image, shape), tf.gather(labels, index)

    return read


def _map_file(path):
    """Returns the bytes of a file, mapped into memory; nobody may write to the array."""
    mapped = np.memmap(path, "uint8", "r")
    values = (ctypes.c_uint8 * len(mapped)).from_address(mapped.ctypes.data)
    values.mapped = mapped  # as long as the tensor exists
    return np.ctypeslib.as_array(values)


def mapped_requester(path, start, shape):
    """Returns a function as `Split.requester` does, for the file of a `mapped_reader`."""
    if not hasattr(mmap.mmap, "madvise"):
        return None
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    size = int(np.prod(shape))

    def request(indices):
        for index in indices.tolist():
            place = start + index * size
            page = place - place % mmap.PAGESIZE
            mapped.madvise(mmap.MADV_WILLNEED, page, place + size - page)

    return request


def with_windows(read, scale, shape):
    """Returns a function that also crops what a function reads, unless the scale is `None`."""
    if scale is None:
        return read

    def read_window(index, draws):
        image, label = read(index)
        return crop_tensor(image, draws, scale, shape), label

    return read_window


def require_tensorflow():
    """Returns TensorFlow."""
    return require("tensorflow", "a tf.data.Dataset", "demo")
