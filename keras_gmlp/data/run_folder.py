"""`Run`: what the folder of a run says, and its data, found again by what samples hold."""

import contextlib
import csv
import dataclasses
import functools
import hashlib
import itertools
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_gmlp.data.datasets import find_path, holds_files, same_data
from keras_gmlp.data.images.folder import list_splits
from keras_gmlp.data.images.packed import is_packed, load_packed
from keras_gmlp.data.text.labelled_texts import TextSource, name_columns
from keras_gmlp.data.validation import PARTS, load_divided
from keras_gmlp.utils.errors import printable, warn
from keras_gmlp.utils.files import hash_file, read_json
from keras_gmlp.utils.labels import SEVERAL
from keras_gmlp.utils.progress import map_in_threads
from keras_gmlp.utils.sources import find_shipped
from keras_gmlp.utils.tables import as_plain_cell

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
    """The folder of a run, or the one that a model file is in."""

    # `recipe` and `metrics` are the files of that name, dicts; empty without the file.

    def __init__(self, source):
        place = Path(find_shipped(source))
        is_model = place.is_file() or (place / "saved_model.pb").exists()
        self.path = place.parent if is_model else place

    @functools.cached_property
    def recipe(self):
        return self._read("recipe.json")

    @functools.cached_property
    def metrics(self):
        return self._read("metrics.json")

    @property
    def complete(self):
        """Whether the run is complete: `metrics.json` is its last file."""
        # Without `recipe.json`, `metrics.json` may be the user's.
        return all((self.path / name).exists() for name in ("metrics.json", "recipe.json"))

    def _read(self, name):
        try:
            return read_json(self.path / name, {})
        except ValueError as error:
            raise ValueError(f"{error} {RESTORE}") from None

    @property
    def settings(self):
        """The `RunSettings` that the run was started with, a dict; empty if it had none."""
        given = self.recipe.get("command", {})
        return {name: value for name, value in given.items() if name != "program"}  # of older runs

    @functools.cached_property
    def samples(self):
        """The `Sample`s in `samples.csv`; none of data sets by name and of older runs."""
        path = self.path / SAMPLES
        if not path.is_file():
            return []
        try:
            with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
                return [Sample(*row) for row in csv.reader(file)][1:]
        except (TypeError, csv.Error) as error:  # of rows of another length
            raise ValueError(f"{path}: damaged ({error}). {RESTORE}") from None

    def data(self, name=None, split=None):
        """Returns the name of images, if they are the run's, and arguments of `load_divided`."""
        # Data that hold at least half of what a run recorded for testing are its own, wherever
        # they are. Samples that came later are in none of its splits. "all" divides nothing.
        chosen, own = self._choose(name)
        if self.samples:
            samples = _list_images(chosen)
            own, splits = self._find_roles(chosen, samples, split, name is None)
            if splits is not None:
                keys = samples if holds_files(chosen) else range(len(samples))
                return chosen, own, {"roles": dict(zip(keys, splits, strict=True))}
        if not own:
            return chosen, own, {}
        parts = {p: self.recipe[p] for p in PARTS if self.recipe.get(p) is not None}
        return chosen, own, {"groups": self.recipe.get("groups"), "parts": parts}

    def texts(self, name=None, split=None, columns=None):
        """Returns the `TextSource` of texts, and whether they are the run's; see `data`."""
        chosen, own = self._choose(name)
        columns = dict(columns or {})
        other = columns.get("test")  # texts for testing in place of the run's
        if own:
            names = ("column", "label", "test")
            columns = {**name_columns(*map(self.settings.get, names)), **columns}
            columns |= {"test": self._find(columns["test"])} if "test" in columns else {}
        source = TextSource(chosen, columns)
        if self.samples and other:
            own, tested = False, TextSource(other, {**columns, "test": None})
            self._find_roles(other, _list_texts(tested), "all", False)  # for its warning
        elif self.samples:
            own, source.roles = self._find_roles(chosen, _list_texts(source), split, name is None)
            return source, own
        if own and not other:
            held_out, validation = (self.settings.get(n, 0.0) for n in ("hold_out", "validation"))
            source = dataclasses.replace(source, held_out=held_out, validation=validation)
        return source, own and not other

    def load_images(self, image_shape, name=None, fit="crop"):
        """Returns the images of the run, or others, an `ImageData` that is divided as its own."""
        name, _, division = self.data(name)
        return load_divided(name, image_shape, fit, **division)

    def _choose(self, name):
        """Returns the name of data, by default the run's, and if it is that of the run's data."""
        if name is None and "data" not in self.recipe:
            raise ValueError(f"{self.path}: its data are unknown; give --data.")
        place = self._find(self.recipe["data"]) if "data" in self.recipe else None
        chosen = place if name is None else name
        return chosen, place is not None and same_data(chosen, place)

    def _find(self, name):
        """Returns the path of data that the run names, from any folder."""
        place = self.recipe.get("places", {}).get(str(find_path(name)), name)
        return place if os.path.exists(place) and not same_data(name, place) else name

    def _find_roles(self, name, samples, split, required):
        """Returns whether data are the run's, and the recorded split of each sample, if asked."""
        rows = _describe(samples, find_path(name))
        found = self._find_splits(rows)
        tested = {row.hash for row in self.samples if row.split == "test"}
        own = 2 * len(tested.intersection(digest for _, digest in rows)) >= len(tested)
        if required and not own:
            raise ValueError(
                f"{self.path}: {printable(name)} does not hold the data of the run, which were "
                "moved or changed; give them with --data."
            )
        if not own or split == "all":
            self._warn_of_trained(name, found)
            return own, None
        if new := found.count(None):
            warn(
                f"{printable(name)}: left out {new:,} of {len(found):,} samples, which "
                f"{self.path} had neither for training nor for testing."
            )
        return own, found

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

    def warn_of(self, name, samples):
        """Warns if the run was trained on samples of data: texts, or paths as bytes."""
        if self.samples:
            self._warn_of_trained(name, self._find_splits(_describe(samples, find_path(name))))


def record_samples(data):
    """Returns the `Sample`s of a run's data; none of data sets by name and of very large ones."""
    if not hasattr(data, "labels"):
        return []
    path = Path(os.path.expanduser(data.name))
    splits = {name: getattr(data, name, None) for name in ("train", "validation", "test")}
    listed = {n: getattr(s, "sources", getattr(s, "texts", ())) for n, s in splits.items()}
    known = data.name != "digits" and path.exists()
    if not known or sum(map(len, listed.values())) > MOST:
        return []
    sets = getattr(data, "label_sets", None) or [(index,) for index in range(len(data.labels))]
    rows = []
    for name, samples in listed.items():
        found = splits[name].labels if len(samples) else ()
        for label, described in zip(found, _describe(samples, path), strict=True):
            members = np.flatnonzero(label) if np.ndim(label) else sets[label]
            names = SEVERAL.join(data.labels[i] for i in members)
            rows.append(Sample(name, as_plain_cell(names), *described))
    return rows


def _list_images(name):
    """Returns what a run records of images by name: paths as bytes, or stored pixels."""
    path = find_path(name)
    if holds_files(name):
        return [file for part in list_splits(path)[1].values() for file, _ in part]
    if name == "digits" or not is_packed(path):
        return []
    return [sample for split in load_packed(path).splits().values() for sample in split.sources]


def _list_texts(source):
    """Returns the texts of a `TextSource`; none of a set by name, which runs do not record."""
    return source.contents[0].texts if source.path.exists() else []


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
