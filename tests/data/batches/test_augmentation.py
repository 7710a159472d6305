"""The augmentation: its random numbers, and the same batches with tf.data and with JAX."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from scipy.stats import beta, norm

from keras_gmlp.data.batches import augmentation as parts
from keras_gmlp.data.batches.augmentation import Augmentation, make_augmenter, make_draw
from keras_gmlp.data.batches.host import training_batches
from keras_gmlp.data.batches.namespaces import jax_namespace, tensorflow_namespace
from keras_gmlp.data.batches.rand_augment import OPERATIONS, apply_operations
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.samples import from_arrays
from keras_gmlp.tasks.image_classification import ImageClassification

jax = pytest.importorskip("jax")

from keras_gmlp.data.batches.device import DeviceBatches  # noqa: E402

NOTHING = {"crop": 0, "flip": False}


def noise(count, size=8, channels=3):
    return np.random.default_rng(0).integers(1, 256, (count, size, size, channels), "uint8")


@functools.cache  # compiles once for all epochs
def augmenter(augmentation, classes):
    return jax.jit(make_augmenter(augmentation, True, classes, jax_namespace()))


def run(augmentation, images, step=0, epoch=0, epochs=None):
    places = np.arange(len(images))
    numbers = make_draw(augmentation, 0, len(images), epochs)(epoch, step, places)
    outputs = augmenter(augmentation, len(images))(images, places, numbers)
    return tuple(map(np.asarray, outputs))


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


ROWS = 20_000


def assert_uniform(values, low=0.0, high=1.0, quantile=lambda share: share):
    """Also for another distribution, given by its quantiles."""
    values, shares = (np.asarray(values, "float64") - low) / (high - low), np.linspace(0, 1, 21)
    assert values.shape == (ROWS,)
    inner = shares[1:-1]
    np.testing.assert_allclose(np.quantile(values, inner), quantile(inner), atol=0.015)
    assert 0 <= values.min() < 0.01
    assert 0.99 < values.max() <= 1


def assert_integers(arrays, counts):
    for array, count in zip(arrays, counts, strict=True):
        shares = np.bincount(array, minlength=count) / ROWS
        np.testing.assert_allclose(shares, np.ones(count) / count, atol=0.01)


def test_numbers_have_their_distributions():
    augmentation = Augmentation(resized_crop=(0.1, 1))
    numbers = make_draw(augmentation, 3, ROWS)(5, 7, np.arange(ROWS))
    whole = parts._integers(numbers[:, parts.CUTOUT], [8, 6], jax_namespace())
    assert_integers(whole, [8, 6])
    assert_uniform(numbers[:, parts.MIXUP], quantile=lambda share: beta.ppf(share, 0.8, 0.8))
    index, strength, signed = next(parts.draw_operations(numbers, 0.4, jax_namespace()))
    assert_integers([index], [len(OPERATIONS) + 1])
    shares = np.linspace(0.05, 0.95, 19)
    expected = norm.ppf(shares, 0.4, 0.15).clip(0, 1)
    np.testing.assert_allclose(np.quantile(strength, shares), expected, atol=0.015)
    assert_uniform(signed, -0.4, 0.4)
    others = [i for i in range(numbers.shape[1]) if i not in (12, 13, parts.MIXUP, parts.CHOICE)]
    for column in others:
        assert_uniform(numbers[:, column])
    varying = np.delete(numbers, parts.CHOICE, axis=1)
    assert np.abs(np.corrcoef(varying.T)[np.triu_indices(varying.shape[1], 1)]).max() < 0.035


def test_each_batch_draws_how_it_mixes():
    draw = make_draw(Augmentation(mixup=1, mix_from=0.5), 0, 4, epochs=2)
    choices = np.stack([draw(1, step, np.arange(4))[:, parts.CHOICE] for step in range(ROWS)])
    assert (choices == choices[:, :1]).all()
    assert_uniform(choices[:, 0])
    assert (draw(0, 0, np.arange(4))[:, parts.CHOICE] == 1).all()  # nothing mixes yet


def test_a_batch_depends_on_its_seed_epoch_and_step_alone():
    augmentation = Augmentation(rand_augment=0.5, cutout=0.3, erasing=0.5)
    draw, places = make_draw(augmentation, 1, 8), np.arange(8)
    draw(4, 4, places)
    given = draw(1, 2, places)
    np.testing.assert_array_equal(make_draw(augmentation, 1, 8)(1, 2, places), given)
    for other in (
        draw(2, 1, places),
        draw(1, 3, places),
        make_draw(augmentation, 2, 8)(1, 2, places),
    ):
        assert (other != given).mean() > 0.9


def test_host_and_device_make_the_same_batches():
    images, labels = noise(24), np.arange(24) % 3
    split = from_arrays(images, labels)
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


def test_alternating_flip_mirrors_every_sample_in_one_of_two_epochs():
    images = noise(40, size=4)
    augmentation, found = Augmentation(crop=0, alternating_flip=True), []
    for epoch in range(4):
        outputs, _ = run(augmentation, images, epoch=epoch)
        same, mirrored = ((outputs == images[:, :, ::s]).all((1, 2, 3)) for s in (1, -1))
        assert (same != mirrored).all()
        found.append(mirrored)
    assert 8 < found[0].sum() < 32
    for epoch, mirrored in enumerate(found):
        np.testing.assert_array_equal(mirrored, found[0] ^ (epoch % 2 == 1))


def test_erasing_fills_a_rectangle_with_the_mean_colour():
    images = noise(400, size=16)
    outputs, _ = run(Augmentation(erasing=0.5, **NOTHING), images)
    changed = (outputs != images).any(axis=-1)
    assert abs(changed.any(axis=(1, 2)).mean() - 0.5) < 0.1
    for image, output, mask in zip(images, outputs, changed, strict=True):
        if mask.any():
            rows, columns = np.nonzero(mask)
            assert len(rows) <= 0.4 * mask.size
            window = output[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
            mean = image.mean(axis=(0, 1))
            np.testing.assert_allclose(window, np.broadcast_to(mean, window.shape), rtol=1e-5)


def test_mixing_gives_probabilities_and_stops_on_demand():
    images = noise(8)
    outputs, labels = run(Augmentation(mixup=1, mix_from=0.5, **NOTHING), images, epochs=2)
    np.testing.assert_array_equal(outputs, images)
    np.testing.assert_array_equal(labels, np.eye(8))
    everything = Augmentation(rand_augment=0.5, cutout=0.3, erasing=0.5, mixup=0.4, cutmix=0.4)
    for epoch in range(6):
        outputs, labels = run(everything, images, epoch=epoch)
        assert outputs.dtype == np.float32
        assert 0 <= outputs.min() < outputs.max() <= 255
        np.testing.assert_allclose(labels.sum(axis=1), 1, rtol=1e-6)
