"""Splits of images in files, decoded when they are read."""

import collections
import itertools
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.data.images.resized_crop import crop_jpeg, draw_window, is_upright_jpeg
from keras_gmlp.data.images.sample_readers import require_tensorflow, with_windows
from keras_gmlp.data.images.splits import Split
from keras_gmlp.utils.errors import REPAIR
from keras_gmlp.utils.progress import ProgressBar

READERS = os.cpu_count() or 1  # threads that read and decode

TOGETHER = 16  # samples that a thread decodes at a time


class EncodedSplit(Split):
    """Samples that are decoded when they are read; the base class of those in files.

    `arrays` decodes on all cores, with a bar on a terminal if that takes longer than a few
    seconds. A subclass implements `__len__`, `_first` and the methods that raise
    `NotImplementedError` here.

    Attributes:
        shape: `(height, width, channels)` of the images.
        fit: How images of another aspect ratio become these, one of `data.fits.FITS`. Random
            windows are parts of the image as it is read, with the fit `"crop"` of the whole file.
    """

    shape = None
    fit = "crop"

    def _sources(self):
        """Yields the source of each image, a tuple of byte strings, and its class index."""
        raise NotImplementedError

    def _finder(self):
        """Returns a function of tensors from an index to the source of that image and its class."""
        raise NotImplementedError

    def _encoded(self, *source):
        """Returns the bytes of the image file of a source, a tensor."""
        raise NotImplementedError

    def _decode(self, *source, window=None):
        """Returns the image of a source. Thread-safe."""
        raise NotImplementedError

    def read_into(self, images):
        labels = np.empty(len(self), "int64")

        def decode(start, sources):
            for place, source in enumerate(sources, start):
                images[place] = self._decode(*source)
            return start + len(sources)

        waiting = collections.deque()
        pool = ThreadPoolExecutor(READERS)
        try:
            with ProgressBar("reading images", len(self)) as progress:
                for start, sources, classes in self._chunks():
                    labels[start : start + len(classes)] = classes
                    waiting.append(pool.submit(decode, start, sources))
                    if len(waiting) > 4 * READERS:  # encoded images take memory, too
                        progress.show(waiting.popleft().result())
                while waiting:
                    progress.show(waiting.popleft().result())
        except ValueError as error:
            raise ValueError(f"{error} {REPAIR}") from None
        finally:
            pool.shutdown(cancel_futures=True)
        return labels

    def read_labels(self):
        return np.fromiter((label for _, label in self._sources()), "int64", len(self))

    def batches(self, size):
        pool = ThreadPoolExecutor(READERS)
        try:
            for _, sources, labels in self._chunks(size):
                images = np.stack(list(pool.map(lambda source: self._decode(*source), sources)))
                yield images, np.array(labels, "int64")
        except ValueError as error:
            raise ValueError(f"{error} {REPAIR}") from None
        finally:
            pool.shutdown(cancel_futures=True)

    def dataset(self):
        tf = require_tensorflow()
        samples = tf.data.Dataset.range(len(self))
        return samples.map(self.reader(), num_parallel_calls=READERS)

    def reader(self, scale=None):
        if scale is not None and self.fit != "crop":
            return with_windows(self.reader(), scale, self.shape)
        tf = require_tensorflow()
        find = self._finder()

        def decode_window(*source_and_draws):
            *source, draws = source_and_draws
            return self._decode(
                *source, lambda *size: map(int, draw_window(draws, *size, scale, np))
            )

        def read(index, draws=None):
            *source, label = find(index)
            if scale is None:
                image = tf.numpy_function(self._decode, source, tf.uint8)
            else:
                encoded = self._encoded(*source)
                image = tf.cond(
                    is_upright_jpeg(encoded),
                    lambda: crop_jpeg(encoded, draws, scale, self.shape),
                    lambda: tf.numpy_function(decode_window, [*source, draws], tf.uint8),
                )
            return tf.ensure_shape(image, self.shape), tf.ensure_shape(label, ())

        return read

    def _chunks(self, size=TOGETHER):
        """Yields the number of the first sample, the sources and the classes of `size` samples."""
        samples, start = self._sources(), 0
        while chunk := list(itertools.islice(samples, size)):
            yield start, *zip(*chunk, strict=True)
            start += len(chunk)


class FileSplit(EncodedSplit):
    """Images in files, which `read_image` reads.

    Args:
        paths: Paths of the files.
        labels: Their class indices.
        shape: `(height, width, channels)` of the images.
        read: Function from a path as bytes and a `window` to an image. Defaults to `read_image` at
            this shape.
        fit: How images of another aspect ratio are read, one of `data.fits.FITS`.
    """

    def __init__(self, paths, labels, shape, read=None, fit="crop"):
        self.paths = [os.fsencode(path) for path in paths]
        self.labels = np.array(labels, "int64")
        self.shape, self.fit = tuple(shape), fit
        self._read = read

    def __len__(self):
        return len(self.paths)

    def _sources(self):
        return (((path,), label) for path, label in zip(self.paths, self.labels, strict=True))

    def _finder(self):
        tf = require_tensorflow()
        with tf.device("CPU"):
            paths, labels = tf.constant(self.paths), tf.constant(self.labels)
        return lambda index: (tf.gather(paths, index), tf.gather(labels, index))

    def _encoded(self, path):
        import tensorflow as tf  # not by require, which AutoGraph cannot trace

        return tf.io.read_file(path)

    def _decode(self, path, window=None):
        if self._read is not None:
            return self._read(path, window)
        return read_image(os.fsdecode(path), self.shape, window=window, fit=self.fit)

    def choose(self, places):
        """Returns the split of the samples at some places, a list."""
        paths = [self.paths[place] for place in places]
        return FileSplit(paths, self.labels[places], self.shape, self._read, self.fit)

    def _first(self, samples):
        return self.choose(list(range(samples)))
