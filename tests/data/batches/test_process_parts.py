"""Each process makes a part of every batch; together the parts are the batch."""

import numpy as np
import pytest
from refused import refused

from keras_gmlp.data import Augmentation, ImageData, Samples
from keras_gmlp.data.batches.host import training_batches
from keras_gmlp.data.batches.order import Position
from keras_gmlp.data.images import samples

AUGMENTATIONS = {
    "crop": Augmentation(rand_augment=0.4, cutout=0.4, erasing=0.5),
    "resized": Augmentation(resized_crop=(0.1, 1), mixup=0.5, cutmix=0.5),
}


@pytest.fixture
def images():
    """Twenty-six images, and the places that were read."""
    pixels, read = np.random.default_rng(0).integers(0, 256, (26, 8, 8, 3), "uint8"), []

    def read_and_note(places):
        read.extend(places)
        return pixels[places]

    samples = Samples(np.arange(26) % 3, (8, 8, 3), read_and_note)
    return ImageData("noise", tuple("abc"), (8, 8, 3), samples, samples), read


@pytest.mark.parametrize(("name", "memory"), [("crop", 2**30), ("resized", 0)])
def test_parts_are_the_batch(images, monkeypatch, name, memory):
    monkeypatch.setattr(samples, "MEMORY_LIMIT", memory)
    data, read = images

    def make(part):
        read.clear()
        position = Position(seed=3, epoch=1, epochs=2, part=part)
        made = training_batches(data, 8, AUGMENTATIONS[name], position)
        return list(made.as_numpy_iterator()), sorted(read)

    whole, all_read = make((0, 1))
    (first, ours), (second, theirs) = (make((i, 2)) for i in (0, 1))
    assert len(whole) == len(first) == len(second) == 3
    for batch, *parts in zip(whole, first, second, strict=True):
        for array, *rows in zip(batch, *parts, strict=True):
            assert [len(part) for part in rows] == [4, 4]
            np.testing.assert_allclose(np.concatenate(rows), array, atol=1e-3)
    if memory == 0:  # each sample is read once
        assert len(ours) == len(theirs) == 12
        assert sorted(ours + theirs) == all_read
        assert len(set(all_read)) == 24


def test_neighbours_stay_in_one_part(images):
    mixed, halves = Augmentation(mixup=1), Position(part=(0, 2))
    with refused("that 4 divides"):
        training_batches(images[0], 6, mixed, halves)
    with refused("that 2 divides"):
        training_batches(images[0], 5, position=halves)
    training_batches(images[0], 6, position=halves)
