"""Splits of a `tf.data.Dataset`, and of another split whose colours change."""

import functools
import tempfile

import numpy as np

from keras_gmlp.data.images.splits import ArraySplit, Split
from keras_gmlp.utils.errors import one_line_errors
from keras_gmlp.utils.files import naming, require_space

# Pillow's weights for red, green and blue, in 1/65536.
GREY = np.array([19595, 38470, 7471], "int32")


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
        self._dataset, self._size, self._stored = dataset, int(dataset.cardinality()), None
        if self._size < 0:
            raise ValueError(
                "expected a tf.data.Dataset of known, finite size; give it one with "
                "dataset.apply(tf.data.experimental.assert_cardinality(samples))."
            )

    @functools.cached_property
    def shape(self):
        """The shape of the first image."""
        with one_line_errors():
            return tuple(next(iter(self._dataset))[0].shape)

    def __len__(self):
        return self._size

    def choose(self, places):
        import tensorflow as tf

        first, end = (places[0], places[-1] + 1) if len(places) else (0, 0)
        part = self._dataset.skip(first).take(end - first)
        if len(places) < end - first:
            chosen = tf.constant(np.isin(np.arange(first, end), places))
            part = part.enumerate().filter(lambda number, _: tf.gather(chosen, number))
            part = part.map(lambda _, sample: sample)
            part = part.apply(tf.data.experimental.assert_cardinality(len(places)))
        return DatasetSplit(part)

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
        size = (len(self), *self.shape)
        folder = tempfile.gettempdir()
        require_space(folder, np.prod(size))
        with naming(folder, folder), tempfile.NamedTemporaryFile() as file:
            labels = self.write_to(file)
            file.flush()
            self._stored = ArraySplit(np.memmap(file.name, "uint8", "r", shape=size), labels)
        return self._stored.reader(scale)

    def requester(self):
        return self._stored.requester()


class ChannelSplit(Split):
    """The samples of a split of 3 channels or 1 with the other number of channels."""

    def __init__(self, split, channels):
        self.split, self.channels = split, channels
        self.paths = getattr(split, "paths", ())

    @property
    def shape(self):
        """The shape of the converted images."""
        return (*self.split.shape[:2], self.channels)

    def __len__(self):
        return len(self.split)

    def choose(self, places):
        return ChannelSplit(self.split.choose(places), self.channels)

    def read_labels(self):
        return self.split.read_labels()

    def batches(self, size):
        for images, labels in self.split.batches(size):
            yield self._convert(images), labels

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
