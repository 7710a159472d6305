"""The augmentation: its random numbers, and the same batches with tf.data and with JAX."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from scipy.stats import beta, norm, uniform

from keras_gmlp.data.batches import augmentation as parts
from keras_gmlp.data.batches.augmentation import Augmentation, make_augmenter, make_draw
from keras_gmlp.data.batches.host import training_batches
from keras_gmlp.data.batches.namespaces import jax_namespace, tensorflow_namespace
from keras_gmlp.data.batches.rand_augment import OPERATIONS, apply_operations
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.samples import from_pixels
from keras_gmlp.tasks.image_classification import ImageClassification

jax = pytest.importorskip("jax")

from keras_gmlp.data.batches.device import DeviceBatches  # noqa: E402

NOTHING = {"crop": 0, "flip": False}


def noise(count, size=8, channels=3):
    return np.random.default_rng(0).integers(1, 256, (count, size, size, channels), "uint8")


def change(augmentation, images, labels=None, step=0, epoch=0, mirror=True, epochs=None):
    """Returns images and labels, by default the numbers of the images, as a step changes them."""
    places = np.arange(len(images))
    labels = places if labels is None else labels
    numbers = make_draw(augmentation, 0, len(images), epochs)(epoch, step, places)
    augment = make_augmenter(augmentation, mirror, max(labels) + 1, tensorflow_namespace())
    images, labels = augment(*map(tf.constant, (images, labels, numbers)))
    return images.numpy(), labels.numpy()


@pytest.mark.parametrize("channels", [1, 3])
def test_each_operation_is_that_of_the_pipeline(channels):
    generator, count = np.random.default_rng(1), 6 * (len(OPERATIONS) + 1)
    images = generator.integers(0, 256, (count, 12, 10, channels)).astype("float32")
    images[::6], images[1::6, :, :5] = 77.0, 200.0  # flat images have a case of their own
    indices = np.repeat(np.arange(len(OPERATIONS) + 1, dtype="int32"), 6)
    strength = generator.uniform(0, 1, count).astype("float32")
    signed = generator.uniform(-0.9, 0.9, count).astype("float32")
    draws = indices, strength, signed
    expected = apply_operations(tf.constant(images), *draws, tensorflow_namespace()).numpy()
    outputs = jax.jit(lambda *arrays: apply_operations(*arrays, jax_namespace()))(images, *draws)
    # Products in another order round differently; an interpolated place may round to another pixel.
    np.testing.assert_allclose(outputs, expected, atol=0.02)


def test_numbers_have_their_distributions():
    augmentation = Augmentation(resized_crop=(0.1, 1), rand_augment=0.4, mixup=0.5)
    numbers = make_draw(augmentation, 3, 20_000)(5, 7, np.arange(20_000))
    shares = np.linspace(0.05, 0.95, 19)
    expected = {parts.MIXUP: beta(0.8, 0.8), 12: norm(), 13: norm()}
    for column in set(range(numbers.shape[1])) - {parts.CHOICE}:
        found = np.quantile(numbers[:, column], shares)
        np.testing.assert_allclose(found, expected.get(column, uniform()).ppf(shares), atol=0.04)
    varying = np.delete(numbers, parts.CHOICE, axis=1)
    assert np.abs(np.corrcoef(varying.T)[np.triu_indices(varying.shape[1], 1)]).max() < 0.035
    (whole,) = parts._integers(numbers[:, parts.CUTOUT][:, :1], [8], jax_namespace())
    np.testing.assert_allclose(np.bincount(whole, minlength=8) / 20_000, np.ones(8) / 8, atol=0.01)


def test_each_batch_draws_how_it_mixes():
    draw = make_draw(Augmentation(mixup=1, mix_from=0.5), 0, 4, epochs=2)
    choices = np.stack([draw(1, step, np.arange(4))[:, parts.CHOICE] for step in range(500)])
    assert (choices == choices[:, :1]).all()
    assert 0.45 < choices.mean() < 0.55
    assert (draw(0, 0, np.arange(4))[:, parts.CHOICE] == 1).all()  # nothing mixes yet
    first, other = draw(1, 2, np.arange(4)), draw(2, 1, np.arange(4))
    assert (first != other)[:, : parts.WINDOW.start].mean() > 0.9


def test_host_and_device_make_the_same_batches():
    images, labels = noise(24), np.arange(24) % 3
    split = from_pixels(images, labels)
    data = ImageData("noise", tuple("abc"), (8, 8, 3), split, split)
    augmentation = Augmentation(
        alternating_flip=True, rand_augment=0.5, cutout=0.3, erasing=0.5, mixup=0.5, cutmix=0.5
    )
    arrays, draw, augment = ImageClassification(augmentation=augmentation).device_data(data, 3, 2)
    device, host = (
        DeviceBatches(arrays, draw, 6, seed=3),
        training_batches(data, 6, augmentation, 3),
    )
    augment = jax.jit(augment)
    for epoch in range(2):
        device.start_epoch(epoch)
        (plan,) = (device[i] for i in range(len(device)))
        for step, (expected, targets) in enumerate(host.as_numpy_iterator()):
            samples = [array[plan["indices"][step]] for array in device.arrays]
            outputs, found = augment(*samples, plan["numbers"][step])
            np.testing.assert_allclose(found, targets, atol=1e-6)
            # An interpolated place may round to another pixel.
            assert np.mean(np.abs(outputs - expected) > 0.05) < 0.001


def find_mirrored(images, outputs):
    """Returns which images are mirrored; all others are as they were."""
    same, mirrored = ((outputs == images[:, :, ::s]).all((1, 2, 3)) for s in (1, -1))
    assert (same != mirrored).all()
    return mirrored


def test_alternating_flip_mirrors_every_sample_in_one_of_two_epochs():
    images, augmentation = noise(60, size=4), Augmentation(crop=0, alternating_flip=True)
    found = [
        find_mirrored(images, change(augmentation, images, epoch=epoch)[0]) for epoch in range(4)
    ]
    assert 15 < found[0].sum() < 45
    for epoch, mirrored in enumerate(found):
        np.testing.assert_array_equal(mirrored, found[0] ^ (epoch % 2 == 1))


def test_flip_mirrors_half_and_no_image_whose_label_would_change():
    images = noise(200, size=4)
    assert 70 < find_mirrored(images, change(Augmentation(crop=0), images)[0]).sum() < 130
    outputs, _ = change(Augmentation(crop=0, alternating_flip=True), images, mirror=False)
    assert not find_mirrored(images, outputs).any()


@pytest.mark.parametrize(("crop", "margin"), [(0.125, 1), (0.25, 2), (0.05, 0), (1, 8)])
def test_crop_is_a_window_of_the_image_on_black(crop, margin):
    images = noise(50)
    outputs, _ = change(Augmentation(crop=crop, flip=False), images)
    padded = np.pad(images, [(0, 0), (margin, margin), (margin, margin), (0, 0)])
    shifts, used = range(2 * margin + 1), set()
    for image, original in zip(outputs, padded, strict=True):
        matches = [
            (y, x)
            for y, x in itertools.product(shifts, shifts)
            if np.array_equal(original[y : y + 8, x : x + 8], image)
        ]
        assert matches
        used.add(matches[0])
    if margin < 8:
        assert {y for y, _ in used} == {x for _, x in used} == set(shifts)


@pytest.mark.parametrize(("cutout", "side"), [(0.4, 6), (1, 16), (0.1, 2)])
def test_cutout_blacks_out_one_square(cutout, side):
    images = np.full((100, 16, 16, 3), 200, "uint8")
    outputs, _ = change(Augmentation(cutout=cutout, **NOTHING), images)
    assert set(outputs.ravel()) == {0, 200}
    lengths = []
    for black in (outputs == 0).all(axis=-1):
        for along in (black.any(axis=0), black.any(axis=1)):
            at = np.flatnonzero(along)
            assert len(at) == at[-1] - at[0] + 1  # in one piece
            assert len(at) == side or at[0] == 0 or at[-1] == 15  # smaller only at the border
            lengths.append(len(at))
        assert black.sum() == lengths[-1] * lengths[-2]
    assert max(lengths) == side
    assert len({tuple(image.ravel()) for image in outputs}) > 20 or side == 16


@pytest.mark.parametrize("name", ["mixup", "cutmix"])
def test_labels_mix_as_the_pixels(name):
    values, classes = np.array([0, 80, 160, 240]), np.tile(np.arange(4), 16)
    images = np.broadcast_to(values[classes].reshape(-1, 1, 1, 1), (64, 16, 16, 3)).astype("uint8")
    weights = []
    for step in range(2):
        outputs, labels = change(Augmentation(**{name: 1}, **NOTHING), images, classes, step)
        assert labels.dtype == np.float32
        np.testing.assert_allclose(labels.sum(axis=-1), 1, atol=1e-6)
        assert labels.min() >= 0
        mean = labels @ values
        np.testing.assert_allclose(outputs.mean(axis=(1, 2, 3)), mean, atol=1e-3)
        if name == "mixup":
            np.testing.assert_allclose(outputs, mean[:, None, None, None] + 0 * outputs, atol=1e-3)
        else:
            assert set(outputs.ravel()) <= set(values)
        weights.append(labels.max(axis=-1).round(4))
    assert len(set(weights[0])) > 20  # each sample has its own
    assert (weights[0] != weights[1]).mean() > 0.8


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"mix_until": 0.6}, [True, True, True, False, False]),
        ({"mix_from": 0.2, "mix_until": 0.4}, [False, True, False, False, False]),
    ],
)
def test_mixing_begins_and_ends_with_an_epoch(limits, expected):
    augmentation = Augmentation(mixup=1, **limits, **NOTHING)
    labels = [change(augmentation, noise(8), epoch=epoch, epochs=5)[1] for epoch in range(5)]
    assert [bool((rows.max(axis=-1) < 1).any()) for rows in labels] == expected


def test_mixup_and_cutmix_get_their_shares_of_the_batches():
    mixup, cutmix = 0.3, 0.4
    augmentation = Augmentation(mixup=mixup, cutmix=cutmix, **NOTHING)
    images = np.broadcast_to(np.arange(4).reshape(-1, 1, 1, 1), (4, 4, 4, 3)).astype("uint8")
    batches = [change(augmentation, images, step=step) for step in range(150)]
    mixed = [(labels.max(axis=-1) < 1).any() for _, labels in batches]
    pasted = [(np.ptp(outputs, axis=(1, 2)) > 0).any() for outputs, _ in batches]
    assert np.isclose(np.mean(mixed), mixup + cutmix, atol=0.12)
    assert np.isclose(np.mean(pasted), cutmix, atol=0.12)
    outputs, labels = change(augmentation, images[1:2])  # with itself
    np.testing.assert_array_equal(outputs, images[1:2])
    np.testing.assert_array_equal(labels, [[1]])


def test_erasing_fills_a_rectangle_with_the_mean_colour():
    images = noise(400, size=16)
    outputs, _ = change(Augmentation(erasing=0.5, **NOTHING), images)
    changed = (outputs != images).any(axis=-1)
    assert abs(changed.any(axis=(1, 2)).mean() - 0.5) < 0.1
    for image, output, mask in zip(images, outputs, changed, strict=True):
        if mask.any():
            rows, columns = np.nonzero(mask)
            assert len(rows) <= 0.4 * mask.size
            window = output[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
            mean = image.mean(axis=(0, 1))
            np.testing.assert_allclose(window, np.broadcast_to(mean, window.shape), rtol=1e-5)
