"""The augmentation in JAX, against the tf.data form and by its distributions."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from scipy.stats import beta, norm

from keras_gmlp.data.batches.augmentation import Augmentation, augment, mix
from keras_gmlp.data.batches.host_augmentation import HostDraws
from keras_gmlp.data.batches.namespaces import jax_namespace, tensorflow_namespace
from keras_gmlp.data.batches.rand_augment import OPERATIONS, apply_operations
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.samples import from_arrays
from keras_gmlp.tasks.image_classification import ImageClassification

jax = pytest.importorskip("jax")

from keras_gmlp.data.batches.device import DeviceBatches  # noqa: E402
from keras_gmlp.data.batches.device_augmentation import (  # noqa: E402
    DeviceDraws,
    beta_quantiles,
    make_device_augmenter,
)

NOTHING = {"crop": 0, "flip": False}


def noise(count, size=8, channels=3):
    return np.random.default_rng(0).integers(1, 256, (count, size, size, channels), "uint8")


@functools.cache  # compiles once for all epochs
def augmenter(augmentation, classes, mirror):
    return jax.jit(make_device_augmenter(augmentation, classes, mirror))


def run(augmentation, images, position=0, epoch=0, mirror=True, mixing=True):
    classes = len(images)
    augment = augmenter(augmentation, classes, mirror)
    key = jax.random.fold_in(jax.random.key(0), epoch)
    outputs = augment(key, images, np.arange(classes), position, mixing)
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


@pytest.fixture(params=["host", "device"])
def draws(request):
    if request.param == "host":
        return HostDraws(tf.constant([3, 5], tf.int64), ROWS)
    return DeviceDraws(jax.random.key(0), 0, ROWS, quantiles=beta_quantiles(0.8))


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


def test_draws_have_their_distributions(draws):
    assert_integers(draws.starts([2, 0]), [5, 1])
    assert abs(np.mean(draws.mirrored()) - 0.5) < 0.015
    assert_integers(draws.cutout([8, 6]), [8, 6])
    chance, area, aspect, centres = draws.erasing([8, 6])
    assert_uniform(chance)
    assert_uniform(area, 0.02, 1 / 3)
    assert_uniform(np.log(aspect), np.log(0.3), -np.log(0.3))
    assert_integers(centres, [8, 6])
    assert_uniform(draws.weights(), quantile=lambda share: beta.ppf(share, 0.8, 0.8))
    sides, centres = draws.cutmix([8, 6])
    assert_uniform(np.asarray(sides) ** 2)
    assert_integers(centres, [8, 6])
    pairs = [np.asarray(draw) for draw in next(draws.operations(0.4))]
    index, strength, signed = pairs
    assert_integers([index], [len(OPERATIONS) + 1])
    assert_uniform(strength, quantile=lambda share: norm.ppf(share, 0.4, 0.15).clip(0, 1))
    assert_uniform(signed, -0.4, 0.4)
    assert np.abs(np.corrcoef(pairs)[np.triu_indices(3, 1)]).max() < 0.03


def test_each_batch_draws_how_it_mixes():
    def choose(position):
        return DeviceDraws(jax.random.key(0), 4 * position, 4).choice()

    assert_uniform(jax.vmap(choose)(np.arange(ROWS)))


def test_a_sample_depends_on_its_epoch_and_position_alone():
    augmentation = Augmentation(rand_augment=0.5, cutout=0.3, erasing=0.5)
    images = noise(8)
    whole, _ = run(augmentation, images)
    second, _ = run(augmentation, images[4:], position=4)
    np.testing.assert_array_equal(second, whole[4:])
    assert not np.array_equal(run(augmentation, images, epoch=1)[0], whole)
    assert not np.array_equal(run(augmentation, images, position=8)[0], whole)


def test_alternating_flip_mirrors_every_sample_in_one_of_two_epochs():
    images, labels = noise(40, size=4), np.arange(40)
    split = from_arrays(images, labels)
    data = ImageData("noise", tuple(map(str, labels)), (4, 4, 3), split, split)
    task = ImageClassification(augmentation=Augmentation(crop=0, alternating_flip=True))
    arrays, augment, _ = task.device_data(data)
    assert [len(array) for array in task.device_sample(data, arrays)] == [1, 1]
    plan, run = DeviceBatches(arrays, 10, chunk=1), []
    for epoch in range(4):
        plan.start_epoch(epoch)
        found = np.full(40, -1)
        for item in (plan[i] for i in range(len(plan))):
            samples = [array[item["indices"][0]] for array in plan.arrays]
            key, (position,) = jax.random.wrap_key_data(item["key"]), item["positions"]
            outputs, chosen = augment(key, *samples, position, item["mixing"], item["odd"])
            for image, label in zip(np.asarray(outputs), np.asarray(chosen), strict=True):
                kept, mirrored = (np.array_equal(image, images[label][:, ::s]) for s in (1, -1))
                assert kept != mirrored
                found[label] = mirrored
        run.append(found)
    assert 8 < run[0].sum() < 32
    for epoch, found in enumerate(run):
        np.testing.assert_array_equal(found, run[0] if epoch % 2 == 0 else 1 - run[0])


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


class Drawn:
    """The same numbers for both pipelines."""

    def __init__(self, count):
        self.random, self.count = np.random.default_rng(3), count

    def uniform(self):
        return self.random.uniform(size=self.count).astype("float32")

    def starts(self, margins):
        return self.cutout([2 * margin + 1 for margin in margins])

    def mirrored(self):
        return self.uniform() < 0.5

    def cutout(self, size):
        return [self.random.integers(0, n, self.count).astype("int32") for n in size]

    def erasing(self, size):
        return self.uniform(), self.uniform() / 3, 0.5 + self.uniform(), self.cutout(size)

    def weights(self):
        return np.linspace(0.1, 0.9, self.count, dtype="float32")

    def cutmix(self, size):
        return np.linspace(0.9, 0.1, self.count, dtype="float32"), self.cutout(size)


@pytest.mark.parametrize("choice", [0, 1, 2])
def test_batches_change_as_in_the_pipeline(choice):
    settings, found = Augmentation(cutout=0.3, erasing=0.5), []
    for xp, array in ((tensorflow_namespace(), tf.constant), (jax_namespace(), jax.numpy.asarray)):
        draws, labels = Drawn(9), array(np.eye(9, dtype="float32"))
        images = augment(array(noise(9, 12)), draws, settings, True, xp)
        found.append([*map(np.asarray, mix(images, labels, array(choice), draws, xp))])
    (pixels, labels), (expected, expected_labels) = found
    np.testing.assert_allclose(pixels, expected, atol=1e-3)
    np.testing.assert_allclose(labels, expected_labels, atol=1e-6)
    assert (labels.max(axis=1) == 1).all() == (choice == 0)


def test_mixing_gives_probabilities_and_stops_on_demand():
    images = noise(8)
    outputs, labels = run(Augmentation(mixup=1, **NOTHING), images, mixing=False)
    np.testing.assert_array_equal(outputs, images)
    np.testing.assert_array_equal(labels, np.eye(8))
    everything = Augmentation(rand_augment=0.5, cutout=0.3, erasing=0.5, mixup=0.4, cutmix=0.4)
    for epoch in range(6):
        outputs, labels = run(everything, images, epoch=epoch)
        assert outputs.dtype == np.float32
        assert 0 <= outputs.min() < outputs.max() <= 255
        np.testing.assert_allclose(labels.sum(axis=1), 1, rtol=1e-6)
