"""Training and evaluation batches: order, augmentation, and that a run can be made again."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from refused import refused

from keras_gmlp.data.batches.augmentation import Augmentation
from keras_gmlp.data.batches.host import evaluation_batches, training_batches
from keras_gmlp.data.batches.order import Position
from keras_gmlp.data.images import samples
from keras_gmlp.data.images.image_data import ImageData

NOTHING = {"crop": 0, "flip": False}
MOST = "all but RandAugment"  # which takes seconds to build
AUGMENTATIONS = {
    "nothing": Augmentation(**NOTHING),
    MOST: Augmentation(alternating_flip=True, cutout=0.4, mixup=0.4, cutmix=0.4),
    "all": Augmentation(rand_augment=0.5, cutout=0.4, mixup=0.4, cutmix=0.4),
}


def image_data(images, labels):
    images, shape = np.asarray(images, "uint8"), tuple(np.shape(images)[1:])
    split = samples.Samples(np.asarray(labels, "int64"), shape, images.__getitem__)
    names = tuple(map(str, range(max(labels) + 1)))
    return ImageData("planted", names, shape, split, split)


def noise():
    """Random images; the class is the number of the image."""
    images = np.random.default_rng(0).integers(1, 256, (12, 8, 8, 3))
    return image_data(images, range(12))


def plain(*values):
    """Images of one value each; the class is the number of the image."""
    images = np.broadcast_to(np.reshape(values, (-1, 1, 1, 1)), (len(values), 8, 8, 3))
    return image_data(images, range(len(values)))


def epochs(images, augmentation, count=1, batch_size=4, **options):
    """Of each epoch all batches of images and all batches of labels."""
    batches = training_batches(images, batch_size, augmentation, **options)
    for _ in range(count):
        pixels, labels = zip(*batches.as_numpy_iterator(), strict=True)
        yield np.stack(pixels), np.stack(labels)


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(("name", "memory"), [("nothing", 2**30), ("all", 2**30), (MOST, 0)])
def test_epochs_differ_and_come_again(monkeypatch, name, memory):
    monkeypatch.setattr(samples, "MEMORY_LIMIT", memory)
    images, augmentation = noise(), AUGMENTATIONS[name]
    run = list(epochs(images, augmentation, 3))
    for pixels, _ in run:
        assert pixels.shape == (3, 4, 8, 8, 3)
        assert pixels.dtype == np.float32
        assert pixels.min() >= 0
        assert pixels.max() <= 255
    assert not any(same(*pair) for pair in itertools.combinations(run, 2))
    tf.random.set_seed(99)  # a resumed run sets another, for its dropouts
    expected = tf.random.uniform((4,)).numpy()
    tf.random.set_seed(99)
    resumed = list(epochs(images, augmentation, 2, position=Position(epoch=1)))
    assert same(resumed[0], run[1])
    assert same(resumed[1], run[2])
    np.testing.assert_array_equal(tf.random.uniform((4,)), expected)


@pytest.mark.parametrize(
    ("batch_size", "steps", "memory"),
    [(5, 2, 2**30), (99, 1, 2**30), (5, 2, 0)],
)
def test_each_sample_once_with_its_label(monkeypatch, batch_size, steps, memory):
    monkeypatch.setattr(samples, "MEMORY_LIMIT", memory)
    images = plain(*range(10, 130, 10))
    made = training_batches(images, batch_size)
    assert int(made.cardinality()) == steps
    # An epoch must not wait for the autotuner, which a short one meets by chance.
    assert made.options().autotune.enabled is False
    seen = set()
    for pixels, labels in epochs(images, None, 6, batch_size):
        labels = labels.ravel()
        assert len(labels) == len(set(labels)) == steps * min(batch_size, 12)
        np.testing.assert_array_equal(
            pixels.reshape(-1, 192), 10 * labels[:, None] + 10 + 0 * pixels.reshape(-1, 192)
        )
        seen |= set(labels)
    assert seen == set(range(12))  # what an epoch leaves out is not always the same
    (first,), (other,) = (epochs(images, None, 1, batch_size, position=seed) for seed in (0, 1))
    assert not same(first, other)


@pytest.mark.parametrize("memory", [2**30, 0])
def test_evaluation_batches_are_complete_and_in_order(monkeypatch, memory):
    monkeypatch.setattr(samples, "MEMORY_LIMIT", memory)
    found = evaluation_batches(plain(*range(12)), 5)
    assert len(found) == 3
    for _ in range(2):
        pixels, labels = zip(*found, strict=True)
        assert [len(part) for part in pixels] == [5, 5, 2]
        assert pixels[0].dtype == np.uint8
        assert np.concatenate(labels).tolist() == list(range(12))
        assert np.concatenate(pixels)[:, 0, 0, 0].tolist() == list(range(12))


def test_bad_arguments():
    wrong = {"crop": -0.1}, {"cutout": 1.1}, {"mixup": float("nan")}, {"mixup": 0.6, "cutmix": 0.5}
    wrong += {"mix_from": 0.5, "mix_until": 0.4}, {"cutmix": "0.4"}
    for settings in wrong:
        with refused(next(iter(settings))):
            Augmentation(**settings)
