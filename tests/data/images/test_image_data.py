"""What an `ImageData` takes."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from refused import refused

from keras_gmlp.data.images.image_data import ImageData, take_fraction
from keras_gmlp.data.images.samples import from_pixels


def image_data(split):
    return ImageData("planted", ("0", "1"), (4, 4, 3), split, split)


@pytest.fixture
def arrays():
    images = np.random.default_rng(0).integers(0, 256, (10, 4, 4, 3), "uint8")
    return images, np.arange(10) % 2


def test_impossible_class_names_and_indices_are_refused(arrays):
    images, labels = arrays
    data = image_data(from_pixels(*arrays))
    with refused("class name", "planted"):
        dataclasses.replace(data, labels=("0", "a\nb"))
    for label in (-1, 2, 1.5, np.nan):
        with refused("class indices"), np.errstate(invalid="ignore"):
            image_data(from_pixels(images, np.where(np.arange(10) == 3, label, labels)))
    for name in ("test", "validation"):
        with refused(f"class indices from 0 to 9 in {name}"):
            dataclasses.replace(data, **{name: from_pixels(images, np.arange(10))})


def test_other_data_are_refused(arrays):
    for change, match in (
        (lambda whole: whole.map(lambda x, y: (x / 255, y)), "uint8"),
        (lambda whole: whole.batch(2), "single samples"),
        (lambda whole: whole.repeat(), "finite"),
    ):
        with refused(match):
            image_data(change(tf.data.Dataset.from_tensor_slices(arrays)))


@pytest.mark.parametrize(("fraction", "samples"), [(1, 10), (0.5, 5), (0.26, 3), (0.001, 1)])
def test_a_fraction_is_the_first_part(arrays, fraction, samples):
    data = image_data(from_pixels(*arrays))
    part = take_fraction(data, fraction)
    np.testing.assert_array_equal(part.train.arrays()[0], arrays[0][:samples])
    assert part.test is data.test
