"""Images per second of the augmentation, also with keras-cv's RandAugment layer.

Run `python -m keras_gmlp.benchmark.augmentation_speed`; it prints a Markdown table.
"""

import statistics
import time
from types import SimpleNamespace

import numpy as np

BATCH_SIZE, SIZE, CLASSES = 512, 32, 10

BATCHES = 12  # in one measurement

ROUNDS = 5  # each measures every candidate once, so that a disturbance affects all

MAGNITUDE = 0.4


def make_candidates():
    """Returns functions of (key, uint8 images, class indices) by name."""
    import keras_cv

    from keras_gmlp.data.batches.augmentation import Augmentation, make_augmenter

    data = SimpleNamespace(mirror=True, labels=range(CLASSES))
    layer = keras_cv.layers.RandAugment((0, 255), 2, MAGNITUDE)

    def augmenter(**settings):
        return make_augmenter(Augmentation(**settings), data)

    mix = augmenter(mixup=0.4, cutmix=0.4)

    def mix_and_keras_cv(key, images, labels):
        images, labels = mix(key, images, labels)
        return layer(images, training=True), labels

    return {
        "crop, flip": augmenter(),
        "crop, flip, MixUp or CutMix": mix,
        "crop, flip, RandAugment, MixUp or CutMix": augmenter(
            rand_augment=MAGNITUDE, mixup=0.4, cutmix=0.4
        ),
        "the same with keras-cv's RandAugment layer": mix_and_keras_cv,
    }


def make_batches(augment, threads):
    """Returns an endless `tf.data.Dataset` of augmented noise that computes on some threads."""
    import tensorflow as tf

    random = np.random.default_rng(0)
    images = tf.constant(random.integers(0, 256, (BATCH_SIZE, SIZE, SIZE, 3), "uint8"))
    labels = tf.constant(random.integers(0, CLASSES, BATCH_SIZE))
    options = tf.data.Options()
    options.autotune.enabled = False
    options.threading.private_threadpool_size = threads
    options.threading.max_intra_op_parallelism = 1
    keys = tf.data.Dataset.counter().map(lambda i: tf.stack([i, 0]))
    batches = keys.map(lambda key: augment(key, images, labels), num_parallel_calls=threads)
    return batches.with_options(options)


def measure_speed(iterator):
    """Returns images per second of the clock and images per second of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    for _ in range(BATCHES):
        next(iterator)
    images = BATCHES * BATCH_SIZE
    return images / (time.perf_counter() - clock), images / (time.process_time() - processor)


def measure(threads=(1, 2)):
    """Returns the median speeds by (name, number of threads), each a pair as in `measure_speed`."""
    iterators = {
        (name, number): iter(make_batches(augment, number))
        for name, augment in make_candidates().items()
        for number in threads
    }
    speeds = {key: [] for key in iterators}
    for _ in range(ROUNDS):
        for key, iterator in iterators.items():
            for _ in range(2 * key[1] + 1):  # discards batches prepared while the others ran
                next(iterator)
            speeds[key].append(measure_speed(iterator))
    return {
        key: [statistics.median(part) for part in zip(*s, strict=True)] for key, s in speeds.items()
    }


def main():
    speeds = measure()
    print("| images/s | 1 thread | 2 threads | 1 thread, per second of CPU time |")
    print("|---|---|---|---|")
    for name in dict.fromkeys(name for name, _ in speeds):
        (clock, processor), (clock_of_two, _) = speeds[name, 1], speeds[name, 2]
        print(f"| {name} | {clock:,.0f} | {clock_of_two:,.0f} | {processor:,.0f} |")


if __name__ == "__main__":
    main()
