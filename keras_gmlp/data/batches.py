"""From a data set to batches: tf.data pipelines that shuffle, augment and resume.

TensorFlow is imported inside the functions that need it, so that importing this module costs
nothing; the batches feed models on every backend.
"""

import numpy as np

from keras_gmlp.data.augmentation import Augmentation, make_augmenter
from keras_gmlp.utils.errors import one_line_errors

MEMORY_LIMIT = 4 * 2**30  # bytes of decoded pixels kept in memory (while read, twice); or streamed

SHUFFLE_BUFFER = 10_000  # samples, of a data set that is streamed

PREFETCHED = 4  # batches made ahead of the step that takes them


def training_batches(data, batch_size, augmentation=None, seed=0, initial_epoch=0):
    """Shuffled, augmented batches of the training split; one iteration is one epoch.

    Decoded pixels are kept in memory when they fit (`MEMORY_LIMIT`). The same seed gives the same
    batches, epoch for epoch, and `initial_epoch=k` begins with the (k+1)-th epoch's, so that a
    resumed run sees what it would have seen. Larger sets are shuffled through a buffer of
    `SHUFFLE_BUFFER` samples.

    Args:
        data: an `ImageData`.
        batch_size: samples in a batch; the rest of an epoch that fills none is left out.
        augmentation: an `Augmentation`; `None` for none. `flip` is ignored where it would change
            the label.
        seed: of the order and of the augmentation.
        initial_epoch: epochs that were done before.

    Returns:
        A `tf.data.Dataset` of (float32 images in [0, 255], labels): class indices, or rows of
        probabilities where MixUp or CutMix is on.

    Raises:
        ValueError: a batch size below 1; an image cannot be read (one line that names the file;
            where samples are streamed see `one_line_errors`).
    """
    import tensorflow as tf

    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1; received {batch_size}.")
    size = int(data.train.cardinality())
    batch_size = min(batch_size, size)
    augment = make_augmenter(augmentation or Augmentation(0, False), data)
    epoch = tf.Variable(initial_epoch, dtype=tf.int64, trainable=False)
    fold_in = tf.random.experimental.stateless_fold_in

    if _fits_in_memory(data, size):
        images, labels = _in_memory(data.train)

        def batches_of(key):
            return (
                tf.data.Dataset.range(size)
                .batch(batch_size, drop_remainder=True)
                .map(lambda i: tf.random.experimental.index_shuffle(i, key, size - 1))
                .map(lambda i: (tf.gather(images, i), tf.gather(labels, i)))
            )
    else:

        def batches_of(key):
            # Only this function's graph: the order must not depend on TensorFlow's global seed.
            tf.compat.v1.get_default_graph().seed = 1
            order = tf.random.stateless_uniform((), key, None, None, tf.int64)
            return data.train.shuffle(SHUFFLE_BUFFER, order).batch(batch_size, drop_remainder=True)

    def with_keys(key):
        # Every batch draws from its own key, so that it depends on nothing that was drawn before.
        return batches_of(key).enumerate().map(lambda i, batch: (fold_in(key, i), *batch))

    root = tf.constant([seed, 0], tf.int64)
    keys = tf.data.Dataset.range(1).map(lambda _: fold_in(root, epoch.assign_add(1)))
    batches = keys.flat_map(with_keys).map(augment, tf.data.AUTOTUNE)
    batches = batches.apply(tf.data.experimental.assert_cardinality(size // batch_size))
    return without_autotune(batches.prefetch(PREFETCHED))


def evaluation_batches(data, batch_size=250, split="test", samples=-1):
    """Batches of a split in order, as they are: (uint8 images, class indices).

    Args:
        data: an `ImageData`.
        batch_size: samples in a batch; the last may be smaller.
        split: `"test"` or `"train"`.
        samples: so many from the beginning; -1 for all.
    """
    import tensorflow as tf

    dataset = getattr(data, split).take(samples)
    if _fits_in_memory(data, int(dataset.cardinality())):
        batches = tf.data.Dataset.from_tensor_slices(_in_memory(dataset)).batch(batch_size)
    else:
        batches = dataset.batch(batch_size).prefetch(PREFETCHED)
    return without_autotune(batches)


def arrays(data, split="test", samples=-1):
    """The samples of a split in order, `evaluation_batches` in one piece.

    Returns:
        uint8 images `(samples, height, width, channels)` and integer class indices `(samples,)`.

    Raises:
        ValueError: an image cannot be read. One line.
    """
    with one_line_errors():
        batches = evaluation_batches(data, split=split, samples=samples).as_numpy_iterator()
        images, labels = (np.concatenate(part) for part in zip(*batches, strict=True))
    return images.astype("uint8"), labels


def without_autotune(batches):
    """Without tf.data's search for better buffers, whose thread sleeps up to a minute at a time.

    An iterator that has come to its end waits for that thread (seen in TensorFlow 2.21): each epoch
    of 82 s or more would take up to 60 s longer. Maps with AUTOTUNE then use all cores.
    """
    import tensorflow as tf

    options = tf.data.Options()
    options.autotune.enabled = False
    return batches.with_options(options)


def _fits_in_memory(data, samples):
    return samples * np.prod(data.image_shape) <= MEMORY_LIMIT


def _in_memory(dataset):
    """All samples as two tensors."""
    with one_line_errors():
        return dataset.batch(int(dataset.cardinality())).get_single_element()
