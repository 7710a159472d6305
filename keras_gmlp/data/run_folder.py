"""`Run`: what the folder of a run says, and its data, found again by what samples hold."""

import contextlib
import csv
import functools
import hashlib
import itertools
import os
from pathlib import Path
from typing import NamedTuple

from keras_gmlp.data.datasets import canonical_name, find_path, holds_files, load, same_data
from keras_gmlp.data.images.folder import list_images
from keras_gmlp.data.images.packed import PackedSplit, is_packed, load_packed
from keras_gmlp.data.images.table import SEVERAL
from keras_gmlp.data.text.chosen_splits import TextSource, name_columns, read_all
from keras_gmlp.data.validation import PARTS, divide_training
from keras_gmlp.utils.csv_tables import as_plain_cell
from keras_gmlp.utils.errors import printable, warn
from keras_gmlp.utils.files import hash_file, read_json
from keras_gmlp.utils.progress import map_in_threads
from keras_gmlp.utils.shipped import find_shipped

SAMPLES = "samples.csv"
RESTORE = "Restore the file, or start the run again with --restart (restart=True)."
MOST = 200_000  # samples that are recorded; to read more takes minutes


class Sample(NamedTuple):
    """A row of `samples.csv`."""

    split: str
    label: str
    name: str  # path of a picture, relative to the data
    hash: str  # of the picture's file, or of the text


class Run:
    """The folder of a run, or the one that a model file is in.

    Attributes:
        path: The folder.
        recipe: `recipe.json`, a dict; empty without the file.
        metrics: `metrics.json`, a dict; empty without the file, as that of a run that goes on.
        samples: The `Sample`s in `samples.csv`; none of data sets by name and of older runs.
    """

    def __init__(self, source):
        place = Path(find_shipped(source))
        is_model = place.is_file() or (place / "saved_model.pb").exists()
        self.path = place.parent if is_model else place

    @functools.cached_property
    def recipe(self):
        recipe = self._read("recipe.json")
        places = recipe.get("places", {})
        if not (isinstance(places, dict) and all(type(each) is str for each in places.values())):
            raise ValueError(f"{self.path}/recipe.json: damaged (its places). {RESTORE}")
        return recipe

    @functools.cached_property
    def metrics(self):
        return self._read("metrics.json")

    @property
    def complete(self):
        """Whether the run is complete: `metrics.json` is its last file."""
        return (self.path / "metrics.json").exists()

    def require_numbers(self, names):
        """Returns the metrics; raises a `ValueError` if one of these is missing."""
        for name in names:
            if type(self.metrics.get(name)) not in (int, float):
                raise ValueError(
                    f"{self.path}/metrics.json: damaged (it has no number {name}). {RESTORE}"
                )
        return self.metrics

    def _read(self, name):
        path = self.path / name
        try:
            found = read_json(path, {})
        except ValueError as error:
            raise ValueError(f"{error} {RESTORE}") from None
        if not isinstance(found, dict):
            raise ValueError(f"{path}: damaged (no object). {RESTORE}")
        return found

    @property
    def settings(self):
        """The `RunSettings` that the run was started with, a dict; empty if it had none."""
        found = self.recipe.get("command", {})
        if not isinstance(found, dict):
            raise ValueError(f"{self.path}/recipe.json: damaged (its command). {RESTORE}")
        return {name: value for name, value in found.items() if name != "program"}  # of older runs

    @functools.cached_property
    def samples(self):
        path = self.path / SAMPLES
        if not path.is_file():
            return []
        try:
            with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
                return [Sample(*row) for row in csv.reader(file)][1:]
        except (TypeError, csv.Error):
            raise ValueError(f"{path}: damaged; restore it, or train the run again.") from None

    def data(self, name=None, split=None, columns=None):
        """Returns the name of data, whether they are the run's, and how to divide them.

        Data that hold at least half of what a run recorded for testing are its own, wherever they
        are. Samples that came later are in none of its splits.

        Args:
            name: Name of the data. Defaults to the run's.
            split: `"all"` to divide nothing.
            columns: Of texts, the columns that are given, a dict; `None` for images.

        Returns:
            `(name, own, division)`; the last are arguments of `LabelledImages` or of `TextSource`.

        Raises:
            ValueError: If the run names no data, or others are where its own were. One line.
        """
        if name is None and "data" not in self.recipe:
            raise ValueError(f"{self.path}: its data are unknown; give --data.")
        place = self._find(self.recipe["data"]) if "data" in self.recipe else None
        chosen = place if name is None else name
        own, roles = place is not None and same_data(chosen, place), None
        other = (columns or {}).get("test")  # texts for testing in place of the run's
        if columns is not None and own:
            names = ("column", "label", "test")
            columns = {**name_columns(*map(self.settings.get, names)), **columns}
            columns |= {"test": self._find(columns["test"])} if "test" in columns else {}
        if self.samples and other:
            self._find_roles(other, {**columns, "test": None}, "all")  # for its warning
        elif self.samples:
            own, roles = self._find_roles(chosen, columns, split)
            if name is None and not own:
                raise ValueError(
                    f"{self.path}: {printable(chosen)} does not hold the data of the run, which "
                    "were moved or changed; give them with --data."
                )
        own, division = own and not other, {} if columns is None else {"columns": columns}
        if own and roles is not None:
            division["roles"] = roles
        elif own and columns is None:
            parts = {p: self.recipe[p] for p in PARTS if self.recipe.get(p) is not None}
            parts = {} if parts == {"fraction": 1} else parts
            division |= {"groups": self.recipe.get("groups"), "parts": parts}
        elif own:
            shares = {"held_out": "hold_out", "validation": "validation"}
            division |= {name: self.settings.get(option, 0.0) for name, option in shares.items()}
        return chosen, own, division

    def load_images(self, image_shape, name=None, fit="crop"):
        """Returns the images of the run, or others, an `ImageData` that is divided as its own."""
        name, _, division = self.data(name)
        parts, (*size, channels) = division.pop("parts", {}), image_shape
        data = load(canonical_name(name), tuple(size), None, channels, fit=fit, **division)
        return divide_training(data, **parts, groups=division.get("groups"))

    def _find(self, name):
        """Returns the path of data that the run names, from any folder."""
        place = self.recipe.get("places", {}).get(str(find_path(name)), name)
        return place if os.path.exists(place) and not same_data(name, place) else name

    def _find_roles(self, name, columns, split):
        """Returns whether data are the run's, and by path or place the recorded split."""
        samples = _list_all(name, columns)
        rows = _describe(samples, find_path(name))
        found = self._find_splits(rows)
        tested = {row.hash for row in self.samples if row.split == "test"}
        own = 2 * len(tested.intersection(digest for _, digest in rows)) >= len(tested)
        if not own or split == "all":
            self._warn_of_trained(name, found)
        elif new := found.count(None):
            warn(
                f"{printable(name)}: left out {new:,} of {len(found):,} samples, which "
                f"{self.path} had neither for training nor for testing."
            )
        keys = samples if columns is None and holds_files(name) else range(len(samples))
        return own, dict(zip(keys, found, strict=True)) if own and split != "all" else None

    def _find_splits(self, rows):
        """Returns the recorded split of each sample by name and hash, or by hash; or `None`."""
        by_name = {(row.name, row.hash): row.split for row in self.samples if row.name}
        by_hash = {}
        for row in self.samples:  # training comes first
            by_hash.setdefault(row.hash, []).append(row.split)
        copies = {digest: itertools.cycle(splits) for digest, splits in by_hash.items()}
        return [by_name.get(row) or next(copies.get(row[1], iter(())), None) for row in rows]

    def _warn_of_trained(self, name, found):
        if trained := sum(split in ("train", "validation") for split in found):
            warn(
                f"{printable(name)}: {self.path} was trained on {trained:,} of these "
                f"{len(found):,} samples, so figures on them are too good."
            )

    def warn_of_files(self, name, files):
        """Warns if the run was trained on image files, which another run held out."""
        if self.samples:
            rows = _describe([os.fsencode(file) for file in files], find_path(name))
            self._warn_of_trained(name, self._find_splits(rows))


def record_samples(data):
    """Returns the `Sample`s of a run's data; none of data sets by name and of very large ones."""
    if not hasattr(data, "labels"):
        return []
    path = Path(os.path.expanduser(data.name))
    splits = {name: getattr(data, name, None) for name in ("train", "validation", "test")}
    listed = {name: _list_samples(split) for name, split in splits.items()}
    known = data.name != "digits" and path.exists()
    if not known or sum(map(len, listed.values())) > MOST:
        return []
    rows = []
    for name, samples in listed.items():
        labels = _name_labels(data, splits[name]) if len(samples) else ()
        described = _describe(samples, path)
        rows += [Sample(name, each, *row) for each, row in zip(labels, described, strict=True)]
    return rows


def _name_labels(data, split):
    """Returns the class names of each sample."""
    indices = split.labels if hasattr(split, "texts") else split.read_labels()
    sets = getattr(data, "label_sets", None) or [(index,) for index in range(len(data.labels))]
    names = [as_plain_cell(SEVERAL.join(data.labels[i] for i in members)) for members in sets]
    return [names[index] for index in indices]


def _list_samples(split):
    """Returns what a run records of a split: paths as bytes, texts, or stored pixels."""
    split = getattr(split, "split", split)  # of a `ChannelSplit`
    if isinstance(split, PackedSplit):
        return split.stored()
    return getattr(split, "paths", getattr(split, "texts", ()))


def _list_all(name, columns):
    """Returns the samples of data by name; of texts, which have columns, the texts."""
    path = find_path(name)
    if columns is not None:
        return read_all(TextSource(str(name), columns))[0].texts if path.exists() else []
    if holds_files(name):
        return [file for file, _ in list_images(path, "all")[1]]
    if name == "digits" or not is_packed(path):
        return []
    return [sample for split in load_packed(path).splits().values() for sample in split.stored()]


def _describe(samples, path):
    """Returns the name and the hash of each sample of data at a path, a list of pairs."""
    root = path if path.is_dir() else path.parent
    names = [os.path.relpath(os.fsdecode(s), root) if type(s) is bytes else "" for s in samples]
    hashes = map_in_threads(_hash, samples, "reading samples")
    return [(as_plain_cell(name), digest) for name, digest in zip(names, hashes, strict=True)]


@functools.lru_cache(MOST)
def _hash_file(path, *state):
    return hash_file(path)[:16]


def _hash(sample):
    if isinstance(sample, bytes):
        with contextlib.suppress(OSError):  # decoding the picture says what is wrong
            found = os.stat(sample)
            return _hash_file(sample, found.st_size, found.st_mtime_ns)
        return ""
    if isinstance(sample, str | tuple):
        sample = "\0".join([sample] if isinstance(sample, str) else sample)
        sample = sample.encode("utf-8", "surrogatepass")
    return hashlib.sha256(sample).hexdigest()[:16]
