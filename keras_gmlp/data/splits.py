"""Splits: the samples of a training or test set, as arrays or as a `tf.data.Dataset`.

TensorFlow is imported for `Split.dataset` alone.
"""

import collections
import itertools
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from keras_gmlp.data.read_image import read_image
from keras_gmlp.utils.errors import REPAIR, one_line_errors
from keras_gmlp.utils.optional import require
from keras_gmlp.utils.progress import ProgressBar

TOGETHER = 16  # samples that a thread decodes at a time

GREY = np.array(
    [19595, 38470, 7471], "int32"
)  # Pillow's weights of red, green and blue, in 1/65536


class Split:
    """Samples of (uint8 image, int64 class index) in a fixed order; the base class.

    A subclass implements `__len__`, the number of samples, and the methods that raise
    `NotImplementedError` here.
    """

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
        raise NotImplementedError

    def dataset(self):
        """Returns a `tf.data.Dataset` of single samples, of known cardinality.

        An error of a sample is raised during iteration; see `one_line_errors`.

        Raises:
            ImportError: If TensorFlow is not installed.
        """
        raise NotImplementedError

    def _first(self, samples):
        """Returns the split of fewer samples than this one has."""
        raise NotImplementedError


class ArraySplit(Split):
    """Samples in memory.

    Args:
        images: uint8 `(samples, height, width, channels)`.
        labels: Class indices `(samples,)`.

    Raises:
        ValueError: If they have other shapes, or images another type.
    """

    def __init__(self, images, labels):
        images, labels = np.asarray(images), np.asarray(labels)
        if images.dtype != np.uint8 or images.ndim != 4 or labels.shape != images.shape[:1]:
            raise ValueError(
                "expected uint8 images (samples, height, width, channels) and class indices "
                f"(samples,); received {images.dtype} {images.shape} and {labels.shape}."
            )
        self._images, self._labels = images, labels.astype("int64")

    def __len__(self):
        return len(self._images)

    def arrays(self):
        """Returns the images and the class indices themselves, no copies."""
        return self._images, self._labels

    def dataset(self):
        tf = _tensorflow()
        with tf.device("CPU"):
            return tf.data.Dataset.from_tensor_slices((self._images, self._labels))

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

    def dataset(self):
        return self._dataset

    def _first(self, samples):
        return DatasetSplit(self._dataset.take(samples))


class EncodedSplit(Split):
    """Samples that are decoded when they are read; the base class of those in files.

    `arrays` decodes on all cores, with a bar on a terminal if that takes longer than a few
    seconds. A subclass implements `__len__`, `_first` and the methods that raise
    `NotImplementedError` here.

    Attributes:
        shape: `(height, width, channels)` of the images.
        parts: Number of byte strings in the source of an image.
    """

    shape = None
    parts = 1

    def _sources(self):
        """Yields the source of each image, a tuple of byte strings, and its class index."""
        raise NotImplementedError

    def _decode(self, *source):
        """Returns the image of a source. Thread-safe.

        Raises:
            ValueError: If it cannot be decoded; one line.
        """
        raise NotImplementedError

    def arrays(self):
        images = np.empty((len(self), *self.shape), "uint8")
        labels = np.empty(len(self), "int64")

        def decode(start, sources):
            for place, source in enumerate(sources, start):
                images[place] = self._decode(*source)
            return start + len(sources)

        cores, waiting = os.cpu_count() or 1, collections.deque()
        pool = ThreadPoolExecutor(cores)
        try:
            with ProgressBar("reading images", len(self)) as progress:
                for start, sources, classes in self._chunks():
                    labels[start : start + len(classes)] = classes
                    waiting.append(pool.submit(decode, start, sources))
                    if len(waiting) > 4 * cores:  # encoded images take memory, too
                        progress.show(waiting.popleft().result())
                while waiting:
                    progress.show(waiting.popleft().result())
        except ValueError as error:
            raise ValueError(f"{error} {REPAIR}") from None
        finally:
            pool.shutdown(cancel_futures=True)
        return images, labels

    def dataset(self):
        tf = _tensorflow()

        def decode(source, label):
            parts = tf.unstack(source, self.parts)
            image = tf.numpy_function(self._decode, parts, tf.uint8)
            return tf.ensure_shape(image, self.shape), label

        types = (
            tf.TensorSpec((None, self.parts), tf.string),
            tf.TensorSpec((None,), tf.int64),
        )
        chunks = tf.data.Dataset.from_generator(
            lambda: (chunk[1:] for chunk in self._chunks()), output_signature=types
        )
        samples = chunks.unbatch().map(decode, num_parallel_calls=tf.data.AUTOTUNE)
        return samples.apply(tf.data.experimental.assert_cardinality(len(self)))

    def _chunks(self):
        """Yields the number of the first sample, the sources and the classes of a few samples."""
        samples, start = self._sources(), 0
        while chunk := list(itertools.islice(samples, TOGETHER)):
            yield start, *zip(*chunk, strict=True)
            start += len(chunk)


class FileSplit(EncodedSplit):
    """Images in files, which `read_image` reads.

    Args:
        paths: Paths of the files.
        labels: Their class indices.
        shape: `(height, width, channels)` of the images.
        read: Function from a path as bytes to an image. Defaults to `read_image` at this shape.
    """

    def __init__(self, paths, labels, shape, read=None):
        self.paths = [os.fsencode(path) for path in paths]
        self.labels = np.array(labels, "int64")
        self.shape = tuple(shape)
        self._read = read

    def __len__(self):
        return len(self.paths)

    def _sources(self):
        return (((path,), label) for path, label in zip(self.paths, self.labels, strict=True))

    def _decode(self, path):
        if self._read is not None:
            return self._read(path)
        return read_image(os.fsdecode(path), self.shape)

    def _first(self, samples):
        return FileSplit(self.paths[:samples], self.labels[:samples], self.shape, self._read)


class ChannelSplit(Split):
    """The samples of another split with 1 channel (grey) or 3 (colour).

    Args:
        split: A `Split` with 3 channels or 1.
        channels: Number of channels: the other one.
    """

    def __init__(self, split, channels):
        self._split, self._channels = split, channels
        self.paths = getattr(split, "paths", ())

    def __len__(self):
        return len(self._split)

    def arrays(self):
        images, labels = self._split.arrays()
        if self._channels == 3:
            return images.repeat(3, axis=-1), labels
        result = np.empty((*images.shape[:-1], 1), "uint8")
        for image, grey in zip(
            images, result, strict=True
        ):  # one by one: integers are four times as large
            grey[..., 0] = (image @ GREY + 2**15) >> 16
        return result, labels

    def dataset(self):
        tf = _tensorflow()

        def change(image, label):
            if self._channels == 3:
                return tf.image.grayscale_to_rgb(image), label
            total = tf.reduce_sum(tf.cast(image, tf.int32) * GREY, -1, keepdims=True)
            return tf.cast((total + 2**15) // 2**16, tf.uint8), label

        return self._split.dataset().map(change, tf.data.AUTOTUNE)

    def _first(self, samples):
        return ChannelSplit(self._split.take(samples), self._channels)


def as_split(samples):
    """Returns a `Split`: samples themselves if they are one, or a `DatasetSplit`."""
    return samples if isinstance(samples, Split) else DatasetSplit(samples)


def _tensorflow():
    return require("tensorflow", "a tf.data.Dataset", "demo")
