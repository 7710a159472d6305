"""Splits: the samples of a training or test set, as arrays or as a `tf.data.Dataset`.

TensorFlow is imported for `Split.dataset` and `Split.reader` alone.
"""

import tempfile

import numpy as np

from keras_gmlp.data.images.sample_readers import (
    mapped_reader,
    mapped_requester,
    require_tensorflow,
    with_windows,
)
from keras_gmlp.utils.errors import one_line_errors
from keras_gmlp.utils.files import require_space
from keras_gmlp.utils.progress import ProgressBar

# Pillow's weights for red, green and blue, in 1/65536.
GREY = np.array([19595, 38470, 7471], "int32")

TOGETHER = 64  # samples that are read at a time


class Split:
    """Samples of (uint8 image, int64 class index) in a fixed order; the base class.

    A subclass implements `__len__`, the number of samples, and the methods that raise
    `NotImplementedError` here; and `arrays`, or `read_into` and the attribute `shape`.

    Attributes:
        holds_labels: Whether `read_labels` takes no time. `ImageData` then checks them.
    """

    holds_labels = False

    def __len__(self):
        raise NotImplementedError

    def take(self, samples):
        """Returns the split of the first samples; -1 for all."""
        return self if samples < 0 or samples >= len(self) else self._first(samples)

    def arrays(self):
        """Reads all samples.

        Returns:
            uint8 images `(samples, height, width, channels)` and int64 class indices `(samples,)`.

        Raises:
            ValueError: If a sample cannot be read.
        """
        images = np.empty((len(self), *self.shape), "uint8")
        return images, self.read_into(images)

    def read_into(self, images):
        """Reads all images into an array, which may be a file that is mapped into memory.

        Args:
            images: uint8 array `(samples, height, width, channels)`.

        Returns:
            int64 class indices `(samples,)`.

        Raises:
            ValueError: If a sample cannot be read.
        """
        images[:], labels = self.arrays()
        return labels

    def batches(self, size):
        """Yields the samples in order, no more than `size` of them in memory.

        Args:
            size: Samples in a batch; the last may be smaller.

        Yields:
            uint8 images `(size, height, width, channels)` and int64 class indices `(size,)`.

        Raises:
            ValueError: If a sample cannot be read.
        """
        raise NotImplementedError

    def read_labels(self):
        """Returns the class indices of all samples, int64 `(samples,)`.

        Raises:
            ValueError: If a sample cannot be read; not all splits read the images.
        """
        return np.concatenate([labels for _, labels in self.batches(TOGETHER)])

    def dataset(self):
        """Returns a `tf.data.Dataset` of single samples, of known cardinality.

        An error of a sample is raised during iteration; see `one_line_errors`.

        Raises:
            ImportError: If TensorFlow is not installed.
        """
        raise NotImplementedError

    def reader(self, scale=None):
        """Returns a function that reads any sample, for `tf.data.Dataset.map`.

        Args:
            scale: Smallest and largest share of a random window, or `None` for the whole image;
                see `Augmentation.resized_crop`.

        Returns:
            A function of an index, an int64 tensor, and, with a scale, of the uniform numbers of
            the window, `(DRAWS,)`. It returns the image and the class index. An error of a sample
            is raised during iteration; see `one_line_errors`.

        Raises:
            ImportError: If TensorFlow is not installed.
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

    def _first(self, samples):
        """Returns the split of fewer samples than this one has."""
        raise NotImplementedError


class ArraySplit(Split):
    """Samples in memory.

    Args:
        images: uint8 `(samples, height, width, channels)`.
        labels: Class indices `(samples,)`.

    Raises:
        ValueError: If they have other shapes or types.
    """

    holds_labels = True

    def __init__(self, images, labels):
        images, labels = np.asarray(images), np.asarray(labels)
        if images.dtype != np.uint8 or images.ndim != 4 or labels.shape != images.shape[:1]:
            raise ValueError(
                "expected uint8 images (samples, height, width, channels) and class indices "
                f"(samples,); received {images.dtype} {images.shape} and {labels.shape}."
            )
        if labels.dtype.kind not in "biuf" or np.any(labels % 1):
            raise ValueError(f"expected class indices, whole numbers; received {labels.dtype}.")
        self._images, self._labels = images, labels.astype("int64")

    def __len__(self):
        return len(self._images)

    def arrays(self):
        """Returns the images and the class indices themselves, no copies."""
        return self._images, self._labels

    def read_labels(self):
        return self._labels

    def batches(self, size):
        for start in range(0, len(self), size):
            part = slice(start, start + size)
            yield self._images[part], self._labels[part]

    def dataset(self):
        tf = require_tensorflow()
        with tf.device("CPU"):
            return tf.data.Dataset.from_tensor_slices((self._images, self._labels))

    def reader(self, scale=None):
        """Returns a function as in `Split.reader`; without a scale it also takes many indices."""
        tf = require_tensorflow()
        with tf.device("CPU"):
            images, labels = tf.constant(self._images), tf.constant(self._labels)

        def read(index):
            return tf.gather(images, index), tf.gather(labels, index)

        return with_windows(read, scale, images.shape[1:])

    def _first(self, samples):
        return ArraySplit(self._images[:samples], self._labels[:samples])


class DatasetSplit(Split):
    """Samples of a `tf.data.Dataset`.

    Args:
        dataset: `tf.data.Dataset` of single (uint8 image, class index), of known cardinality.

    Raises:
        ValueError: If it is something else.
    """

    def __init__(self, dataset):
        spec = getattr(dataset, "element_spec", None)
        pair = isinstance(spec, tuple) and len(spec) == 2
        if not pair or spec[0].dtype != "uint8" or spec[0].shape.rank not in (3, None):
            raise ValueError(
                "expected a Split or a tf.data.Dataset of single samples, (uint8 image, class "
                f"index); received {type(dataset).__name__ if spec is None else spec}."
            )
        self._dataset, self._size = dataset, int(dataset.cardinality())
        self._requester = None
        if self._size < 0:
            raise ValueError(
                "expected a tf.data.Dataset of known, finite size; give it one with "
                "dataset.apply(tf.data.experimental.assert_cardinality(samples))."
            )

    def __len__(self):
        return self._size

    def arrays(self):
        with one_line_errors():
            images, labels = self._dataset.batch(self._size).get_single_element()
        return images.numpy(), labels.numpy().astype("int64")

    def read_into(self, images):
        labels = np.empty(len(self), "int64")
        with one_line_errors(), ProgressBar("copying images", len(self)) as progress:
            for i, sample in enumerate(self._dataset.as_numpy_iterator()):
                images[i], labels[i] = sample
                progress.show(i + 1)
        return labels

    def batches(self, size):
        with one_line_errors():
            for images, labels in self._dataset.batch(size).as_numpy_iterator():
                yield images, labels.astype("int64")

    def dataset(self):
        return self._dataset

    def reader(self, scale=None):
        """Returns a function as in `Split.reader`.

        A `tf.data.Dataset` gives its samples in order only, so this writes them to a file first,
        which the system deletes when nothing uses it.

        Raises:
            OSError: If there is not enough space in the folder for temporary files.
        """
        with one_line_errors():
            shape = next(iter(self._dataset))[0].shape
        size = (len(self), *shape)
        require_space(tempfile.gettempdir(), np.prod(size))
        with tempfile.NamedTemporaryFile() as file:
            images = np.memmap(file.name, "uint8", "w+", shape=size)
            labels = self.read_into(images)
            images.flush()
            self._requester = mapped_requester(file.name, 0, shape)
            return with_windows(mapped_reader(file.name, 0, shape, labels), scale, shape)

    def requester(self):
        return self._requester

    def _first(self, samples):
        return DatasetSplit(self._dataset.take(samples))


class ChannelSplit(Split):
    """The samples of another split with 1 channel (grey) or 3 (colour).

    Args:
        split: A `Split` with 3 channels or 1.
        channels: Number of channels: the other one.
    """

    def __init__(self, split, channels):
        self.split, self.channels = split, channels
        self.paths = getattr(split, "paths", ())

    def __len__(self):
        return len(self.split)

    def arrays(self):
        images, labels = self.split.arrays()
        return self._convert(images), labels

    def read_labels(self):
        return self.split.read_labels()

    def batches(self, size):
        for images, labels in self.split.batches(size):
            yield self._convert(images), labels

    def dataset(self):
        tf = require_tensorflow()
        return self.split.dataset().map(self._change, tf.data.AUTOTUNE)

    def reader(self, scale=None):
        read = self.split.reader(scale)
        return lambda *index: self._change(*read(*index))

    def requester(self):
        return self.split.requester()

    def _convert(self, images):
        if self.channels == 3:
            return images.repeat(3, axis=-1)
        result = np.empty((*images.shape[:-1], 1), "uint8")
        # One by one, because integers are four times as large.
        for image, grey in zip(images, result, strict=True):
            grey[..., 0] = (image @ GREY + 2**15) >> 16
        return result

    def _change(self, image, label):
        import tensorflow as tf  # not by require, which AutoGraph cannot trace

        if self.channels == 3:
            return tf.image.grayscale_to_rgb(image), label
        total = tf.reduce_sum(tf.cast(image, tf.int32) * GREY, -1, keepdims=True)
        return tf.cast((total + 2**15) // 2**16, tf.uint8), label

    def _first(self, samples):
        return ChannelSplit(self.split.take(samples), self.channels)


def as_split(samples):
    """Returns a `Split`: samples themselves if they are one, or a `DatasetSplit`."""
    return samples if isinstance(samples, Split) else DatasetSplit(samples)
