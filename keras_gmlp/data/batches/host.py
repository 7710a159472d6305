"""Batches for every backend: tf.data pipelines that shuffle, augment and resume."""

import math

import keras

from keras_gmlp.data.batches.augmentation import Augmentation, first_mirrored
from keras_gmlp.data.batches.passes import Position
from keras_gmlp.data.images.splits import READERS
from keras_gmlp.utils.environment import is_installed, require

PREFETCHED = 4  # batches prepared ahead of the training step
REQUESTED = 64  # samples that are requested from the disk at a time
PREPARED = 2**30  # bytes of batches that are augmented at a time, and of those prepared ahead


def training_batches(data, batch_size, augmentation=None, position=0):
    """Returns shuffled, augmented batches of the training split; one iteration is one epoch.

    The same seed gives the same batches in every epoch, also when a run resumes at a `Position`.
    The order is a shuffle of all samples, another one in each epoch. Decoded pixels stay in memory
    if they fit (`Split.keep`); samples of larger data sets are read and decoded in this order.

    Args:
        data: An `ImageData`.
        batch_size: Samples in a batch. Each epoch leaves out the samples that do not fill a batch.
        augmentation: An `Augmentation`, or `None` for none. `flip` is ignored if a mirrored image
            would change its label.
        position: A `Position`, with `epochs` for `mix_from` above 0 or `mix_until` below 1; or the
            seed of a new run. A process reads and decodes only its own rows, except that data
            which fit in memory are read whole.

    Returns:
        A `tf.data.Dataset` of (float32 images in [0, 255], labels). Labels are class indices, or
        rows of probabilities with MixUp or CutMix; of sets of labels rows of 0 and 1.

    Raises:
        ValueError: If `batch_size` is below 1 or does not split into parts, or an image cannot be
            read. When samples stream, reading fails during iteration; see `one_line_errors`.
        ImportError: If TensorFlow is not installed.
    """
    tf = require("tensorflow", "training_batches", "demo")
    from keras_gmlp.data.batches.host_augmentation import draw_windows, make_augmenter

    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1; received {batch_size}.")
    if not isinstance(position, Position):
        position = Position(position)
    step, (process, processes) = position.step, position.part
    augmentation = augmentation or Augmentation(crop=0, flip=False)
    if (augmentation.mix_from, augmentation.mix_until) == (0, 1):
        mixed = range(2**62)
    elif position.epochs is None:
        raise ValueError(
            "mix_from and mix_until are shares of the epochs; give their number, "
            "Position(epochs=...)."
        )
    else:
        mixed = augmentation.mixed_epochs(position.epochs)
    size = len(data.train)
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
    augment = make_augmenter(augmentation, data, batch_size, own)
    epoch = tf.Variable(position.epoch, dtype=tf.int64, trainable=False)
    fold_in = tf.random.experimental.stateless_fold_in

    scale, split = augmentation.resized_crop, data.train.keep()
    in_memory = split.fits_in_memory()
    read, request = split.reader(scale), split.requester()
    mirrored = tf.constant(first_mirrored(size)) if augmentation.alternating_flip else None

    def indices_of(key):
        indices = tf.data.Dataset.range(step * batch_size, size)
        indices = indices.batch(batch_size, drop_remainder=True)
        return indices.map(lambda i: tf.random.experimental.index_shuffle(i[own], key, size - 1))

    def batches_of(key):
        samples = indices = indices_of(key)
        if scale:
            samples = indices.enumerate(step).map(
                lambda i, batch: (batch, draw_windows(fold_in(key, i), batch_size)[own])
            )
        if in_memory and not scale:
            return indices.map(read)  # gathers a batch at once
        samples = samples.unbatch()
        if request:
            samples = _request_first(samples, request)
        return samples.map(read, READERS).batch(rows, drop_remainder=True)

    def with_keys(number):
        # Every batch draws from its own key and depends on no earlier draw.
        key = fold_in(root, number)
        mixing = (number > mixed.start) & (number <= mixed.stop)  # numbers begin at 1
        batches = batches_of(key).enumerate(step)
        batches = batches.map(lambda i, batch: (fold_in(key, i), *batch, mixing))
        if mirrored is None:
            return batches
        is_other = number % 2 == 0
        chosen = indices_of(key).map(lambda i: tf.gather(mirrored, i) ^ is_other)
        return tf.data.Dataset.zip(batches, chosen).map(lambda batch, flips: (*batch, flips))

    root = tf.constant([position.seed, 0], tf.int64)
    plain = tf.autograph.experimental.do_not_convert  # rewriting the functions takes a second
    numbers = tf.data.Dataset.range(1).map(plain(lambda _: epoch.assign_add(1)))
    held = max(1, PREPARED // (4 * rows * math.prod(data.image_shape)))  # float32
    batches = numbers.flat_map(plain(with_keys)).map(plain(augment), min(READERS, held))
    batches = batches.apply(tf.data.experimental.assert_cardinality(size // batch_size - step))
    return without_tuning(batches.prefetch(min(PREFETCHED, held)))


def _request_first(samples, request):
    """Returns the same samples, indices first, which it requests before they are taken."""
    import tensorflow as tf

    def request_indices(indices, *draws):
        tf.numpy_function(request, [indices], [])
        return (indices, *draws) if draws else indices

    batches = samples.batch(REQUESTED).map(request_indices)
    return batches.prefetch(PREFETCHED).unbatch()


def evaluation_batches(data, batch_size=250, split="test", samples=-1):
    """Returns unchanged batches of a split, in order: (uint8 images, class indices).

    Sets of labels become rows of 0 and 1, float32 `(batch, classes)`.

    Args:
        data: An `ImageData`.
        batch_size: Samples in a batch; the last may be smaller.
        split: `"test"`, `"train"` or `"validation"`.
        samples: Number of samples from the start; -1 for all.

    Returns:
        A `tf.data.Dataset`; without TensorFlow, a `keras.utils.PyDataset` that holds the images in
        memory.

    Raises:
        ValueError: If an image cannot be read. When samples stream, reading fails during iteration.
    """
    chosen, rows = getattr(data, split).keep(samples), data.label_rows()
    if not is_installed("tensorflow"):
        images, labels = chosen.arrays()
        return ArrayBatches(images, labels if rows is None else rows[labels], batch_size=batch_size)
    import tensorflow as tf

    if chosen.fits_in_memory():
        indices = tf.data.Dataset.range(len(chosen)).batch(batch_size)
        batches = indices.map(chosen.reader())  # gathers a batch at once
    else:
        batches = chosen.dataset().batch(batch_size).prefetch(PREFETCHED)
    if rows is not None:
        batches = batches.map(lambda images, labels: (images, tf.gather(rows, labels)))
    return without_tuning(batches)


def arrays(data, split="test", samples=-1):
    """Returns the samples of a split in order, as two arrays.

    Args:
        data: An `ImageData`.
        split: `"test"` or `"train"`.
        samples: Number of samples from the start; -1 for all.

    Returns:
        uint8 images `(samples, height, width, channels)` and int64 class indices `(samples,)`. Do
        not write to them: the data set keeps them if they fit in memory.

    Raises:
        ValueError: If an image cannot be read.
    """
    return getattr(data, split).keep(samples).arrays()


def without_tuning(batches):
    """Turns off tf.data's autotuner and its rewriting of the pipeline."""
    import tensorflow as tf

    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return batches.with_options(options)


class ArrayBatches(keras.utils.PyDataset):
    """Batches of equally long arrays, in order; for `evaluate` and `predict` on any backend."""

    def __init__(self, inputs, targets, *weights, batch_size):
        super().__init__()
        self.inputs, self.arrays, self.batch_size = inputs, (targets, *weights), batch_size

    def __len__(self):
        return -(-len(self.arrays[0]) // self.batch_size)

    def __getitem__(self, index):
        part = slice(index * self.batch_size, (index + 1) * self.batch_size)
        arrays = (self.inputs, *self.arrays)  # the inputs may be a dict
        return keras.tree.map_structure(lambda array: array[part], arrays)
