"""Sets of labelled images that TensorFlow Datasets (TFDS) prepared, read without it.

The samples, their order and their pixels are those that TFDS gives.
"""

import dataclasses
import io
import itertools
import os
import re
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from keras_gmlp.data.image_data import ImageData, resize_to_cover
from keras_gmlp.data.read_image import MAX_PIXELS, open_image
from keras_gmlp.data.splits import EncodedSplit
from keras_gmlp.data.tfrecords import parse_example, read_records
from keras_gmlp.utils.files import read_json

# Data sets of letters and digits: a mirrored image has another label, or none.
MIRRORED_CHANGES_LABEL = (
    "binary_alpha_digits",
    "cmaterdb",
    "emnist",
    "kmnist",
    "mnist",
    "mnist_corrupted",
    "omniglot",
    "svhn_cropped",
)

FILES_IN_TURN, SAMPLES_IN_TURN = 16, 16  # TFDS reads so many files, so many samples of each

TEMPLATE = (
    "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"  # of file names, unless a set has its own
)

NAME = re.compile(r"(\w+)(?:/([\w.+-]+))?(?::(\d+\.\d+\.\d+))?")  # name/config:version


def tfds_folder(data_dir=None):
    """Returns the folder of TFDS: `data_dir`, `$TFDS_DATA_DIR` or its default."""
    folder = data_dir or os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
    return Path(os.path.expanduser(folder))


def load_records(name, image_size=None, data_dir=None):
    """Opens a data set from TFRecord files that TFDS prepared.

    Args:
        name: As in TFDS, for example `"cifar10"`, `"mnist_corrupted/fog"` or `"cifar10:3.0.2"`.
        image_size: `(height, width)` of the loaded images; see `datasets.load`.
        data_dir: The folder of TFDS.

    Returns:
        An `ImageData`, or `None` if the set is not in the folder, has other files than TFRecord
        or other features than an image of 8 bits and a class.

    Raises:
        ValueError: If a file is missing or damaged.
    """
    folder = _find(name, tfds_folder(data_dir))
    if folder is None:
        return None
    info = read_json(folder / "dataset_info.json")
    size, classes = _features(folder)
    splits = {split["name"]: split for split in info.get("splits", ())}
    if (
        size is None
        or info.get("fileFormat", "tfrecord") != "tfrecord"
        or not splits.get("train", {}).get("shardLengths")
    ):
        return None
    shape = (*(image_size or (size[0] or 224, size[1] or 224)), size[2] or 3)
    cycle = 1 if info.get("disableShuffling") else FILES_IN_TURN

    def open_split(which, start=0, stop=100):
        shards = _shards(folder, info["name"], splits[which], start, stop)
        return RecordSplit(shards, shape, cycle)

    held_out = next(
        (n for n in ("test", "validation") if n in splits and _labelled(open_split(n))), None
    )
    parts = [("train",), (held_out,)] if held_out else [("train", 0, 80), ("train", 80, 100)]
    train, test = (open_split(*part) for part in parts)
    mirror = info["name"] not in MIRRORED_CHANGES_LABEL
    return ImageData(name, _class_names(folder, classes), shape, train, test, mirror)


@dataclasses.dataclass(frozen=True)
class Shard:
    """A part of a TFRecord file: the samples from `skip`, `take` of them."""

    path: Path
    skip: int
    take: int


class RecordSplit(EncodedSplit):
    """Samples in TFRecord files, in the order of TFDS.

    Args:
        shards: A list of `Shard`.
        shape: `(height, width, channels)`; images of another size are scaled and cropped.
        cycle: Number of files that take turns.
        samples: Number of samples from the start. Defaults to all.
    """

    parts = 2

    def __init__(self, shards, shape, cycle=FILES_IN_TURN, samples=None):
        self.shards, self.shape, self.cycle = list(shards), tuple(shape), cycle
        whole = sum(shard.take for shard in self.shards)
        self.samples = whole if samples is None else min(samples, whole)

    def __len__(self):
        return self.samples

    def _first(self, samples):
        return RecordSplit(self.shards, self.shape, self.cycle, samples)

    def _sources(self):
        order = take_turns(map(_read_shard, self.shards), self.cycle, SAMPLES_IN_TURN)
        return itertools.islice(order, self.samples)

    def _decode(self, encoded, place):
        return decode_image(encoded, self.shape, os.fsdecode(place))


def take_turns(iterables, cycle, block):
    """Yields from several iterables in turn, in the order of `tf.data.Dataset.interleave`.

    Args:
        iterables: Iterable of iterables. When one is exhausted, the next one takes its place, from
            the next turn on.
        cycle: Number of iterables that take turns.
        block: Items of a turn.
    """
    waiting, active = map(iter, iterables), [None] * cycle
    for place in itertools.cycle(range(cycle)):
        if active[place] is None:
            active[place] = next(waiting, None)
        if active[place] is not None:
            items = list(itertools.islice(active[place], block))
            yield from items
            if len(items) < block:
                active[place] = None
        elif not any(active):
            return


def decode_image(encoded, shape, place):
    """Decodes an image of a data set, to the pixels that TensorFlow gives.

    Args:
        encoded: Bytes of a JPEG, PNG or other image file.
        shape: `(height, width, channels)`; an image of another size is scaled and cropped.
        place: Where the bytes come from, the start of errors.

    Returns:
        A uint8 array of this shape.

    Raises:
        ValueError: If the bytes are no image, or a damaged one. One line.
    """
    channels = shape[-1]
    try:
        with open_image(io.BytesIO(encoded), place) as image:
            if image.width * image.height > MAX_PIXELS:
                raise ValueError(f"more than {MAX_PIXELS:,} pixels")
            mode = "L" if channels == 1 else "RGB"
            if channels == 1 and image.format == "JPEG":
                image.draft(mode, image.size)  # the brightness that the file holds
            if image.mode.startswith("I"):  # 16 bits
                image = Image.fromarray((np.asarray(image) >> 8).astype("uint8"))
            pixels = np.asarray(image if image.mode == mode else image.convert(mode))
    except UnidentifiedImageError:
        raise ValueError(f"{place}: not an image.") from None
    except Exception as error:  # damaged files make Pillow raise many types
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{place}: damaged image ({reason}).") from None
    pixels = pixels.reshape(*pixels.shape[:2], channels)
    return pixels if pixels.shape == shape else resize_to_cover(pixels, shape)


def _read_shard(shard):
    """Yields ((encoded image, place), class index) for each sample of a shard."""
    records = read_records(shard.path, shard.skip, shard.take)
    for number, record in enumerate(records, shard.skip):
        place = f"{shard.path}, sample {number}"
        try:
            image, label = parse_example(record, ("image", "label"))
        except ValueError as error:
            raise ValueError(f"{place}: damaged ({error}).") from None
        if not isinstance(image, bytes) or not isinstance(label, int):
            raise ValueError(f"{place}: holds no image and label.")
        yield (image, os.fsencode(place)), label


def _find(name, root):
    """Returns the folder of a data set, or `None`; without a version that of the newest one."""
    match = NAME.fullmatch(name)
    if not match:
        return None
    base, config, version = match.groups()
    place = root / base
    if not config and not _versions(place):
        config = read_json(place / ".config/metadata.json", {}).get("default_config_name")
    place = place / config if config else place
    versions = _versions(place)
    newest = max(versions, key=lambda text: [int(part) for part in text.split(".")], default=None)
    version = version or newest
    return place / version if version in versions else None


def _versions(place):
    """Returns the names of the complete versions in a folder."""
    names = [path.parent.name for path in place.glob("*/dataset_info.json")]
    return [name for name in names if re.fullmatch(r"\d+\.\d+\.\d+", name)]


def _features(folder):
    """Returns the size of the images and the number of classes, or `(None, 0)` for other data.

    A size is `(height, width, channels)`, `None` for what varies.
    """
    known = read_json(folder / "features.json", {}).get("featuresDict", {}).get("features", {})
    image = known.get("image", {}).get("image", {})
    classes = known.get("label", {}).get("classLabel", {}).get("numClasses")
    size = [int(n) for n in image.get("shape", {}).get("dimensions", ())]
    if (
        classes is None
        or len(size) != 3
        or size[2] not in (-1, 1, 3)
        or image.get("dtype") != "uint8"
    ):
        return None, 0
    return [None if n < 0 else n for n in size], int(classes)


def _class_names(folder, classes):
    path = folder / "label.labels.txt"
    if not path.exists():
        return tuple(map(str, range(classes)))
    return tuple(line.strip() for line in path.read_text().split("\n") if line.strip())


def _shards(folder, name, split, start, stop):
    """Returns the shards of a split from one percentage to another, rounded as in TFDS."""
    lengths = [int(length) for length in split.get("shardLengths", ())]
    start, stop = (round(percent * sum(lengths) / 100) for percent in (start, stop))
    template = split.get("filepathTemplate") or TEMPLATE
    shards, before = [], 0
    for number, length in enumerate(lengths):
        first, last = max(start - before, 0), min(stop - before, length)
        before += length
        if first < last:
            index, count = f"{number:05}", f"{len(lengths):05}"
            file = template.format(
                DATASET=name,
                SPLIT=split["name"],
                FILEFORMAT="tfrecord",
                SHARD_INDEX=index,
                NUM_SHARDS=count,
                SHARD_X_OF_Y=f"{index}-of-{count}",
            )
            shards.append(Shard(_uncompressed_first(folder / file), first, last - first))
    return shards


def _uncompressed_first(path):
    """Returns the path of a file, or that of its compressed form if there is no other."""
    compressed = path.with_name(f"{path.name}.xz")
    return compressed if compressed.exists() and not path.exists() else path


def _labelled(split):
    """Returns whether there is a first sample and it has a label; a hidden one is -1."""
    return any(label >= 0 for _, label in split.take(1)._sources())
