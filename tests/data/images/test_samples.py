"""`Samples`: the same images from memory, files and `tf.data`, in whole and in part."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from refused import refused

from keras_gmlp import data
from keras_gmlp.data.batches.host import evaluation_batches, training_batches
from keras_gmlp.data.images import samples
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.samples import Samples, from_dataset, from_files, from_pixels
from keras_gmlp.utils.errors import one_line_errors

COUNT = 137  # parts of 64 are read together


@pytest.fixture(scope="module")
def arrays():
    images = np.random.default_rng(0).integers(0, 256, (COUNT, 5, 4, 3), "uint8")
    return images, np.arange(COUNT) % 3


@pytest.fixture(scope="module")
def files(tmp_path_factory, arrays):
    """The same images in files."""
    folder = tmp_path_factory.mktemp("images")
    for number, image in enumerate(arrays[0]):
        Image.fromarray(image).save(folder / f"{number:03}.png")
    return sorted(folder.iterdir())


@pytest.fixture(params=["arrays", "files", "dataset", "some arrays", "some of a dataset"])
def split(request, arrays, files):
    if request.param == "files":
        return from_files(list(zip(files, arrays[1], strict=True)), (5, 4, 3))
    if request.param == "dataset":
        return from_dataset(tf.data.Dataset.from_tensor_slices(arrays))
    if request.param == "arrays":
        return from_pixels(*arrays)
    images, labels = (np.stack([part[::-1], part], axis=1) for part in arrays)
    whole = images.reshape(-1, 5, 4, 3), labels.ravel()
    if request.param == "some arrays":
        whole = from_pixels(*whole)
    else:
        whole = from_dataset(tf.data.Dataset.from_tensor_slices(whole))
    return whole.take(np.arange(1, 2 * COUNT, 2))  # every other one of twice as many


def planted(split):
    return ImageData("planted", tuple("abc"), (5, 4, 3), split, split)


def read_batches(split):
    augmentation = data.Augmentation(crop=0.5, mixup=0.5)
    training = training_batches(planted(split), 8, augmentation, 1)
    return [*training, *evaluation_batches(planted(split), 8)]


def test_arrays_and_batches_hold_the_samples(split, arrays):
    images, labels = arrays
    for count in (COUNT, 20):
        part = split.take(slice(count))
        batches = list(part.batches(15))
        assert [len(batch) for batch, _ in batches] == [15] * (count // 15) + [count % 15]
        joined = tuple(map(np.concatenate, zip(*batches, strict=True)))
        for found in (joined, (joined[0], part.labels), part.arrays(), part.arrays()):
            assert [array.dtype for array in found] == [np.uint8, np.int64]
            for one, other in zip(found, (images, labels), strict=True):
                np.testing.assert_array_equal(one, other[:count])


def test_every_kind_streams_the_batches_of_arrays_in_memory(split, monkeypatch):
    expected = read_batches(from_pixels(*split.arrays()))
    monkeypatch.setattr(samples, "MEMORY_LIMIT", 0)
    split = split.take(slice(None))  # which keeps nothing yet
    if split.in_order:
        with refused("pack", "planted"):
            read_batches(split)
        return
    for one, other in zip(read_batches(split), expected, strict=True):
        for part, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(part, same)


def test_pixels_leave_the_memory_with_their_batches(arrays):
    split = from_pixels(*arrays)
    batches, held = training_batches(planted(split), 8), weakref.ref(split)
    next(iter(batches))
    del split, batches
    gc.collect()
    assert held() is None


def test_first_damaged_file_is_named(tmp_path, files, arrays):
    paths = [tmp_path / path.name for path in files]
    for path, original in zip(paths, files, strict=True):
        path.write_bytes(original.read_bytes()[: 60 if path.stem in ("021", "030") else None])
    split = from_files(list(zip(paths, arrays[1], strict=True)), (5, 4, 3))
    streamed = planted(split.take(slice(100)))
    streamed.test.fits_in_memory = lambda: False
    with refused(r"/0(21|30)\.png: .*damaged or truncated"), one_line_errors():
        list(training_batches(streamed, 5))
    for read in (split.arrays, lambda: list(evaluation_batches(streamed, 5))):
        with refused("damaged or truncated", paths[21]), one_line_errors():
            read()


def test_kept_images_are_read_once(monkeypatch, arrays):
    read = []

    def read_and_note(places):
        read.extend(places)
        return arrays[0][places]

    split = Samples(arrays[1], (5, 4, 3), read_and_note)
    for count in (COUNT, 20):
        for found, expected in zip(split.keep().take(slice(count)).arrays(), arrays, strict=True):
            np.testing.assert_array_equal(found, expected[:count])
        assert split.take(slice(count)).keep().in_memory
    assert read == list(range(COUNT))
    monkeypatch.setattr(samples, "MEMORY_LIMIT", 300)
    part = Samples(arrays[1], (5, 4, 3), read_and_note).take(slice(7))
    assert part.keep() is part
    assert part.take(slice(5)).keep().in_memory  # these do fit
    assert len(read) == COUNT + 5
