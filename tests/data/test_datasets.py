import io
import os

import numpy as np
import pytest
import tensorflow_datasets as tfds
from pictures import write_noise, write_pictures
from PIL import Image
from refused import refused
from sklearn.datasets import load_digits
from tfds_sets import write_images, write_set

from keras_gmlp import data
from keras_gmlp.data.own_arrays import is_raw
from keras_gmlp.utils.errors import DataWarning

RED, GREEN = (255, 0, 0), (0, 255, 0)


def fails(match, *arguments, **options):
    with refused(match) as error:
        data.load(*arguments, **options)
    return str(error.value)


def test_grey_becomes_colour_and_colour_grey(tmp_path):
    plain = data.load("digits")
    grey, _ = plain.test.arrays()
    coloured = data.load("digits", channels=3)
    assert coloured.image_shape == (8, 8, 3)
    np.testing.assert_array_equal(coloured.test.arrays()[0], grey.repeat(3, axis=-1))
    folder = data.load(write_noise(tmp_path, "png", 8, 8), (8, 8), channels=1)
    expected = [np.asarray(Image.open(path).convert("L")) for path in folder.test.paths]
    np.testing.assert_array_equal(folder.test.arrays()[0][..., 0], expected)
    with pytest.raises(ValueError, match="channels"):
        data.load("digits", channels=4)


def test_digits():
    digits = data.load("digits")
    assert digits.labels == tuple("0123456789")
    assert (digits.image_shape, digits.mirror) == ((8, 8, 1), False)
    (train, train_labels), (test, test_labels) = digits.train.arrays(), digits.test.arrays()
    assert (len(digits.train), len(digits.test)) == (len(train), len(test)) == (1437, 360)
    assert (train.dtype, train_labels.dtype) == (np.uint8, np.int64)
    assert (train.min(), train.max()) == (0, 255)
    assert np.bincount(train_labels).min() > 100
    assert np.bincount(test_labels).min() > 20
    # All digits are there, so that each is in only one split.
    everything = np.concatenate([train, test]).reshape(1797, 64)
    original = np.round(load_digits().data * 255 / 16)
    np.testing.assert_array_equal(sorted(map(tuple, everything)), sorted(map(tuple, original)))
    np.testing.assert_array_equal(train, data.load("digits").train.arrays()[0])


def class_folders(root, count=10):
    for name, colour in (("a", RED), ("b", GREEN)):
        write_pictures(root / name, [f"{i:03}.png" for i in range(count)], colour)


def test_folder_of_classes_holds_out_every_fifth(tmp_path):
    class_folders(tmp_path, 11)
    for i in range(11):
        Image.new("RGB", (6, 6), (255, i, 0)).save(tmp_path / "a" / f"{i:03}.png")
    write_pictures(tmp_path, [".git/x.png", "a/.ipynb_checkpoints/y.png", "b/._z.png"])
    photos = data.load(tmp_path, (4, 4))
    assert (photos.name, photos.labels, photos.mirror) == (str(tmp_path), ("a", "b"), True)
    assert photos.image_shape == (4, 4, 3)
    train, train_labels = photos.train.arrays()
    test, test_labels = photos.test.arrays()
    assert test_labels.tolist() == [0, 0, 1, 1]
    assert np.bincount(train_labels).tolist() == [9, 9]
    assert test[:2, 0, 0, 1].tolist() == [4, 9]
    assert sorted(train[train_labels == 0, 0, 0, 1]) == [0, 1, 2, 3, 5, 6, 7, 8, 10]
    assert (train[train_labels == 1] == GREEN).all()


def test_classes_whose_names_look_the_same_are_one(tmp_path):
    for name in ("caf\u00e9", "cafe\u0301", "cat", "ca\u200bt"):
        write_pictures(tmp_path / "train" / name, ["1.png"])
    write_pictures(tmp_path / "test" / "cafe\u0301", ["1.png"])
    photos = data.load(tmp_path, (4, 4))
    assert photos.labels == ("caf\u00e9", "cat")
    assert (len(photos.train), photos.test.arrays()[1].tolist()) == (4, [0])


def test_a_link_to_nothing_in_place_of_pictures(tmp_path):
    for part in ("train", "val"):
        class_folders(tmp_path / part, 5)
    (tmp_path / "note.txt").symlink_to("/none")
    data.load(tmp_path, (4, 4))
    for place, target in (("train/c", "c"), ("test", "/none")):
        (tmp_path / place).symlink_to(target)
        fails(f"{place}: a link", tmp_path)
        (tmp_path / place).unlink()


def test_files_that_are_left_out_are_named_and_counted(tmp_path):
    class_folders(tmp_path, 5)
    for name in ("a/1.PSD", "b/.hidden.png", "b/2.heic", "b/3.txt"):
        (tmp_path / name).touch()
    write_pictures(tmp_path, ["loose.png"])
    with (
        pytest.warns(DataWarning, match=r"3 \(a/1\.PSD, b/2\.heic, b/3\.txt\).*HEIC"),
        pytest.warns(DataWarning, match=r"1 \(loose\.png\)"),
    ):
        assert len(data.load(tmp_path, (4, 4)).train) == 8


SPLITS = [f"train/{label}/{n}.png" for label in "ab" for n in range(2)]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["a/1.png", ".git/1.png"], "two or more classes; found a only"),
        (["a/1.png", "b/note.txt"], "no image in this folder"),
        (["a/1.png", "b/1.png"], "no class has 5 images"),
        ([*SPLITS, "test/cats/1.png"], "no training folder for cats"),
        ([*SPLITS, "test/1.png"], "test: expected a folder of images for each class"),
        ([*SPLITS, "foo/a/1.png"], "found the splits train;"),
        (["cats/a/1.png", "dogs/a/1.png", "test/a/1.png"], "found the splits test;"),
        ([*SPLITS, "val/a/1.png", "Valid/a/1.png"], "Valid and val both mean validation"),
        ([*SPLITS, "test/a/1.png", "eval/a/1.png", "val/a/1.png"], "test, eval, validation"),
    ],
)
def test_bad_folders(tmp_path, names, reason):
    write_pictures(tmp_path, [name for name in names if name.endswith(".png")])
    for note in (tmp_path / name for name in names if name.endswith(".txt")):
        note.parent.mkdir()
        note.touch()
    assert fails(reason, tmp_path).startswith(str(tmp_path))


@pytest.fixture(scope="module")
def tfds_folder(tmp_path_factory):
    """Where TFDS keeps sets: of grey images, of varied sizes, without labels, of text."""
    folder, names = str(tmp_path_factory.mktemp("tfds")), ("low", "high")
    labels = [i % 2 for i in range(10)]
    grey = np.stack([np.full((6, 6, 1), 20 * i, "uint8") for i in range(10)])
    colour, some = grey.repeat(3, axis=-1), slice(4)
    tested = {"train": (grey, labels), "test": (grey[some], labels[some])}
    write_images(folder, "grey", names=names, **tested)
    write_images(folder, "varied", (None, None, 3), names, train=(colour, labels))
    hidden = {"test": (colour[some], [-1] * 4), "validation": (colour[:3], labels[:3])}
    write_images(folder, "hidden", names=names, train=(colour, labels), **hidden)
    write_images(folder, "mnist/planted", names=names, **tested)
    write_set(folder, "texts", {"text": tfds.features.Text()}, train={"text": ["a", "b"]})
    return folder


def test_tfds_set_of_grey_images(tfds_folder, monkeypatch):
    monkeypatch.setenv("HOME", os.path.dirname(tfds_folder))
    grey = data.load("grey", data_dir=f"~/{os.path.basename(tfds_folder)}")
    assert (grey.name, grey.labels, grey.mirror) == ("grey", ("low", "high"), True)
    assert grey.image_shape == (6, 6, 1)
    images, labels = grey.train.arrays()
    assert images.dtype == np.uint8
    assert images[:, 3, 3, 0].tolist() == list(range(0, 200, 20))  # in the order of the set
    np.testing.assert_array_equal(images[:, 0, 0, 0] // 20 % 2, labels)
    assert (len(grey.train), len(grey.test)) == (10, 4)
    monkeypatch.setenv("TFDS_DATA_DIR", tfds_folder)
    scaled = data.load("grey", (9, 5))
    assert scaled.image_shape == scaled.test.arrays()[0].shape[1:] == (9, 5, 1)
    assert not data.load("mnist/planted").mirror


def test_tfds_set_of_varied_sizes_without_a_test_split(tfds_folder):
    varied = data.load("varied:1.0.0", (8, 12), tfds_folder)
    assert varied.image_shape == (8, 12, 3)
    train, test = varied.train.arrays()[0], varied.test.arrays()[0]
    assert (len(train), len(test)) == (8, 2)
    np.testing.assert_array_equal(np.concatenate([train, test])[:, 4, 4, 0], np.arange(0, 200, 20))
    assert data.load("varied", data_dir=tfds_folder).image_shape == (224, 224, 3)
    hidden = data.load("hidden", data_dir=tfds_folder)  # whose test labels are hidden
    assert hidden.test.arrays()[1].tolist() == [0, 1, 0]


def test_tfds_decodes_as_pillow(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 9, 11, 3), "uint8")
    image = tfds.features.Image(shape=(9, 11, 3), encoding_format="jpeg")
    features = {"image": image, "label": tfds.features.ClassLabel(names=["a", "b"])}
    columns = {"image": pixels, "label": np.arange(4) % 2}
    write_set(tmp_path, "photos", features, train=columns, test=columns)
    (encoded,) = tfds.builder("photos", data_dir=tmp_path).as_dataset(
        split="test[:1]", decoders={"image": tfds.decode.SkipDecoding()}
    )
    with Image.open(io.BytesIO(encoded["image"].numpy())) as image:
        expected = np.asarray(image)
    found = data.load("photos", data_dir=tmp_path).test.arrays()[0][0]
    np.testing.assert_array_equal(found, expected)


def test_bad_tfds_name(tfds_folder):
    for name, match in (
        ("cifar1O", "Did you mean cifar10 or cifar100?"),
        *((n, "neither a folder") for n in ("photos_of_my_cat", "data/photos", "my photos.v2")),
        ("cifar10:9.9.9", "9.9.9"),
        ("texts", "it has text"),
    ):
        fails(match, name, data_dir=tfds_folder)


def test_tfds_set_that_cannot_be_downloaded(tfds_folder, monkeypatch):
    def offline(*_, **__):
        raise ConnectionError("no network\nat all")

    monkeypatch.setattr(tfds.core.DatasetBuilder, "download_and_prepare", offline)
    fails(f"{tfds_folder}.*could not be downloaded", "cifar100", data_dir=tfds_folder)


@pytest.fixture
def own():
    images = np.random.default_rng(0).integers(0, 256, (20, 6, 8, 3), "uint8")
    return images, np.arange(20) % 2


def as_tensors(images, labels, size=None):
    tf = pytest.importorskip("tensorflow")
    pairs = tf.data.Dataset.from_tensor_slices((images, labels))
    return pairs if size is None else pairs.batch(size)


def test_own_images_of_every_kind(own):
    for make, labels in (
        (lambda x, y: (x, y), ("0", "1")),
        (lambda x, y: (list(x), y[:, None]), ("0", "1")),
        (lambda x, y: (x, np.array(["cat", "dog"])[y]), ("cat", "dog")),
        (as_tensors, ("0", "1")),
        (lambda x, y: as_tensors(x, y, 7), ("0", "1")),
        (lambda x, y: (x, np.array(["cat", "dog"], object)[y]), ("cat", "dog")),  # of pandas
        (lambda x, y: (x, y.astype(object)), ("0", "1")),
        (lambda x, y: as_tensors(x, np.array(["cat", "dog"])[y]), ("cat", "dog")),
    ):
        assert is_raw(make(*own))  # `keras_gmlp.train` takes it, too
        whole = data.from_arrays(make(*own), test=make(*own))
        assert not is_raw(whole)
        assert (whole.labels, whole.image_shape) == (labels, (6, 8, 3))
        for split in (whole.train, whole.test):
            for found, expected in zip(split.arrays(), own, strict=True):
                np.testing.assert_array_equal(found, expected)
        divided = data.from_arrays(make(*own))
        assert np.bincount(divided.test.labels).tolist() == [2, 2]
        assert len(divided.train) == 16
        assert divided.name != whole.name
        assert data.from_arrays(make(*own)).name == divided.name


def test_own_images_in_splits(own):
    images, labels = own
    pairs = data.from_arrays(((images[..., 0], labels), (images[:4, ..., 0], labels[:4])))
    assert (pairs.image_shape, len(pairs.test)) == ((6, 8, 1), 4)
    splits = {"train": own, "validation": (images[:6], labels[:6])}
    assert is_raw(splits)
    found = data.from_arrays(splits, name="pets")
    assert (found.name, found.image_shape) == ("pets", (6, 8, 3))
    assert [len(split) for split in found.splits().values()] == [16, 4, 6]
    named = images, np.array(["cat", "dog"])[labels]
    assert data.from_arrays(named, labels=("dog", "cat")).labels == ("dog", "cat")
    with pytest.raises(ValueError, match="cat"):
        data.from_arrays(named, labels=("dog", "mouse"))


def test_own_images_that_do_not_fit(own):
    for change, reason in (
        (lambda x, y: (x / 255, y), "uint8"),
        (lambda x, y: (x, y[:3]), r"\(3,\)"),
        (lambda x, y: (x, y - 1), "from -1 to 0"),
        (lambda x, y: (x[:1], y[:1]), "too few images"),
        (lambda x, y: ((x, y), (x[:, 1:], y)), "2 shapes"),
        (lambda x, y: (x.transpose(0, 3, 1, 2), y), "channels first"),
        (lambda x, y: (x, y + 1), "class 0"),
        (lambda x, y: ((x, y), (x[:3], np.arange(3))), "class 2"),
        (lambda x, y: {"train": (x, y), "validation": (x[:3], np.arange(3))}, "class 2"),
        (lambda x, y: (x, np.array(["cat", None] * 10)), "name"),
        (lambda x, y: (x, np.array(["cat", np.nan] * 10, object)), "name"),
    ):
        with refused(reason):
            data.from_arrays(change(*own))
