"""Splits of images in files, decoded when they are read."""

import collections
import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.data.images.resized_crop import crop_jpeg, draw_window, is_upright_jpeg
from keras_gmlp.data.images.splits import READERS, Split, require_tensorflow, with_windows
from keras_gmlp.utils.errors import REPAIR

TOGETHER, PIXELS = 16, 2**20  # most samples, and bytes of them, that a thread decodes at a time


class EncodedSplit(Split):
    """Samples that are decoded on all cores when they are read; the base class."""

    # Random windows are parts of the image as it is read; with this fit, of the whole file.
    fit = "crop"

    def _sources(self):
        """Yields the source of each image and its class index."""
        raise NotImplementedError

    def _finder(self):
        """Returns a function from an index to the source of that image and its class index."""
        raise NotImplementedError

    def _encoded(self, source):
        """Returns the bytes of the image file of a source."""
        raise NotImplementedError

    def _decode(self, source, window=None):
        """Returns the image of a source. Thread-safe."""
        raise NotImplementedError

    def read_labels(self):
        return np.fromiter((label for _, label in self._sources()), "int64", len(self))

    def batches(self, size):
        pool = ThreadPoolExecutor(READERS)
        samples = self._decoded(pool)
        try:
            while batch := list(itertools.islice(samples, size)):
                images, labels = zip(*batch, strict=True)
                yield np.stack(images), np.array(labels, "int64")
        except ValueError as error:
            raise ValueError(f"{error} {REPAIR}") from None
        finally:
            pool.shutdown(cancel_futures=True)

    def _decoded(self, pool):
        """Yields the images and class indices in order, some of which are decoded ahead."""
        sources, waiting = self._sources(), collections.deque()
        size = max(1, min(TOGETHER, PIXELS // int(np.prod(self.shape))))

        def decode(chunk):
            return [(self._decode(source), label) for source, label in chunk]

        while (chunk := list(itertools.islice(sources, size))) or waiting:
            if chunk:
                waiting.append(pool.submit(decode, chunk))
            if not chunk or len(waiting) > 2 * READERS:
                yield from waiting.popleft().result()

    def reader(self, scale=None):
        if scale is not None and self.fit != "crop":
            return with_windows(self.reader(), scale, self.shape)
        tf = require_tensorflow()
        find = self._finder()

        def open_sample(index):
            source, label = find(index)
            return self._encoded(source), label

        def decode(index, *draws):
            def window(*size):
                return map(int, draw_window(*draws, *size, scale, np))

            source, label = find(index)
            return self._decode(source, window if draws else None), label

        def read(index):
            image, label = tf.numpy_function(decode, [index], [tf.uint8, tf.int64])
            return tf.ensure_shape(image, self.shape), tf.ensure_shape(label, ())

        def read_window(index, draws):
            encoded, label = tf.numpy_function(open_sample, [index], [tf.string, tf.int64])
            encoded = tf.ensure_shape(encoded, ())
            image = tf.cond(
                is_upright_jpeg(encoded),
                lambda: crop_jpeg(encoded, draws, scale, self.shape),
                lambda: tf.numpy_function(decode, [index, draws], [tf.uint8, tf.int64])[0],
            )
            return tf.ensure_shape(image, self.shape), tf.ensure_shape(label, ())

        return read if scale is None else read_window


class FileSplit(EncodedSplit):
    """Images in files, which `read_image` reads.

    Args:
        paths: Paths of the files.
        labels: Their class indices.
        shape: `(height, width, channels)` of the images.
        read: Function from a path as bytes and a `window` to an image. Defaults to `read_image` at
            this shape.
        fit: How images of another aspect ratio are read, one of `data.images.fits.FITS`.
    """

    def __init__(self, paths, labels, shape, read=None, fit="crop"):
        self.paths = [os.fsencode(path) for path in paths]
        self.labels = np.array(labels, "int64")
        self.shape, self.fit = tuple(shape), fit
        self._read = read

    def __len__(self):
        return len(self.paths)

    def choose(self, places):
        paths = [self.paths[place] for place in places]
        return FileSplit(paths, self.labels[places], self.shape, self._read, self.fit)

    def read_labels(self):
        return self.labels

    def _sources(self):
        return zip(self.paths, self.labels, strict=True)

    def _finder(self):
        return lambda index: (self.paths[index], self.labels[index])

    def _encoded(self, path):
        try:
            return Path(os.fsdecode(path)).read_bytes()
        except OSError:  # `_decode` says what is wrong
            return b""

    def _decode(self, path, window=None):
        if self._read is not None:
            return self._read(path, window)
        return read_image(os.fsdecode(path), self.shape, window=window, fit=self.fit)
