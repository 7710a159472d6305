"""Batches for every backend: tf.data pipelines that shuffle, augment and resume."""

import math
import weakref
from typing import Any

import keras
import numpy as np

from keras_gmlp.data.batches.augmentation import (
    WINDOW,
    Augmentation,
    make_augmenter,
    make_draw,
)
from keras_gmlp.data.batches.order import Passes, Position
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.resized_crop import draw_windows
from keras_gmlp.data.images.samples import READERS
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import printable

PREFETCHED = 4  # batches prepared ahead of the training step
PREPARED = 2**30  # bytes of batches that are read or augmented at a time, or prepared ahead


def training_batches(
    data: ImageData,
    batch_size: int,
    augmentation: Augmentation | None = None,
    position: int | Position = 0,
) -> Any:
    """Returns shuffled, augmented batches of the training split; one iteration is one epoch.

    The same seed gives the same batches in every epoch, also when a run resumes.
    The order is a shuffle of all samples, another one in each epoch. Decoded pixels stay in memory
    if they fit (`Samples.keep`); samples of larger data sets are read and decoded in this order.

    Args:
        data: An `ImageData`.
        batch_size: Samples in a batch. Each epoch leaves out the samples that do not fill a batch.
        augmentation: An `Augmentation`, or `None` for none. `flip` is ignored if a mirrored image
            would change its label.
        position: Seed of a new run; or where a run stands, as `Task.training_batches` gets it.
            `mix_from` above 0 and `mix_until` below 1 require the latter.

    Returns:
        A `tf.data.Dataset` of (float32 images in [0, 255], labels). Labels are class indices, or
        rows of probabilities with MixUp or CutMix; of sets of labels rows of 0 and 1.

    Raises:
        ValueError: If `batch_size` does not split into parts, an image cannot be read, or a
            `tf.data.Dataset` does not fit in memory. When samples stream, reading fails during
            iteration; see `one_line_errors`.
        ImportError: If TensorFlow is not installed.
    """
    tf = require("tensorflow", "training_batches", "demo")
    from keras_gmlp.data.batches.namespaces import tensorflow_namespace

    if not isinstance(position, Position):
        position = Position(position)
    augmentation = augmentation or Augmentation(crop=0, flip=False)
    size, (process, processes) = len(data.train), position.part
    batch_size = min(batch_size, size)
    # Neighbours mix: the rows of a process are pairs.
    mixes = augmentation.mixup or augmentation.cutmix
    parts = 2 * processes if processes > 1 and mixes else processes
    if batch_size % parts:
        raise ValueError(
            f"{processes} processes require a batch size that {parts} divides; received "
            f"{batch_size}."
        )
    rows = batch_size // processes
    own = slice(process * rows, (process + 1) * rows)  # rows of each batch
    samples, scale = data.train.keep(), augmentation.resized_crop
    if samples.in_order:
        raise ValueError(
            f"{printable(data.name)}: its images do not fit in memory, and it is read in order "
            "only. Pack it, and train on the folder (apps/pack.py)."
        )
    change = make_augmenter(
        augmentation, data.mirror, len(data.labels), tensorflow_namespace(), data.label_rows()
    )
    passes = Passes(size, batch_size, position.seed)
    draw = make_draw(augmentation, position.seed, size, position.epochs)
    epoch = tf.Variable(position.epoch, dtype=tf.int64, trainable=False)

    source, labels, shape = weakref.ref(samples), samples.labels, data.image_shape

    def read_step(number, step):
        indices = passes.draw(number)[step]
        numbers, indices = draw(number, step, indices)[own], indices[own]
        windows = make_windows(numbers[:, WINDOW], scale) if scale else None
        return source().read(indices, windows), labels[indices], numbers

    def prepare(number, step):
        # One call of Python for a batch: each takes a part of a millisecond.
        types = tf.uint8, tf.int64, tf.float32
        images, indices, numbers = tf.numpy_function(read_step, [number, step], types)
        images, indices = tf.ensure_shape(images, (rows, *shape)), tf.ensure_shape(indices, (rows,))
        return change(images, indices, tf.ensure_shape(numbers, (rows, None)))

    plain = tf.autograph.experimental.do_not_convert  # rewriting the functions takes a second
    steps = tf.data.Dataset.range(passes.steps)
    # The epoch counts on whenever an iteration begins.
    numbers = tf.data.Dataset.range(1).map(plain(lambda _: epoch.assign_add(1) - 1))
    batches = numbers.flat_map(plain(lambda i: steps.map(plain(lambda step: (i, step)))))
    held = max(1, PREPARED // (4 * rows * math.prod(data.image_shape)))  # float32
    batches = batches.map(plain(prepare), min(READERS, held))
    batches = batches.apply(tf.data.experimental.assert_cardinality(passes.steps))
    options = tf.data.Options()  # without the autotuner and rewriting of the pipeline
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    batches = batches.prefetch(min(PREFETCHED, held)).with_options(options)
    batches.samples = samples  # TensorFlow never frees what a function of `numpy_function` holds
    return batches


def make_windows(numbers, scale):
    """Returns the windows that `Samples.read` takes, from the uniform numbers of some images."""
    return lambda rows, height, width: draw_windows(numbers[rows], height, width, scale, np)


def evaluation_batches(
    data: ImageData, batch_size: int = 250, split: str = "test", samples: int = -1
) -> keras.utils.PyDataset:
    """Returns unchanged batches of a split, in order: (uint8 images, class indices).

    Sets of labels become rows of 0 and 1, float32 `(batch, classes)`.

    Args:
        data: An `ImageData`.
        batch_size: Samples in a batch; the last may be smaller.
        split: `"test"`, `"train"` or `"validation"`.
        samples: Number of samples from the start; -1 for all.

    Returns:
        A `keras.utils.PyDataset`.

    Raises:
        ValueError: If an image cannot be read. When samples stream, reading fails during iteration.
    """
    chosen, rows = getattr(data, split), data.label_rows()
    chosen = (chosen if samples < 0 else chosen.take(slice(samples))).keep()

    def read(part):
        part = chosen.take(part)
        images, labels = part.read(slice(None)), part.labels
        return images, labels if rows is None else rows[labels]

    return Batches(len(chosen), batch_size, read, not (chosen.in_memory or chosen.in_order))


def array_batches(*arrays, batch_size):
    """Returns batches of equally long arrays, in order; the first may be a dict of them."""

    def read(part):
        return keras.tree.map_structure(lambda array: array[part], arrays)

    return Batches(len(arrays[1]), batch_size, read)


class Batches(keras.utils.PyDataset):
    """Batches in order, which a function reads from slices, perhaps ahead of their use."""

    def __init__(self, count, batch_size, read, ahead=False):
        super().__init__(workers=1 + ahead, max_queue_size=PREFETCHED)
        self.count, self.batch_size, self.read = count, batch_size, read

    def __len__(self):
        return -(-self.count // self.batch_size)

    def __getitem__(self, index):
        if index >= len(self):  # ends a `for` loop
            raise IndexError(f"batch {index} of {len(self)}")
        return self.read(slice(index * self.batch_size, (index + 1) * self.batch_size))
