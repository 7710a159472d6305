"""Packed sets: written complete or not at all, read as the folder they were made from."""

import json
import mmap

import numpy as np
import pytest
from load_app import load_app
from pictures import write_noise
from refused import refused

from keras_gmlp import data
from keras_gmlp.data.images import samples
from keras_gmlp.data.images.packed import load_packed, pack
from keras_gmlp.data.images.samples import resize_images


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
    for one, other in ((found.train, expected.train), (found.test, expected.test)):
        for array, same in zip(one.arrays(), other.arrays(), strict=True):
            np.testing.assert_array_equal(array, same)
    assert load_app("pack").main(given) == 1
    assert f"{folder}: exists" in capsys.readouterr().err


def test_fit_of_the_folder_is_kept(tmp_path, photos, capsys):
    folder = tmp_path / "padded"
    given = [str(photos), "--out", str(folder), "--size", "12x16", "--fit", "pad"]
    assert load_app("pack").main(given) == 0
    found, expected = data.load(folder), data.load(photos, (12, 16), fit="pad")
    assert (found.fit, found.image_shape) == ("pad", (12, 16, 3))
    np.testing.assert_array_equal(found.test.arrays()[0], expected.test.arrays()[0])
    assert data.load(folder, (6, 8), fit="pad").image_shape == (6, 8, 3)
    with pytest.raises(ValueError, match="the fit pad"):
        data.load(folder, fit="crop")
    with pytest.raises(ValueError, match="padded to 12x16"):
        data.load(folder, (16, 16))


@pytest.mark.parametrize(("channels", "scale"), [(3, None), (1, None), (3, (0.2, 1.0))])
def test_streams_the_batches_of_its_arrays(monkeypatch, packed, channels, scale):
    augmentation = data.Augmentation(resized_crop=scale)
    found = data.load(packed, channels=channels)
    expected = list(data.training_batches(found, 5, augmentation).as_numpy_iterator())
    found = data.load(packed, channels=channels)
    monkeypatch.setattr(samples, "MEMORY_LIMIT", 0)
    streamed = list(data.training_batches(found, 5, augmentation).as_numpy_iterator())
    for one, other in zip(streamed, expected, strict=True):
        for part, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(part, same)


def test_smaller_images_and_fewer(packed):
    images, labels = data.load(packed).test.arrays()
    part = data.load(packed, (10, 8)).test.take(slice(3))
    expected = resize_images(images[:3], (10, 8, 3)), labels[:3]
    pairs = list(part.batches(2))
    assert [len(batch) for batch, _ in pairs] == [2, 1]
    for found in (part.arrays(), map(np.concatenate, zip(*pairs, strict=True))):
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
        ("train_images.npy", 5_000, "damaged"),
        ("test_labels.npy", 0, "damaged"),
    ):
        path = packed / name
        before = path.read_bytes()
        path.unlink()  # which may be mapped
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
    with refused("test_labels"):
        load_packed(packed)
    description = json.loads((packed / "packed.json").read_text())
    (packed / "packed.json").write_text(json.dumps({**description, "version": 2}))
    with refused("later version"):
        load_packed(packed)


def test_images_are_requested_in_the_order_of_reading(packed, monkeypatch):
    requested = []

    class Recorder(mmap.mmap):
        def madvise(self, advice, start, length):
            assert (advice, start % mmap.PAGESIZE) == (mmap.MADV_WILLNEED, 0)
            requested.append((start + length) // 768 - 1)  # files start with less than an image

    monkeypatch.setattr(mmap, "mmap", Recorder)
    monkeypatch.setattr(samples, "MEMORY_LIMIT", 0)
    found = data.hold_out(load_packed(packed), 0.25)
    read = np.concatenate([images for images, _ in data.training_batches(found, 12)])
    order = list(requested)
    stored = found.train.arrays()[0]
    expected = [int(np.abs(stored - image).sum((1, 2, 3)).argmin()) for image in read]
    assert order == [found.train._places[i] for i in expected]
    assert sorted(order) == sorted(found.train._places) != order
