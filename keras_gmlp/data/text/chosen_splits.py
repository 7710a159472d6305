"""The parts of labelled texts that a model trains on and is tested on."""

import dataclasses
import os
from pathlib import Path

import numpy as np

from keras_gmlp.data.text.labelled_files import read_all_rows
from keras_gmlp.data.text.labelled_texts import (
    TextData,
    TextSplit,
    hold_out,
    load_text,
    number_rows,
    sort_classes,
)

SPLITS = ("test", "train", "validation", "all")


def name_columns(column=None, label=None, test=None):
    """Returns options of the programs as arguments of `load_text`, a dict of those that are set."""
    columns = {"text": column or None, "label": label, "test": test}
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
    """Returns the texts to evaluate a classifier on, the names of their classes and the split.

    Without a split, these are the test texts, or all texts of a file that marks none for testing.
    """
    if split not in (None, *SPLITS):
        raise ValueError(f"split is {split!r}; expected {', '.join(SPLITS)}.")
    marked = (source.columns or {}).get("test") or source.held_out or source.roles is not None
    if source.path.exists() and (split == "all" or (split is None and not marked)):
        texts, names, divided = read_all(source)
        if split or not divided:
            return texts, names, "all"
    data = source.load() if split == "all" else open_texts(source)
    split = split or "test"
    parts = [data.train, data.test] if split == "all" else [getattr(data, split)]
    if not any(parts):
        raise ValueError(f"{source.name}: has no texts of the split {split}; see --split.")
    texts = [text for part in parts for text in part.texts]
    return TextSplit(texts, np.concatenate([p.labels for p in parts])), data.labels, split


def read_all(source):
    """Returns all texts, the names of their classes, and whether the file or folder has splits."""
    if source.read is not None:
        return source.read
    rows = read_all_rows(source.path, **(source.columns or {}))
    names = sort_classes(row.label for row in rows)
    return number_rows(rows, names), tuple(names), len({row.split for row in rows}) > 1
