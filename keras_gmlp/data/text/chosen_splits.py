"""The parts of labelled texts that a model trains on and is tested on."""

import dataclasses
import os
from pathlib import Path

import numpy as np

from keras_gmlp.data.text.labelled_texts import (
    TextData,
    TextSplit,
    find_parts,
    hold_out,
    load_text,
    read_alike,
    read_texts,
    sort_classes,
)

SPLITS = ("test", "train", "validation", "all")


def name_columns(column=None, label=None, test=None):
    """Returns options of the programs as arguments of `load_text`, a dict of those that are set."""
    text = column[0] if column and len(column) == 1 else column
    columns = {"text": text or None, "label": label, "test": test}
    return {name: value for name, value in columns.items() if value is not None}


@dataclasses.dataclass(frozen=True)
class TextSource:
    """Labelled texts by name, and how they are read and divided."""

    name: str
    columns: dict | None = None  # arguments of `load_text`
    held_out: float = 0.0  # share of the training samples to test on instead of the test samples
    data_dir: str | None = None  # folder of TFDS; see `data.load`
    validation: float = 0.0  # share of the training samples that is tested after each epoch
    roles: dict | None = None  # the split by the place of a text, as a run recorded it
    read: tuple | None = None  # what `read_all` found, if it has read them

    @property
    def path(self):
        return Path(os.path.expanduser(self.name))

    def load(self):
        """Returns what `load_text` reads."""
        return load_text(self.name, data_dir=self.data_dir, **(self.columns or {}))

    def decide(self, split):
        """Returns the split to evaluate on, or the default of one's own data."""
        if split not in (None, *SPLITS):
            raise ValueError(f"split is {split!r}; expected {', '.join(SPLITS)}.")
        if split is not None:
            return split
        marked = "test" in (self.columns or {}) or self.held_out or self.roles is not None
        return "test" if marked or not self.path.exists() or all(find_parts(self.path)) else "all"

    def require(self, samples, split):
        """Returns the samples of a split, if there are some."""
        if len(samples):
            return samples
        raise ValueError(f"{self.name}: the split {split} is empty; give another one (--split).")


def open_texts(source):
    """Returns a `TextData`, with parts of the training texts for testing if asked."""
    if source.roles is not None:
        texts, labels, _ = read_all(source)
        places = {name: [] for name in ("train", "test", "validation")}
        for place in range(len(texts)):
            places.get(source.roles.get(place), []).append(place)
        parts = {name: texts.take(found) for name, found in places.items()}
        return TextData(source.name, labels, **{**parts, "validation": parts["validation"] or None})
    texts = source.load()
    # Most training texts of SST-2 are phrases of other ones.
    whole = source.name in ("sst2", "glue/sst2")
    if source.held_out:
        held = hold_out(texts, source.held_out, whole=whole)
        texts = dataclasses.replace(held, test=held.validation, validation=None)
    return hold_out(texts, source.validation, whole=whole) if source.validation else texts


def choose_texts(source, split=None):
    """Returns the texts to evaluate a classifier on, the names of their classes and the split."""
    asked, split = split, source.decide(split)
    if split == "all" and source.path.exists():
        texts, names, divided = read_all(source)
        if asked is not None or not divided:
            return source.require(texts, split), names, split
        split = "test"  # of a table with test texts
    data = source.load() if split == "all" else open_texts(source)
    parts = [data.train, data.test] if split == "all" else [getattr(data, split)]
    if parts == [None]:
        raise ValueError(f"{source.name}: no validation texts; train with --validation 0.1.")
    texts = [text for part in parts for text in part.texts]
    found = TextSplit(texts, np.concatenate([part.labels for part in parts]))
    return source.require(found, split), data.labels, split


def read_all(source):
    """Returns all texts, the names of their classes, and whether the file or folder has splits."""
    if source.read is not None:
        return source.read
    named = dict(source.columns or {})
    test = named.pop("test", None)
    first, second = (source.path, test) if test else find_parts(source.path, report=True)
    parts = [read_texts(first, **named)]
    parts += [read_alike(parts[0], Path(os.path.expanduser(second)), **named)] if second else []
    texts = [text for part in parts for text in part.texts]
    labels = [label for part in parts for label in part.labels]
    names = sort_classes(labels)
    index = {name: place for place, name in enumerate(names)}
    return TextSplit(texts, [index[label] for label in labels]), tuple(names), parts[0].divided
