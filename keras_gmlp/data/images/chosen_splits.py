"""Some samples of a split; of image files, the others are not decoded."""

import itertools

import numpy as np

from keras_gmlp.data.images.encoded_splits import EncodedSplit, FileSplit
from keras_gmlp.data.images.sample_readers import require_tensorflow
from keras_gmlp.data.images.splits import TOGETHER, ChannelSplit, Split
from keras_gmlp.utils.progress import ProgressBar


def choose_samples(split, places):
    """Returns the split of the samples at some places of another one, in ascending order."""
    if isinstance(split, ChannelSplit):
        return ChannelSplit(choose_samples(split.split, places), split.channels)
    if isinstance(split, FileSplit):
        return split.choose(list(places))
    kind = ChosenEncodedSplit if isinstance(split, EncodedSplit) else ChosenSplit
    return kind(split, places)


class ChosenSplit(Split):
    """Some samples of another split.

    Args:
        split: A `Split`.
        places: Their places in it, ascending.
    """

    def __init__(self, split, places):
        self._split, self._places = split, np.asarray(places, "int64")

    def __len__(self):
        return len(self._places)

    def arrays(self):
        batches = self.batches(TOGETHER)
        first, _ = next(batches)
        images = np.empty((len(self), *first.shape[1:]), "uint8")
        return images, self.read_into(images)

    def read_into(self, images):
        done = 0
        with ProgressBar("reading images", len(self)) as progress:
            for part, _ in self.batches(TOGETHER):
                images[done : done + len(part)] = part
                done += len(part)
                progress.show(done)
        return self.read_labels()

    def read_labels(self):
        return self._split.read_labels()[self._places]

    def batches(self, size):
        start, chosen = 0, np.zeros(len(self._split), bool)
        chosen[self._places] = True
        waiting, count = [], 0
        for images, labels in self._split.batches(size):
            part = chosen[start : start + len(labels)]
            start += len(labels)
            waiting.append((images[part], labels[part]))
            count += np.count_nonzero(part)
            while count >= size or (count and start == len(self._split)):
                images, labels = map(np.concatenate, zip(*waiting, strict=True))
                yield images[:size], labels[:size]
                waiting, count = [(images[size:], labels[size:])], max(0, count - size)

    def dataset(self):
        tf = require_tensorflow()
        return tf.data.Dataset.range(len(self)).map(self.reader(), tf.data.AUTOTUNE)

    def reader(self, scale=None):
        tf = require_tensorflow()
        read = self._split.reader(scale)
        with tf.device("CPU"):
            places = tf.constant(self._places)
        return lambda index, *draws: read(tf.gather(places, index), *draws)

    def requester(self):
        request = self._split.requester()
        return request and (lambda indices: request(self._places[indices]))

    def _first(self, samples):
        return ChosenSplit(self._split, self._places[:samples])


class ChosenEncodedSplit(EncodedSplit):
    """Some samples of an `EncodedSplit`; arguments are those of `ChosenSplit`."""

    def __init__(self, split, places):
        self._split, self._places = split, np.asarray(places, "int64")
        self.shape, self.fit = split.shape, split.fit

    def __len__(self):
        return len(self._places)

    def _sources(self):
        chosen = np.zeros(len(self._split), bool)
        chosen[self._places] = True
        return itertools.compress(self._split._sources(), chosen)

    def _finder(self):
        tf = require_tensorflow()
        find = self._split._finder()
        with tf.device("CPU"):
            places = tf.constant(self._places)
        return lambda index: find(tf.gather(places, index))

    def _encoded(self, *source):
        return self._split._encoded(*source)

    def _decode(self, *source, **window):
        return self._split._decode(*source, **window)

    def _first(self, samples):
        return ChosenEncodedSplit(self._split, self._places[:samples])
