"""Splits: the samples of a training or test set, as arrays or read one by one.

TensorFlow is imported for `Split.dataset` and `Split.reader` only.
"""

import copy
import ctypes
import mmap
import os

import numpy as np

from keras_gmlp.data.images.resized_crop import crop_tensor
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.progress import ProgressBar

MEMORY_LIMIT = 4 * 2**30  # bytes of a split's pixels that stay in memory; larger splits stream
READERS = os.cpu_count() or 1  # threads that read and decode
TOGETHER = 64  # samples that are copied at a time
ALIGNED = 64  # bytes to which TensorFlow aligns the memory of a tensor


class Split:
    """Samples of (uint8 image, int64 class index) in a fixed order; the base class.

    A subclass sets `shape`, and `_places` or `__len__` and `choose`; it implements the methods that
    raise `NotImplementedError` here.

    Attributes:
        shape: `(height, width, channels)` of the images.
        holds_labels: Whether `read_labels` takes no time. `ImageData` then checks them.

    Raises:
        ValueError: By each method that reads, if a sample cannot be read. What `dataset` and
            `reader` return raises it during iteration; see `one_line_errors`.
        ImportError: By `dataset` and `reader`, if TensorFlow is not installed.
    """

    shape = None
    holds_labels = False
    _places = None  # of these samples among all that are stored
    _kept = None  # pixels of all samples, and the class indices of those that are read already

    def __len__(self):
        return len(self._places)

    def choose(self, places):
        """Returns the split of the samples at some places, which are in ascending order."""
        part = copy.copy(self)
        part._places, part._kept = self._places[places], None
        return part

    def take(self, samples):
        """Returns the split of the first samples; -1 for all."""
        return self if samples < 0 or samples >= len(self) else self.choose(np.arange(samples))

    def fits_in_memory(self):
        """Returns whether the pixels of all samples may stay in memory; see `MEMORY_LIMIT`."""
        return len(self) * int(np.prod(self.shape)) <= MEMORY_LIMIT

    def keep(self, samples=-1):
        """Returns the first samples and keeps their pixels, so that no image is read twice.

        Args:
            samples: Number of samples from the start; -1 for all.

        Returns:
            An `ArraySplit`; of samples that do not fit in memory, what `take` returns.
        """
        part = self.take(samples)
        if not part.fits_in_memory():
            return part
        if not self.fits_in_memory():
            return part.keep()
        images, labels = self._kept or (_allocate((len(self), *self.shape)), np.empty(0, "int64"))
        done, count = len(labels), len(part)
        if done < count:
            rest = part if not done else self.choose(np.arange(done, count))
            labels = np.concatenate([labels, rest.read_into(images[done:count])])
            self._kept = images, labels
        return ArraySplit(images[:count], labels[:count])

    def arrays(self):
        """Reads all samples.

        Returns:
            uint8 images `(samples, height, width, channels)` and int64 class indices `(samples,)`.
        """
        images = np.empty((len(self), *self.shape), "uint8")
        return images, self.read_into(images)

    def read_into(self, images):
        """Reads all images into a uint8 array as of `arrays`; returns the class indices."""
        return self._copy(lambda start, part: np.copyto(images[start : start + len(part)], part))

    def write_to(self, file):
        """Writes the pixels of all images to an open file; returns the class indices."""
        return self._copy(lambda _, part: file.write(np.ascontiguousarray(part)))

    def _copy(self, copy_part):
        labels = [np.empty(0, "int64")]
        done = 0
        with ProgressBar("reading images", len(self)) as progress:
            for part, classes in self.batches(TOGETHER):
                copy_part(done, part)
                labels.append(classes)
                done += len(classes)
                progress.show(done)
        return np.concatenate(labels)

    def batches(self, size):
        """Yields the samples in order, few more than `size` of them in memory.

        Args:
            size: Samples in a batch; the last may be smaller.

        Yields:
            uint8 images `(size, height, width, channels)` and int64 class indices `(size,)`.
        """
        raise NotImplementedError

    def read_labels(self):
        """Returns the class indices of all samples, int64 `(samples,)`; may read the images."""
        return np.concatenate([labels for _, labels in self.batches(TOGETHER)])

    def dataset(self):
        """Returns a `tf.data.Dataset` of single samples, of known cardinality."""
        tf = require_tensorflow()
        return tf.data.Dataset.range(len(self)).map(self.reader(), num_parallel_calls=READERS)

    def reader(self, scale=None):
        """Returns a function that reads any sample, for `tf.data.Dataset.map`.

        Args:
            scale: Smallest and largest share of a random window, or `None` for the whole image;
                see `Augmentation.resized_crop`.

        Returns:
            A function of an index, an int64 tensor, and, with a scale, of the uniform numbers of
            the window, `(DRAWS,)`. It returns the image and the class index.
        """
        raise NotImplementedError

    def requester(self):
        """Returns a function that asks the operating system to read samples soon.

        Training requests samples some time before it reads them, so that a disk works on many at a
        time. Call this after `reader`.

        Returns:
            A function of int64 indices, a NumPy array, that returns at once; `None` if requests do
            not make reading faster.
        """
        return


class ArraySplit(Split):
    """Samples in memory, or in a file that is mapped into memory.

    Args:
        images: uint8 `(samples, height, width, channels)`.
        labels: Class indices `(samples,)`.

    Raises:
        ValueError: If they have other shapes or types.
    """

    holds_labels = True

    def __init__(self, images, labels):
        images, labels = np.asanyarray(images), np.asarray(labels)
        if images.dtype != np.uint8 or images.ndim != 4 or labels.shape != images.shape[:1]:
            raise ValueError(
                "expected uint8 images (samples, height, width, channels) and class indices "
                f"(samples,); received {images.dtype} {images.shape} and {labels.shape}."
            )
        with np.errstate(invalid="ignore"):  # of NaN
            indices = labels.astype("int64") if labels.dtype.kind in "biuf" else None
        if indices is None or np.any(indices != labels):
            raise ValueError(f"expected class indices, whole numbers; received {labels.dtype}.")
        self.shape, self._images = images.shape[1:], images
        self._labels, self._places = indices, np.arange(len(images))

    def keep(self, samples=-1):
        return self.take(samples) if self._in_memory() else super().keep(samples)

    def arrays(self):
        """Returns images and class indices; of a whole split in memory themselves, no copies."""
        if not self._in_memory():
            return super().arrays()
        whole = len(self) == len(self._images)
        return self._images if whole else self._images[self._places], self.read_labels()

    def read_labels(self):
        return self._labels[self._places]

    def batches(self, size):
        for start in range(0, len(self), size):
            places = self._places[start : start + size]
            yield self._fit(np.asarray(self._images[places])), self._labels[places]

    def reader(self, scale=None):
        """Returns a function as in `Split.reader`; without a scale it also takes many indices."""
        tf = require_tensorflow()
        with tf.device("CPU"):
            labels, places = tf.constant(self._labels), tf.constant(self._places)
        pixels, stored = share_memory(self._images), self._images.shape[1:]

        def read(index):
            place = tf.gather(places, index)
            image = tf.gather(pixels, place)
            if scale is None and stored != self.shape:
                image = tf.numpy_function(self._fit, [image], tf.uint8)
                image = tf.ensure_shape(image, index.shape.concatenate(self.shape))
            return image, tf.gather(labels, place)

        return with_windows(read, scale, self.shape)

    def requester(self):
        if not (isinstance(self._images, np.memmap) and hasattr(mmap, "MADV_WILLNEED")):
            return None
        mapped, first = self._images.base, self._images.offset
        size = int(np.prod(self._images.shape[1:]))

        def request(indices):
            for start in (first + self._places[indices] * size).tolist():
                page = start - start % mmap.PAGESIZE
                mapped.madvise(mmap.MADV_WILLNEED, page, start + size - page)

        return request

    def _in_memory(self):
        return not isinstance(self._images, np.memmap) and self.shape == self._images.shape[1:]

    def _fit(self, images):
        """Scales stored images to the shape of the split, which is their own here."""
        return images


def require_tensorflow():
    """Returns TensorFlow."""
    return require("tensorflow", "a tf.data.Dataset", "demo")


def with_windows(read, scale, shape):
    """Returns a function that also crops what a function reads, unless the scale is `None`."""
    if scale is None:
        return read

    def read_window(index, draws):
        image, label = read(index)
        return crop_tensor(image, draws, scale, shape), label

    return read_window


def share_memory(images):
    """Returns a tensor in the memory of a uint8 array, which nobody may write to."""
    tf = require_tensorflow()
    if images.ctypes.data % ALIGNED or not images.flags.c_contiguous or not images.size:
        with tf.device("CPU"):
            return tf.constant(images)
    values = (ctypes.c_uint8 * images.size).from_address(images.ctypes.data)
    values.images = images  # as long as the tensor exists
    # DLPack refuses the array itself where it cannot be written to.
    pixels = np.ctypeslib.as_array(values).reshape(images.shape)
    return tf.experimental.dlpack.from_dlpack(pixels.__dlpack__())


def _allocate(shape):
    """Returns an array whose memory is aligned, and taken when it is filled."""
    size = int(np.prod(shape))
    memory = np.empty(size + ALIGNED, "uint8")
    start = -memory.ctypes.data % ALIGNED
    return memory[start : start + size].reshape(shape)
