"""Sets that TensorFlow Datasets (TFDS) prepared: folders, files and the order of samples."""

import dataclasses
import itertools
import os
import re
from pathlib import Path

from keras_gmlp.data.tfds.tfrecords import parse_features, read_records
from keras_gmlp.utils.files import read_json

FILES_IN_TURN, SAMPLES_IN_TURN = 16, 16  # TFDS reads so many files, so many samples of each
TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"  # of file names, by default
NAME = re.compile(r"(\w+)(?:/([\w.+-]+))?(?::(\d+\.\d+\.\d+))?")  # name/config:version


def tfds_folder(data_dir=None):
    """Returns the folder of TFDS: `data_dir`, `$TFDS_DATA_DIR` or its default."""
    folder = data_dir or os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
    return Path(os.path.expanduser(folder))


@dataclasses.dataclass(frozen=True)
class Shard:
    """A part of a TFRecord file: the samples from `skip`, `take` of them."""

    path: Path
    skip: int
    take: int

    def samples(self, names=None):
        """Yields the place and the features of each sample, as `parse` does."""
        for number, record in enumerate(read_records(self.path, self.skip, self.take), self.skip):
            yield self.parse(number, record, names)

    def parse(self, number, record, names=None):
        """Returns the place of a record, for errors, and its features by name; see `tfrecords`."""
        place = f"{self.path}, sample {number}"
        try:
            return place, parse_features(record, names)
        except ValueError as error:
            raise ValueError(f"{place}: damaged ({error}).") from None


class PreparedSet:
    """A set that TFDS prepared, in the folder of its version."""

    def __init__(self, folder):
        info = read_json(folder / "dataset_info.json")
        described = read_json(folder / "features.json", {})
        self.folder, self.name = folder, info.get("name")
        # Descriptions by name.
        self.features = described.get("featuresDict", {}).get("features", {})
        self.splits = {split["name"]: split for split in info.get("splits", ())}
        self.readable = info.get("fileFormat", "tfrecord") == "tfrecord"
        self.cycle = 1 if info.get("disableShuffling") else FILES_IN_TURN  # files that take turns

    def class_names(self, classes, feature="label"):
        """Returns the names of the classes of a feature, their numbers if it has no names."""
        path = self.folder / f"{feature}.labels.txt"
        if not path.exists():
            return tuple(map(str, range(classes)))
        return tuple(line.strip() for line in path.read_text().split("\n") if line.strip())

    def shards(self, split, start=0, stop=100):
        """Returns the shards of a split from one percentage to another, rounded as in TFDS."""
        described = self.splits[split]
        lengths = [int(length) for length in described.get("shardLengths", ())]
        start, stop = (round(percent * sum(lengths) / 100) for percent in (start, stop))
        template = described.get("filepathTemplate") or TEMPLATE
        names = {"DATASET": self.name, "SPLIT": split, "FILEFORMAT": "tfrecord"}
        names["NUM_SHARDS"] = f"{len(lengths):05}"
        shards, before = [], 0
        for number, length in enumerate(lengths):
            first, last = max(start - before, 0), min(stop - before, length)
            before += length
            if first < last:
                names["SHARD_INDEX"] = f"{number:05}"
                names["SHARD_X_OF_Y"] = "{SHARD_INDEX}-of-{NUM_SHARDS}".format(**names)
                path = self.folder / template.format(**names)
                compressed = path.with_name(f"{path.name}.xz")
                path = compressed if compressed.exists() and not path.exists() else path
                shards.append(Shard(path, first, last - first))
        return shards

    def samples(self, split):
        """Yields the features of each sample in the order of TFDS, as `parse_features` does."""
        shards = (shard.samples() for shard in self.shards(split))
        return (features for _, features in take_turns(shards, self.cycle, SAMPLES_IN_TURN))


def open_prepared(name, data_dir=None):
    """Returns a `PreparedSet`, of the newest version by default; `None` if it is not there."""
    match = NAME.fullmatch(name)
    if not match:
        return None
    base, config, version = match.groups()
    place = tfds_folder(data_dir) / base
    if not config and not _versions(place):
        config = read_json(place / ".config/metadata.json", {}).get("default_config_name")
    place = place / config if config else place
    versions = _versions(place)
    newest = max(versions, key=lambda text: [int(part) for part in text.split(".")], default=None)
    version = version or newest
    return PreparedSet(place / version) if version in versions else None


def prepared_names(data_dir=None):
    """Returns the names of all sets in the folder of TFDS, with their configs."""
    root = tfds_folder(data_dir)
    files = [*root.glob("*/*/dataset_info.json"), *root.glob("*/*/*/dataset_info.json")]
    return sorted({path.parent.parent.relative_to(root).as_posix() for path in files})


def take_turns(iterables, cycle, block):
    """Yields from several iterables in turn, in the order of `tf.data.Dataset.interleave`."""
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


def _versions(place):
    """Returns the names of the complete versions in a folder."""
    names = [path.parent.name for path in place.glob("*/dataset_info.json")]
    return [name for name in names if re.fullmatch(r"\d+\.\d+\.\d+", name)]
