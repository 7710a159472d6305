"""Sets that TensorFlow Datasets prepared, compared with what TensorFlow reads."""

import json
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from pictures import encode, photo
from refused import refused
from tfrecord_files import example, write_records, write_set

from keras_gmlp import data
from keras_gmlp.data.images.fits import resize_images
from keras_gmlp.data.images.records import decode_image, load_records
from keras_gmlp.data.tfds.prepared import open_prepared
from keras_gmlp.data.tfds.tfrecords import find_records, parse_features, read_records
from keras_gmlp.utils.errors import one_line_errors

RECORDS = [b"", b"a", b"\x00" * 300, bytes(range(256)) * 300]


def compress(path):
    Path(f"{path}.xz").write_bytes(lzma.compress(path.read_bytes()))
    path.unlink()


@pytest.fixture
def file(tmp_path):
    write_records(tmp_path / "file", RECORDS)
    return tmp_path / "file"


def test_records_are_those_that_were_written(file):
    whole = file.read_bytes()
    found = [whole[start : start + size] for start, size in find_records(file)]
    assert found == RECORDS
    np.testing.assert_array_equal(find_records(file, 1, 2), find_records(file)[1:3])
    assert find_records(file, 4, 0).shape == (0, 2)
    compress(file)
    file.write_bytes(whole)
    for path in (file, f"{file}.xz"):
        assert list(read_records(path)) == RECORDS
        assert list(read_records(path, 1, 2)) == RECORDS[1:3]
        assert list(read_records(path, 1)) == RECORDS[1:]
        assert list(read_records(path, 4, 0)) == []
        with refused("truncated after 4 samples", path):
            list(read_records(path, 3, 2))


def test_damaged_records_name_their_file(file):
    whole = file.read_bytes()
    compressed = lzma.compress(whole)
    for name, content, match in [
        ("a", whole[:5], "truncated after 0 samples"),
        ("a", whole[:18], "truncated after 1 samples"),
        ("a", whole[:-5], "truncated after 3 samples"),
        ("a", whole[:16] + b"\x07" + whole[17:], "damaged after 1 samples"),
        ("a.xz", compressed[:-40], "damaged or truncated after . samples"),
        ("a.xz", compressed[:5], "damaged or truncated after 0 samples"),
        ("a.xz", b"no archive", "damaged or truncated after 0 samples"),
        ("a", None, "no such file; the data set is not complete"),
    ]:
        path = file.with_name(name)
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        for read in (read_records, find_records):
            if read is find_records and name == "a.xz":
                match = "compressed, .* decompress its files with xz -d"
            with refused(match, path):
                list(read(path))


def test_examples_are_those_that_tensorflow_writes():
    image = bytes(range(256)) * 2
    for label in (0, 1, 127, 128, 2**40, -1, -(2**63)):
        record = example(image=image, label=label, score=0.5, name=b"label")
        expected = {"image": [image], "label": [label], "score": [], "name": [b"label"]}
        assert parse_features(record) == expected
    values = tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2]))
    several = tf.train.Example(features=tf.train.Features(feature={"label": values}))
    assert parse_features(several.SerializeToString()) == {"label": [1, 2]}


def test_integer_that_is_not_packed():
    feature = b"\x1a\x03\x08\xac\x02"  # an int64 list with the field 1, 300
    entry = b"\x0a\x01a\x12" + bytes([len(feature)]) + feature
    features = b"\x0a" + bytes([len(entry)]) + entry
    record = b"\x0a" + bytes([len(features)]) + features
    assert tf.train.Example.FromString(record).features.feature["a"].int64_list.value == [300]
    assert parse_features(record) == {"a": [300]}


def test_damaged_example():
    record = example(image=b"12345678", label=3)
    for end in range(1, len(record)):
        with pytest.raises(ValueError, match=r"no tf\.train\.Example"):
            parse_features(record[:end])


def tfds_arrays(folder, split, samples=-1):
    """Returns the first samples of a split in the order of TFDS, decoded by TensorFlow."""
    import tensorflow_datasets as tfds

    decoders = {"image": tfds.decode.SkipDecoding()}
    dataset = tfds.builder_from_directory(folder).as_dataset(split=split, decoders=decoders)
    dataset = dataset.take(samples).map(
        lambda sample: (
            tf.io.decode_jpeg(sample["image"], dct_method="INTEGER_ACCURATE"),
            sample["label"],
        )
    )
    images, labels = zip(*dataset.as_numpy_iterator(), strict=True)
    return np.stack(images), np.array(labels)


def shards(*lengths):
    """Returns shards of samples of which each has its own image."""
    start = np.cumsum((0, *lengths))
    return [
        [(encode(np.full((2, 3, 3), n, "uint8")), n % 3) for n in range(first, first + length)]
        for first, length in zip(start, lengths, strict=False)
    ]


@pytest.mark.parametrize(
    ("lengths", "ordered"),
    [((90,), False), ((48, 32, 1, 16), False), *(((*range(3, 23), 5), o) for o in (False, True))],
)
def test_order_is_that_of_tfds(tmp_path, lengths, ordered):
    files = shards(*lengths)
    folder = write_set(tmp_path, {"train": files}, (2, 3, 3), "abc", disableShuffling=ordered)
    found = load_records("planted", data_dir=tmp_path)
    for split, percent in ((found.train, "train[:80%]"), (found.test, "train[80%:]")):
        expected = tfds_arrays(folder, percent)
        streamed = zip(*split.dataset().as_numpy_iterator(), strict=True)
        for part, other, same in zip(split.arrays(), streamed, expected, strict=True):
            np.testing.assert_array_equal(part, same)
            np.testing.assert_array_equal(other, same)
    assert len(found.train) + len(found.test) == sum(lengths)


def test_compressed_files_give_the_same_samples(tmp_path):
    folder = write_set(tmp_path, {"train": shards(30, 30), "test": shards(9)}, (2, 3, 3), "abc")
    before = load_records("planted", data_dir=tmp_path).train.arrays()
    for path in folder.glob("*-train.tfrecord-*"):
        compress(path)
    found = load_records("planted", data_dir=tmp_path)
    for part, same in zip(found.train.arrays(), before, strict=True):
        np.testing.assert_array_equal(part, same)
    assert len(found.test.arrays()[0]) == 9


FILES = {
    "JPEG": encode(photo(), "JPEG"),
    "JPEG without subsampling": encode(photo(), "JPEG", subsampling=0, quality=97),
    "progressive JPEG": encode(photo(), "JPEG", progressive=True),
    "grey JPEG": encode(photo().convert("L"), "JPEG"),
    "CMYK JPEG": encode(photo().convert("CMYK"), "JPEG"),
    "PNG": encode(photo()),
    "grey PNG": encode(photo().convert("L")),
    "PNG with a palette": encode(photo().quantize(64)),
    "transparent PNG": encode(photo().convert("RGBA")),
    "grey transparent PNG": encode(photo().convert("LA")),
    "PNG of 1 bit": encode(photo().convert("1")),
    "PNG of 16 bits": encode(np.arange(47 * 61, dtype="uint16").reshape(47, 61) * 17),
}


@pytest.mark.parametrize("name", FILES)
def test_pixels_are_those_of_tensorflow(name):
    for channels in (1, 3):
        if channels == 1 and name in ("CMYK JPEG", "PNG", "PNG with a palette", "transparent PNG"):
            continue  # which TensorFlow refuses, or turns grey with other weights
        expected = tf.io.decode_jpeg(FILES[name], channels, dct_method="INTEGER_ACCURATE").numpy()
        found = decode_image(FILES[name], (47, 61, channels), "here")
        np.testing.assert_array_equal(found, expected)
        scaled = decode_image(FILES[name], (30, 30, channels), "here")
        np.testing.assert_array_equal(scaled, resize_images(expected, (30, 30)))


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "not an image"),
        (b"text", "not an image"),
        (FILES["JPEG"][:300], "damaged or truncated image"),
        (FILES["PNG"][:-60], "damaged or truncated image"),
    ],
)
def test_damaged_image_names_its_place(tmp_path, content, match):
    good = encode(photo())
    folder = write_set(
        tmp_path, {"train": [[(good, 0), (content, 1)]], "test": [[(good, 0)]]}, (47, 61, 3), "ab"
    )
    split = load_records("planted", data_dir=tmp_path).train
    match = rf"^{folder}/planted-train.tfrecord-00000-of-00001, sample 1: {match}.* Remove what"
    for read in (split.arrays, lambda: list(split.dataset())):
        with refused(match), one_line_errors():
            read()
    assert len(split.take(1).arrays()[0]) == 1


def test_fewer_samples_than_promised(tmp_path):
    folder = write_set(tmp_path, {"train": shards(3, 3), "test": shards(3)}, (2, 3, 3), "abc")
    path = folder / "planted-train.tfrecord-00001-of-00002"
    for record, reason in (
        (example(image=encode(photo(2, 3)), label=0), ": truncated after 1 samples"),
        (example(image=b"", name=0), ", sample 0: holds no image and label"),
        (b"\xff", ", sample 0: damaged"),
    ):
        write_records(path, [record])
        with refused(f"{path}{reason}"):
            load_records("planted", data_dir=tmp_path).train.arrays()


SMALL = {"train": shards(5), "test": shards(2)}


def test_newest_version_and_default_variant_are_opened(tmp_path, monkeypatch):
    for number, version in enumerate(("1.9.0", "1.10.0", "1.2.0")):
        files = {"train": shards(5 + number), "test": shards(2)}
        write_set(tmp_path, files, (2, 3, 3), None, f"planted/{version}")
    (tmp_path / "planted/2.0.0.incomplete").mkdir()
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    found = data.load("planted")
    assert (found.name, len(found.train), found.labels) == ("planted", 6, ("0", "1", "2"))
    assert len(data.load("planted:1.9.0").train) == 5
    assert open_prepared("planted:3.0.0") is open_prepared("planted/none") is None
    for variant in ("small", "large"):
        write_set(tmp_path, SMALL, (2, 3, 3), "abc", f"other/{variant}/1.0.0", name=variant)
    assert open_prepared("other/large").name == "large"
    assert open_prepared("other") is None
    (tmp_path / "other/.config").mkdir()
    usual = {"default_config_name": "small"}
    (tmp_path / "other/.config/metadata.json").write_text(json.dumps(usual))
    assert open_prepared("other").name == "small"


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        ("features.json", "classLabel", "text", "expected the features image, .* and label; it"),
        ("features.json", "uint8", "float32", "not an image-classification data set"),
        ("features.json", '"3"]', '"4"]', "not an image-classification data set"),
        ("features.json", "featuresDict", "content", "not an image-classification data set"),
        ("features.json", "{", "", "features.json: damaged or not JSON"),
        ("dataset_info.json", '"tfrecord"', '"array_record"', "1.0.0: expected TFRecord files"),
        ("dataset_info.json", '"train"', '"unlabelled"', "with a split train"),
        ("dataset_info.json", "shardLengths", "numShards", "with a split train"),
    ],
)
def test_sets_that_hold_other_data(tmp_path, file, old, new, reason):
    path = write_set(tmp_path, SMALL, (2, 3, 3), "abc") / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with refused(reason):
        load_records("planted", data_dir=tmp_path)


def test_letters_are_not_mirrored(tmp_path):
    write_set(tmp_path, SMALL, (2, 3, 3), "abc", "mnist/1.0.0", name="mnist")
    for path in (tmp_path / "mnist/1.0.0").glob("planted-*"):
        path.rename(path.with_name(path.name.replace("planted", "mnist")))
    assert not load_records("mnist", data_dir=tmp_path).mirror


def test_real_cifar10_is_that_of_tfds():
    folder = Path(os.environ.get("TFDS_DATA_DIR", "/none"), "cifar10")
    if not folder.is_dir():
        pytest.skip("CIFAR-10 is not in $TFDS_DATA_DIR")
    found = load_records("cifar10")
    assert (len(found.train), len(found.test)) == (50_000, 10_000)
    assert (found.labels[3], found.image_shape) == ("cat", (32, 32, 3))
    (version,) = folder.iterdir()
    for split, name in ((found.train, "train"), (found.test, "test")):
        expected = tfds_arrays(version, name, 200)
        for part, same in zip(split.take(200).arrays(), expected, strict=True):
            np.testing.assert_array_equal(part, same)
