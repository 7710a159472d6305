"""Functions that read one sample by its number, for `tf.data.Dataset.map`."""

import ctypes
import mmap

import numpy as np

from keras_gmlp.data.images.resized_crop import crop_tensor
from keras_gmlp.utils.environment import require


def mapped_reader(path, start, shape, labels):
    """Returns a function as `Split.reader` does, for images in a file that is mapped into memory.

    Args:
        path: Path of a file of uint8 images of one size, one after the other. It may be deleted
            when the function exists.
        start: Number of bytes before the first image.
        shape: `(height, width, channels)` of the images.
        labels: Class indices, one for each image.
    """
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
    """Returns the bytes of a file, mapped into memory; nobody may write to the array.

    NumPy exports writable arrays alone to TensorFlow, and a writable mapping would require either
    the right to write to the file or as much free memory as the file has bytes.
    (`tf.raw_ops.ImmutableConst` maps, too, but copies the whole file first, twice.)
    """
    mapped = np.memmap(path, "uint8", "r")
    values = (ctypes.c_uint8 * len(mapped)).from_address(mapped.ctypes.data)
    values.mapped = mapped  # as long as the tensor exists
    return np.ctypeslib.as_array(values)


def mapped_requester(path, start, shape):
    """Returns a function as `Split.requester` does, for the file of a `mapped_reader`.

    A mapping alone reads a page when a sample touches it, and many neighbours with it, which a
    shuffled order does not want: from a set larger than the memory, a twentieth of the speed.

    Args:
        path, start, shape: As for `mapped_reader`.

    Returns:
        The function; `None` where the operating system takes no requests.
    """
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
    """Returns TensorFlow.

    Raises:
        ImportError: If it is not installed. One line.
    """
    return require("tensorflow", "a tf.data.Dataset", "demo")
