"""Packed sets: written complete or not at all, read as the folder they were made from."""

import dataclasses
import json
import mmap

import numpy as np
import pytest
from load_app import load_app
from pictures import write_noise
from refused import refused

from keras_gmlp import data
from keras_gmlp.data.batches import host as batches
from keras_gmlp.data.images import splits
from keras_gmlp.data.images.fits import resize_images
from keras_gmlp.data.images.mapped_splits import ChannelSplit, DatasetSplit
from keras_gmlp.data.images.packed import load_packed, pack
from keras_gmlp.data.images.splits import ArraySplit
from keras_gmlp.utils.files import directory_lock


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return write_noise(tmp_path_factory.mktemp("photos"), "png", 20, 30)


@pytest.fixture
def packed(tmp_path, photos):
    pack(data.load(photos, (16, 16)), tmp_path / "packed")
    return tmp_path / "packed"


def test_program_writes_what_load_takes(tmp_path, photos, capsys):
    folder = tmp_path / "new" / "packed"
    given = [str(photos), "--out", str(folder), "--size", "16"]
    assert load_app("pack").main([*given, "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["train"], done["test"], done["bytes"]) == (16, 4, 20 * 768)
    found, expected = data.load(folder), data.load(photos, (16, 16))
    assert (found.labels, found.image_shape) == (expected.labels, expected.image_shape)
    assert found.mirror
    for part in ("train", "test"):
        for one, other in zip(data.arrays(found, part), data.arrays(expected, part), strict=True):
            np.testing.assert_array_equal(one, other)
    assert load_app("pack").main(given) == 1
    assert f"{folder}: exists" in capsys.readouterr().err


def test_fit_of_the_folder_is_kept(tmp_path, photos, capsys):
    folder = tmp_path / "padded"
    given = [str(photos), "--out", str(folder), "--size", "12x16", "--fit", "pad"]
    assert load_app("pack").main(given) == 0
    found, expected = data.load(folder), data.load(photos, (12, 16), fit="pad")
    assert (found.fit, found.image_shape) == ("pad", (12, 16, 3))
    np.testing.assert_array_equal(data.arrays(found)[0], data.arrays(expected)[0])
    assert data.load(folder, (6, 8), fit="pad").image_shape == (6, 8, 3)
    with pytest.raises(ValueError, match="the fit pad"):
        data.load(folder, fit="crop")
    with pytest.raises(ValueError, match="padded to 12x16"):
        data.load(folder, (16, 16))


@pytest.mark.parametrize(("channels", "scale"), [(3, None), (1, (0.2, 1.0))])
def test_streams_the_batches_of_its_arrays(monkeypatch, packed, channels, scale):
    augmentation = data.Augmentation(resized_crop=scale)
    found = data.load(packed, channels=channels)
    expected = list(data.training_batches(found, 5, augmentation).as_numpy_iterator())
    monkeypatch.setattr(splits, "MEMORY_LIMIT", 0)
    streamed = list(data.training_batches(found, 5, augmentation).as_numpy_iterator())
    for one, other in zip(streamed, expected, strict=True):
        np.testing.assert_allclose(one[0], other[0], atol=1 if scale else 0)
        np.testing.assert_array_equal(one[1], other[1])


def test_smaller_images_and_fewer(packed):
    images, labels = data.load(packed).test.arrays()
    part = data.load(packed, (10, 8)).test.take(3)
    expected = resize_images(images[:3], (10, 8)), labels[:3]
    pairs = list(part.batches(2))
    assert [len(batch) for batch, _ in pairs] == [2, 1]
    streamed = zip(*part.dataset().as_numpy_iterator(), strict=True)
    joined = map(np.concatenate, zip(*pairs, strict=True))
    for found in (part.arrays(), streamed, joined):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_nothing_is_left_of_a_set_that_cannot_be_written(tmp_path, photos, monkeypatch):
    found = data.load(photos, (16, 16))
    monkeypatch.setattr(found.test, "_read", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pack(found, tmp_path / "packed")
    monkeypatch.setattr("shutil.disk_usage", lambda _: (10**9, 10**9, 15_359))
    with pytest.raises(OSError, match="no space left"):
        pack(found, tmp_path / "packed")
    assert list(tmp_path.iterdir()) == []


def test_damaged_set_names_its_file(packed):
    for name, content, match in (
        ("packed.json", b"{", "damaged"),
        ("packed.json", b"[]", "damaged"),
        ("train_images.npy", None, "no such file"),
        ("train_images.npy", 5_000, "damaged or truncated"),
        ("test_labels.npy", 0, "damaged or truncated"),
    ):
        path = packed / name
        before = path.read_bytes()
        path.unlink()
        if content is not None:
            path.write_bytes(before[:content] if isinstance(content, int) else content)
        with refused(match, path):
            data.load(packed)
        path.write_bytes(before)


def test_other_versions_and_files_that_do_not_match(packed):
    right = np.load(packed / "train_labels.npy").astype("float64")
    for label in (-5, np.nan, 1.5, 1000):
        np.save(packed / "train_labels.npy", [label, *right[1:]])
        with refused("train"):
            load_packed(packed)
    np.save(packed / "train_labels.npy", right)
    np.save(packed / "test_labels.npy", np.zeros(3, "int64"))
    with refused("the test files do not match"):
        load_packed(packed)
    description = json.loads((packed / "packed.json").read_text())
    (packed / "packed.json").write_text(json.dumps({**description, "version": 2}))
    with refused("version 2"):
        load_packed(packed)


def test_no_other_process_packs(tmp_path, photos):
    found = data.load(photos, (4, 4))
    with directory_lock(tmp_path / ".a.lock"), refused("another process uses"):
        pack(found, tmp_path / "a")


def test_file_larger_than_memory_is_read(tmp_path):
    tf = pytest.importorskip("tensorflow")
    images, shape, start = 100_000, (512, 512, 3), 128
    path = tmp_path / "images"
    with open(path, "wb") as file:
        file.truncate(start + images * np.prod(shape))  # 79 GB of zeros, which take no space
        file.seek(-1, 2)
        file.write(b"\x07")
    mapped = np.memmap(path, "uint8", "r", start, (images, *shape))
    read = ArraySplit(mapped, np.arange(images)).reader()
    path.unlink()
    indices = tf.data.Dataset.from_tensors(tf.constant(images - 1, tf.int64))
    ((image, label),) = batches.without_tuning(indices.map(read))
    assert label == images - 1
    assert image.numpy().sum() == image[-1, -1, -1] == 7


def record_requests(monkeypatch, size):
    """Returns the list to which the numbers of requested images of `size` bytes are appended."""
    found = []

    class Recorder(mmap.mmap):
        def madvise(self, advice, start, length):
            assert (advice, start % mmap.PAGESIZE) == (mmap.MADV_WILLNEED, 0)
            found.append((start + length) // size - 1)  # files start with fewer bytes than `size`

    monkeypatch.setattr(mmap, "mmap", Recorder)
    return found


@pytest.mark.parametrize("kind", ["held out", "tf.data", "grey"])
def test_images_are_requested_in_the_order_of_reading(kind, packed, monkeypatch):
    monkeypatch.setattr(splits, "MEMORY_LIMIT", 0)
    monkeypatch.setattr(batches, "REQUESTED", 3)
    requested = record_requests(monkeypatch, 768)
    found = load_packed(packed)
    if kind == "held out":
        found = data.hold_out(found, 0.25)
    elif kind == "tf.data":
        found = dataclasses.replace(found, train=DatasetSplit(found.train.dataset()))
    else:
        train, test = (ChannelSplit(split, 1) for split in (found.train, found.test))
        found = dataclasses.replace(found, image_shape=(16, 16, 1), train=train, test=test)
    read = np.concatenate([images for images, _ in data.training_batches(found, 4)])
    own = found.train
    stored = DatasetSplit(own.dataset()).arrays()[0] if kind == "tf.data" else own.arrays()[0]
    order = [int(np.abs(stored - image).sum((1, 2, 3)).argmin()) for image in read]
    places = own._places if kind == "held out" else np.arange(len(own))
    assert requested == [places[i] for i in order]
    assert sorted(requested) == sorted(places) != requested
