"""Labelled texts and pairs of texts, by name: GLUE, files of the user, folders by class."""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_gmlp.data import tfds
from keras_gmlp.data.dividing import divide
from keras_gmlp.data.label_sets import find_rarest, make_rows
from keras_gmlp.data.text.labelled_files import SUFFIXES, choose_columns, read_all_rows
from keras_gmlp.data.text.tokenizer import Tokenizer, encode_rows
from keras_gmlp.utils.errors import require_one_of
from keras_gmlp.utils.files import why_missing
from keras_gmlp.utils.inputs import SPLITS, find_roles, read_split
from keras_gmlp.utils.labels import check_labels

SHORT_NAMES = {name: f"glue/{name}" for name in ("cola", "mrpc", "qqp", "qnli", "rte", "sst2")}
SHARE = 0.2  # of the texts that are held out if nothing else is marked for testing
PARTS = ("train", "test", "validation")


@dataclasses.dataclass(frozen=True)
class TextSplit:
    """Texts, or pairs of texts, and their classes."""

    texts: list  # of strings, or of pairs of strings
    labels: np.ndarray  # int32 class indices, or of several labels rows of 0 and 1

    def __post_init__(self):
        object.__setattr__(self, "labels", np.asarray(self.labels, "int32"))

    def __len__(self):
        return len(self.texts)

    @property
    def pairs(self):
        """Whether the texts are pairs."""
        return bool(self.texts) and not isinstance(self.texts[0], str)

    @property
    def several(self):
        """Whether each text has any number of labels."""
        return self.labels.ndim == 2

    @property
    def classes(self):
        """The classes that some text has."""
        return np.flatnonzero(self.labels.any(axis=0)) if self.several else np.unique(self.labels)

    def take(self, places):
        """Returns the texts at the places."""
        return TextSplit([self.texts[place] for place in places], self.labels[list(places)])


@dataclasses.dataclass(frozen=True, eq=False)
class TextData:
    """Labelled texts, or pairs of texts, for training and testing."""

    name: str
    labels: tuple[str, ...]
    train: TextSplit
    test: TextSplit
    validation: TextSplit | None = None  # is tested after each epoch, in place of `test`
    tokenizer: Tokenizer | None = None  # encodes the texts for a model

    def __post_init__(self):
        check_labels(self.labels, self.name)

    @property
    def pairs(self):
        """Whether the texts are pairs."""
        return self.train.pairs

    @functools.cache  # noqa: B019 (a run holds one such object)
    def encode(self, split, length):
        """Returns the token ids, int32 `(texts, length)`, and the class indices of a split."""
        part = getattr(self, split)
        return encode_rows(self.tokenizer, part.texts, length), part.labels


@dataclasses.dataclass
class TextSource:
    """Labelled texts by name, and how they are read and divided."""

    name: str
    columns: dict | None = None  # arguments of `load_text`
    held_out: float = 0.0  # share of the training samples to test on instead of the test samples
    data_dir: str | None = None  # folder of TFDS; see `data.load`
    validation: float = 0.0  # share of the training samples that is tested after each epoch
    roles: list | None = None  # the part of each text as a run recorded it: one of `PARTS` or None

    @property
    def path(self):
        return Path(os.path.expanduser(self.name))

    @functools.cached_property
    def contents(self):
        """All texts, a `TextSplit`, the names of their classes, and the split of each."""
        return _read_all(self.name, data_dir=self.data_dir, **(self.columns or {}))


def load_text(
    name: str | Path,
    text: str | Sequence[str] | None = None,
    label: str | None = None,
    test: str | Path | None = None,
    seed: int = 0,
    data_dir: str | Path | None = None,
) -> TextData:
    """Opens labelled texts.

    Args:
        name: One of

            - a set in TensorFlow Datasets with a text, or two, and a class:
              `"glue/sst2"`, `"glue/mrpc"`, `"glue/cola"`, in short `"sst2"`. GLUE's test labels
              are not public; its validation split is the test split here.
            - a `.csv`, `.tsv` or `.jsonl` file. A column `split` with train and test, and perhaps
              validation, divides it. With `|` between labels, a list of them in JSON, or a column
              `labels`, each text has any number of labels.
            - a folder with one folder of `.txt` files for each class, or `train` and `test` (or
              `val`) folders or files of these kinds.
        text: Column of the texts, or two columns of pairs. Defaults to `"text"`, and of a prepared
            set to all of its texts.
        label: Column of the labels. Defaults to `"label"`, or `"labels"`.
        test: File or folder of the test texts. Without one a fifth of each class is held out,
            with equal texts on the same side.
        seed: Seed of this split.
        data_dir: The folder of TFDS. Defaults to `$TFDS_DATA_DIR`.

    Returns:
        An object with the names of the classes, `labels`, and the texts `train`, `test` and
        `validation`, or `None`; each has `texts` and `labels`, int32 class indices, or of several
        labels rows of 0 and 1, `(texts, classes)`. The classes are in the order of their names;
        numbers in that of their values.

    Raises:
        ValueError: If there is no such set, file or column, a file is not UTF-8, all texts have
            one class, or `labels.txt` cannot hold a class name. One line.
    """
    return _divide(name, *_read_all(name, text, label, test, data_dir), seed)


def hold_out(data, share=0.1, seed=0):
    """Holds a share of each class, of several labels the rarest, out for validation."""
    if data.validation is not None:
        raise ValueError(f"{data.name}: has validation texts already; hold out none.")
    classes = data.train.labels
    if data.train.several:
        sets = [*map(np.flatnonzero, classes)]
        classes = find_rarest(np.arange(len(sets)), sets, len(data.labels))
    kept, cut = map(data.train.take, divide(data.train.texts, classes, share, seed))
    _require_trained(data.name, data.labels, kept, cut)
    return dataclasses.replace(data, train=kept, validation=cut)


def _hold_out_test(data, share, seed=0):
    """Holds a share of the training texts out in place of the test texts."""
    held = hold_out(dataclasses.replace(data, validation=None), share, seed)
    return dataclasses.replace(held, test=held.validation, validation=data.validation)


def _require_trained(name, labels, train, others):
    """Raises a `ValueError` if other texts have a class that no training text has."""
    if len(unknown := np.setdiff1d(others.classes, train.classes)):
        raise ValueError(
            f"{name}: no training text has the class {labels[unknown[0]]}, but others have it."
        )


def name_columns(column=None, label=None, test=None):
    """Returns options of the programs as arguments of `load_text`, a dict of those that are set."""
    columns = {"text": column or None, "label": label, "test": test}
    return {name: value for name, value in columns.items() if value is not None}


def open_texts(source):
    """Returns the `TextData` of a `TextSource`."""
    if source.roles is not None:
        texts, labels, _ = source.contents
        return TextData(source.name, labels, **_take_parts(texts, source.roles))
    data = _divide(source.name, *source.contents)
    if source.held_out:
        data = _hold_out_test(data, source.held_out)
    return hold_out(data, source.validation) if source.validation else data


def choose_texts(source, split=None):
    """Returns the texts to evaluate a classifier on, the names of their classes and the split.

    Without a split, these are the test texts, or all texts if none are marked for testing.
    """
    require_one_of("split", split, (None, *PARTS, "all"))
    texts, labels, splits = source.contents
    marked = source.held_out or source.roles is not None or len(set(splits)) > 1
    split = split or ("test" if marked else "all")
    if split == "all":
        return texts, labels, split
    chosen = getattr(open_texts(source), split)
    if not chosen:
        raise ValueError(f"{source.name}: has no texts of the split {split}; see --split.")
    return chosen, labels, split


def _read_all(name, text=None, label=None, test=None, data_dir=None):
    path = Path(os.path.expanduser(name))
    if not path.exists():
        return _read_prepared(str(name), text, label, data_dir)
    rows = read_all_rows(path, text, label, test)
    labels = sorted({label for row in rows for label in row.labels})
    with contextlib.suppress(ValueError):  # not all are numbers
        labels.sort(key=float)
    index = {label: place for place, label in enumerate(labels)}
    indices = [[index[label] for label in row.labels] for row in rows]
    several = any(row.several for row in rows)
    indices = make_rows(indices, len(labels)) if several else np.ravel(indices)
    texts = TextSplit([row.text for row in rows], indices)
    return texts, tuple(labels), [row.split for row in rows]


def _divide(name, texts, labels, splits, seed=0):
    """Returns the `TextData` of texts by the split of each, or with test texts that are drawn."""
    roles = find_roles(set(splits), name) if any(splits) else {None: "train"}
    parts = _take_parts(texts, map(roles.get, splits))
    if len(labels) < 2:
        found = f"one class only, {labels[0]}" if labels else "no labels"
        raise ValueError(f"{name}: {found}; expected two or more classes.")
    _require_trained(name, labels, parts["train"], texts)
    data = TextData(str(name), labels, **parts)
    if not data.test:
        data = _hold_out_test(data, SHARE, seed)
    if not data.test:
        raise ValueError(
            f"{name}: no class has two different texts, of which one would be held out."
        )
    return data


def _take_parts(texts, roles):
    """Returns the texts of each role, `TextSplit`s by name; texts of no role are left out."""
    places = {name: [] for name in PARTS}
    for place, role in enumerate(roles):
        places.get(role, []).append(place)
    parts = {name: texts.take(found) for name, found in places.items()}
    return {**parts, "validation": parts["validation"] or None}


def _read_prepared(name, text, label, data_dir):
    """Returns for a prepared set the `TextSource.contents`."""
    if name.lower().endswith(SUFFIXES) or name.startswith((".", "/", "~")):
        raise ValueError(f"{name}: {why_missing(name)}.")

    def choose(features):
        names = sorted(n for n, feature in features.items() if type(feature).__name__ == "Text")
        classes = {n: f for n, f in features.items() if hasattr(f, "num_classes")}
        texts, of = choose_columns(
            [*names, *classes], text or names, label or next(iter(classes), None), name
        )
        if of not in classes:
            raise ValueError(f"{name!r}: {of} is not a class; expected {', '.join(classes)}.")
        return texts, of, classes[of].names

    builder = tfds.open_set(SHORT_NAMES.get(name, name), data_dir, "a file, nor a folder", choose)
    columns, label, names = choose(builder.info.features)
    # Of MNLI, for example, the first word says it: validation_matched.
    found = [(read_split(name.partition("_")[0]), name) for name in sorted(builder.info.splits)]
    held_out = [n for split in SPLITS if split != "train" for s, n in found if s == split]
    tested = tfds.choose_test(builder, held_out, label)
    texts, indices, splits = [], [], []
    for split, role in (("train", "train"), (tested, "test")) if tested else (("train", None),):
        for sample in tfds.read_split(builder, split).as_numpy_iterator():
            pair = tuple(str(sample[name], "utf-8") for name in columns)
            texts.append(pair if len(pair) == 2 else pair[0])
            indices.append(sample[label])
            splits.append(role)
    return TextSplit(texts, indices), tuple(names), splits
