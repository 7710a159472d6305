"""Training and evaluation batches: order, augmentation, and that a run can be made again."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from refused import refused

from keras_gmlp.data.batches.augmentation import Augmentation
from keras_gmlp.data.batches.host import evaluation_batches, training_batches
from keras_gmlp.data.batches.passes import Position
from keras_gmlp.data.images import samples
from keras_gmlp.data.images.image_data import ImageData

NOTHING = {"crop": 0, "flip": False}
MOST = "all but RandAugment"  # which takes seconds to build
AUGMENTATIONS = {
    "nothing": Augmentation(**NOTHING),
    "flip": Augmentation(crop=0),
    "alternating flip": Augmentation(crop=0, alternating_flip=True),
    "mixup": Augmentation(mixup=1, **NOTHING),
    "cutmix": Augmentation(cutmix=1, **NOTHING),
    MOST: Augmentation(cutout=0.4, mixup=0.4, cutmix=0.4),
    "all": Augmentation(rand_augment=0.5, cutout=0.4, mixup=0.4, cutmix=0.4),
}


def image_data(images, labels, mirror=True):
    images, shape = np.asarray(images, "uint8"), tuple(np.shape(images)[1:])
    split = samples.Samples(np.asarray(labels, "int64"), shape, images.__getitem__)
    names = tuple(map(str, range(max(labels) + 1)))
    return ImageData("planted", names, shape, split, split, mirror)


def noise(count=12, size=8, channels=3, mirror=True):
    """Random images; the class is the number of the image."""
    images = np.random.default_rng(0).integers(1, 256, (count, size, size, channels))
    return image_data(images, range(count), mirror)


def plain(*values, size=8):
    """Images of one value each; the class is the number of the image."""
    images = np.broadcast_to(np.reshape(values, (-1, 1, 1, 1)), (len(values), size, size, 3))
    return image_data(images, range(len(values)))


def epochs(images, augmentation, count=1, batch_size=4, **options):
    """Of each epoch all batches of images and all batches of labels."""
    batches = training_batches(images, batch_size, augmentation, **options)
    for _ in range(count):
        pixels, labels = zip(*batches.as_numpy_iterator(), strict=True)
        yield np.stack(pixels), np.stack(labels)


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("name", "memory"), [("nothing", 2**30), ("nothing", 0), ("all", 2**30), (MOST, 0)]
)
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


@pytest.mark.parametrize("seed", [-3, 2**40])
def test_any_seed_gives_the_same_batches_again_also_after_an_epoch_that_was_left(seed):
    _, second = epochs(noise(), AUGMENTATIONS[MOST], 2, position=seed)
    batches = training_batches(noise(), 4, AUGMENTATIONS[MOST], seed)
    next(iter(batches))
    pixels, labels = zip(*batches.as_numpy_iterator(), strict=True)
    assert same((np.stack(pixels), np.stack(labels)), second)
    (other,) = epochs(noise(), AUGMENTATIONS[MOST], position=Position(seed + 1, epoch=1))
    assert not same(other, second)


@pytest.mark.parametrize(
    ("batch_size", "steps", "memory"),
    [(5, 2, 2**30), (5, 2, 0), (12, 1, 2**30), (99, 1, 2**30), (1, 12, 0)],
)
def test_each_sample_once_with_its_label(monkeypatch, batch_size, steps, memory):
    monkeypatch.setattr(samples, "MEMORY_LIMIT", memory)
    images = plain(*range(10, 130, 10))
    made = training_batches(images, batch_size)
    assert int(made.cardinality()) == steps
    assert_not_tuned(made)
    seen = set()
    for pixels, labels in epochs(images, None, 6, batch_size):
        labels = labels.ravel()
        assert len(labels) == len(set(labels)) == steps * min(batch_size, 12)
        np.testing.assert_array_equal(
            pixels.reshape(-1, 192), 10 * labels[:, None] + 10 + 0 * pixels.reshape(-1, 192)
        )
        seen |= set(labels)
    assert seen == set(range(12))  # what an epoch leaves out is not always the same


def assert_not_tuned(batches):
    """The end of an epoch must not wait for the autotuner, which wakes after 0.63, 1.27, ... s.

    By the clock it is chance whether a short epoch meets it.
    """
    assert batches.options().autotune.enabled is False


@pytest.mark.parametrize(("crop", "margin"), [(0.125, 1), (0.25, 2), (0.05, 0), (1, 8)])
def test_crop_is_a_window_of_the_image_on_black(crop, margin):
    images = noise(50)
    ((pixels, labels),) = epochs(images, Augmentation(crop=crop, flip=False), batch_size=50)
    originals = images.train.arrays()[0]
    padded = np.pad(originals, [(0, 0), (margin, margin), (margin, margin), (0, 0)])
    shifts = range(2 * margin + 1)
    used = set()
    for image, label in zip(pixels[0], labels[0], strict=True):
        matches = [
            (y, x)
            for y, x in itertools.product(shifts, shifts)
            if np.array_equal(padded[label, y : y + 8, x : x + 8], image)
        ]
        assert matches
        used.add(matches[0])
    if margin < 8:
        assert {y for y, _ in used} == {x for _, x in used} == set(shifts)


def mirrored_samples(images, epoch):
    """Which samples an epoch mirrored, by their label: 0 or 1, and -1 for one that is missing."""
    originals, found = images.train.arrays()[0], np.full(len(images.train), -1)
    pixels, labels = epoch
    for image, label in zip(pixels.reshape(-1, *originals.shape[1:]), labels.ravel(), strict=True):
        kept, mirrored = (np.array_equal(image, originals[label][:, ::s]) for s in (1, -1))
        assert kept != mirrored
        found[label] = mirrored
    return found


@pytest.mark.parametrize("memory", [2**30, 0])
def test_alternating_flip_mirrors_every_sample_in_one_of_two_epochs(monkeypatch, memory):
    monkeypatch.setattr(samples, "MEMORY_LIMIT", memory)
    images, augmentation = noise(60, size=4), AUGMENTATIONS["alternating flip"]
    run = [mirrored_samples(images, e) for e in epochs(images, augmentation, 4, batch_size=20)]
    assert 15 < run[0].sum() < 45
    for epoch, found in enumerate(run):
        np.testing.assert_array_equal(found, run[0] if epoch % 2 == 0 else 1 - run[0])
    order = {"position": Position(epoch=1, step=2), "batch_size": 20}
    (rest,) = (mirrored_samples(images, e) for e in epochs(images, augmentation, **order))
    assert (rest >= 0).sum() == 20
    np.testing.assert_array_equal(rest[rest >= 0], run[1][rest >= 0])


@pytest.mark.parametrize("name", ["flip", "alternating flip"])
def test_flip_mirrors_half_and_no_image_whose_label_would_change(name):
    images = noise(200, size=4)
    (epoch,) = epochs(images, AUGMENTATIONS[name], batch_size=200)
    assert 70 < mirrored_samples(images, epoch).sum() < 130
    images = noise(20, size=4, mirror=False)
    for epoch in epochs(images, AUGMENTATIONS[name], 2, batch_size=20):
        assert not mirrored_samples(images, epoch).any()


@pytest.mark.parametrize(("cutout", "side"), [(0.4, 6), (0.25, 4), (1, 16), (0.1, 2)])
def test_cutout_blacks_out_one_square(cutout, side):
    images = image_data(np.full((100, 16, 16, 3), 200), range(100))
    ((pixels, _),) = epochs(images, Augmentation(cutout=cutout, **NOTHING), batch_size=100)
    assert set(pixels.ravel()) == {0, 200}
    lengths = []
    for black in (pixels[0] == 0).all(axis=-1):
        for along in (black.any(axis=0), black.any(axis=1)):
            at = np.flatnonzero(along)
            assert len(at) == at[-1] - at[0] + 1  # in one piece
            assert len(at) == side or at[0] == 0 or at[-1] == 15  # smaller only at the border
            lengths.append(len(at))
        assert black.sum() == lengths[-1] * lengths[-2]
    assert max(lengths) == side
    assert len({tuple(image.ravel()) for image in pixels[0]}) > 20 or side == 16


@pytest.mark.parametrize("name", ["mixup", "cutmix"])
def test_labels_mix_as_the_pixels(name):
    values = np.array([0, 80, 160, 240])
    images = image_data(
        np.ones((1, 16, 16, 3)) * np.tile(values, 16).reshape(-1, 1, 1, 1), list(range(4)) * 16
    )
    ((pixels, labels),) = epochs(images, AUGMENTATIONS[name], batch_size=32)
    assert labels.dtype == np.float32
    np.testing.assert_allclose(labels.sum(axis=-1), 1, atol=1e-6)
    assert labels.min() >= 0
    mean = labels @ values
    np.testing.assert_allclose(pixels.mean(axis=(2, 3, 4)), mean, atol=1e-3)
    if name == "mixup":
        np.testing.assert_allclose(pixels, mean[..., None, None, None] + 0 * pixels, atol=1e-3)
    else:
        assert set(pixels.ravel()) <= set(values)


@pytest.mark.parametrize("name", ["mixup", "cutmix"])
def test_every_sample_of_every_epoch_mixes_by_its_own_weight(name):
    one, other = (
        labels.max(axis=-1) for _, labels in epochs(noise(size=32), AUGMENTATIONS[name], 2)
    )
    assert len(set(one.ravel().round(4))) > 8
    assert (one != other).mean() > 0.8


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, [True] * 5),
        ({"mix_until": 0.6}, [True, True, True, False, False]),
        ({"mix_from": 0.4}, [False, False, True, True, True]),
        ({"mix_from": 0.2, "mix_until": 0.4}, [False, True, False, False, False]),
    ],
)
def test_mixing_begins_and_ends_with_an_epoch(limits, expected):
    augmentation = Augmentation(mixup=1, **limits, **NOTHING)
    assert [epoch in augmentation.mixed_epochs(5) for epoch in range(5)] == expected
    batches = list(epochs(noise(), augmentation, 5, position=Position(epochs=5)))
    assert [bool((labels.max(axis=-1) < 1).any()) for _, labels in batches] == expected
    late = epochs(noise(), augmentation, 1, position=Position(epoch=3, epochs=5))
    assert same(next(late), batches[3])


@pytest.mark.parametrize(("mixup", "cutmix"), [(0.3, 0.3), (0.6, 0.4)])
def test_mixup_and_cutmix_get_their_shares_of_the_batches(mixup, cutmix):
    augmentation = Augmentation(mixup=mixup, cutmix=cutmix, **NOTHING)
    ((pixels, labels),) = epochs(plain(*(i % 250 for i in range(400)), size=4), augmentation)
    mixed = (labels.max(axis=-1) < 1).any(axis=-1)
    pasted = (np.ptp(pixels, axis=(2, 3)) > 0).any(axis=(1, 2))
    assert np.isclose(mixed.mean(), mixup + cutmix, atol=0.15)
    assert np.isclose(pasted.mean(), cutmix, atol=0.15)
    for pixels, labels in epochs(plain(10, 20), augmentation, batch_size=1):  # with itself
        np.testing.assert_allclose(pixels[:, 0, 0, 0, 0], 10 + 10 * labels.argmax(axis=-1)[:, 0])


@pytest.mark.parametrize("memory", [2**30, 0])
def test_evaluation_batches_are_complete_and_in_order(monkeypatch, memory):
    monkeypatch.setattr(samples, "MEMORY_LIMIT", memory)
    found = evaluation_batches(plain(*range(12)), 5)
    assert int(found.cardinality()) == 3
    assert_not_tuned(found)
    for _ in range(2):
        pixels, labels = zip(*found.as_numpy_iterator(), strict=True)
        assert [len(part) for part in pixels] == [5, 5, 2]
        assert pixels[0].dtype == np.uint8
        assert np.concatenate(labels).tolist() == list(range(12))
        assert np.concatenate(pixels)[:, 0, 0, 0].tolist() == list(range(12))


def test_bad_arguments():
    wrong = {"crop": -0.1}, {"cutout": 1.1}, {"mixup": float("nan")}, {"mixup": 0.6, "cutmix": 0.5}
    wrong += {"mix_from": 0.5, "mix_until": 0.4}, {"mix_from": True}, {"cutmix": "0.4"}
    for settings in wrong:
        with refused(next(iter(settings))):
            Augmentation(**settings)
    with refused("batch_size"):
        training_batches(noise(), 0)
