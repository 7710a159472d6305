"""Labelled texts and pairs of texts, by name: GLUE, files of the user, folders by class."""

import contextlib
import dataclasses
import functools
import os
from collections import Counter
from pathlib import Path

import numpy as np

from keras_gmlp.data import tfds
from keras_gmlp.data.dividing import divide, divide_whole
from keras_gmlp.data.text.labelled_files import SUFFIXES, choose_columns, read_all_rows
from keras_gmlp.data.text.tokenizer import Tokenizer, encode_rows
from keras_gmlp.utils.errors import printable, warn
from keras_gmlp.utils.files import missing_file
from keras_gmlp.utils.inputs import SPLITS, name_roles, read_split
from keras_gmlp.utils.labels import check_labels

SHORT_NAMES = {name: f"glue/{name}" for name in ("cola", "mrpc", "qqp", "qnli", "rte", "sst2")}
SHARE = 0.2  # of the texts that are held out if nothing else is marked for testing


@dataclasses.dataclass(frozen=True)
class TextSplit:
    """Texts and their classes.

    Attributes:
        texts: List of strings, or of pairs of strings.
        labels: int32 class indices `(texts,)`.
    """

    texts: list
    labels: np.ndarray

    def __post_init__(self):
        object.__setattr__(self, "labels", np.asarray(self.labels, "int32"))

    def __len__(self):
        return len(self.texts)

    @property
    def pairs(self):
        """Whether the texts are pairs."""
        return bool(self.texts) and not isinstance(self.texts[0], str)

    def take(self, places):
        """Returns the texts at the places, or the first ones for a number."""
        places = range(min(places, len(self))) if isinstance(places, int) else places
        return TextSplit([self.texts[place] for place in places], self.labels[list(places)])


@dataclasses.dataclass(frozen=True, eq=False)
class TextData:
    """Labelled texts, or pairs of texts, for training and testing.

    Attributes:
        name: Name in TFDS, or a path.
        labels: Class names, in the order of their indices.
        train, test: `TextSplit`.
        validation: `TextSplit` that training tests after each epoch, in place of `test`; `None`
            for none.
        tokenizer: `Tokenizer` that encodes the texts for a model; `None` for none.

    Raises:
        ValueError: If `labels.txt` cannot hold a class name. One line.
    """

    name: str
    labels: tuple[str, ...]
    train: TextSplit
    test: TextSplit
    validation: TextSplit | None = None
    tokenizer: Tokenizer | None = None

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
        return encode_rows(self.tokenizer, part.texts, length)[0], part.labels


def load_text(name, text=None, label=None, test=None, seed=0, data_dir=None):
    """Opens labelled texts.

    Args:
        name: One of

            - a set in TensorFlow Datasets with a text, or two, and a class:
              `"glue/sst2"`, `"glue/mrpc"`, `"glue/cola"`, in short `"sst2"`. GLUE's test labels
              are not public; its validation split is the test split here.
            - a `.csv`, `.tsv` or `.jsonl` file. A column `split` with train and test divides it.
            - a folder with one folder of `.txt` files for each class, or `train` and `test` (or
              `val`) folders or files of these kinds.
        text: Column of the texts, or two columns of pairs. Defaults to `"text"`, and of a prepared
            set to all of its texts.
        label: Column of the labels. Defaults to `"label"`.
        test: File or folder of the test texts. Without one a fifth of each class is held out,
            with equal texts on the same side.
        seed: Seed of this split.
        data_dir: The folder of TFDS. Defaults to `$TFDS_DATA_DIR`.

    Returns:
        A `TextData`. The classes are in the order of their names; numbers in that of their values.

    Raises:
        ValueError: If there is no such set, file or column, a file is not UTF-8, all texts have
            one class, or `labels.txt` cannot hold a class name. One line.
    """
    path = Path(os.path.expanduser(name))
    if path.exists():
        rows = read_all_rows(path, text, label, test)
        classes, train, tested = divide_rows(name, rows)
    else:
        classes, train, tested = _read_prepared(str(name), text, label, data_dir)
    if tested is None:
        train, tested = map(train.take, divide(train.texts, train.labels, SHARE, seed))
    if tested.texts and tested.pairs != train.pairs:
        raise ValueError(f"{name}: pairs in one split and single texts in the other.")
    return TextData(str(name), tuple(classes), train, tested)


def hold_out(data, share=0.1, seed=0, whole=False):
    """Holds a share of the training texts out for validation.

    Args:
        data: A `TextData` without validation texts.
        share: Share of each class that is cut off, in (0, 1). Equal texts stay together.
        seed: Seed of the choice.
        whole: Whether to cut whole texts off alone, and to leave their parts out of the training
            texts. Of SST-2's training texts 90 % are phrases of other ones: a random tenth is far
            easier than the test texts, which are whole sentences.

    Returns:
        A `TextData` with fewer training texts, and `validation`.

    Raises:
        ValueError: If `data` has validation texts, `share` is outside (0, 1), or texts are pairs
            and `whole` is true.
    """
    if data.validation is not None:
        raise ValueError(f"{data.name}: has validation texts already; hold out none.")
    if whole and data.pairs:
        raise ValueError("whole=True expects single texts; received pairs.")
    choose = divide_whole if whole else divide
    kept, cut = choose(data.train.texts, data.train.labels, share, seed)
    return dataclasses.replace(data, train=data.train.take(kept), validation=data.train.take(cut))


def divide_rows(name, rows):
    """Returns the class names, the training texts, and the test texts or `None`."""
    splits = {row.split for row in rows}
    roles = {None: "train"} if splits == {None} else name_roles(splits, name)
    parts = {role: [row for row in rows if row.split == split] for split, role in roles.items()}
    if left_out := parts.pop("validation", None):
        warn(
            f"{printable(name)}: texts left out, of the split validation: {len(left_out):,}. "
            "--validation holds out training texts."
        )
    counts = Counter(row.label for row in parts["train"])
    classes = sort_classes(counts)
    if len(classes) < 2:
        raise ValueError(f"{name}: one class only, {classes[0]}; expected two or more.")
    if unknown := {row.label for row in parts.get("test", ())} - set(classes):
        raise ValueError(
            f"{name}: the test texts have the class {min(unknown)}, the training texts do not; "
            f"they have {', '.join(classes)}."
        )
    if "test" not in parts and min(counts.values()) < 2:
        label = printable(min(counts, key=counts.get))
        raise ValueError(
            f"{name}: class {label} has one text; expected two or more, one of them for testing."
        )
    test = number_rows(parts["test"], classes) if "test" in parts else None
    return classes, number_rows(parts["train"], classes), test


def number_rows(rows, classes):
    """Returns the `TextSplit` of rows."""
    index = {label: place for place, label in enumerate(classes)}
    return TextSplit([row.text for row in rows], [index[row.label] for row in rows])


def sort_classes(labels):
    """Returns the names of the classes, a list in order; numbers in that of their values."""
    classes = sorted(set(labels))
    with contextlib.suppress(ValueError):  # not all are numbers
        classes.sort(key=float)
    return classes


def _read_prepared(name, text, label, data_dir):
    """Returns the classes, the training texts and the test texts, if any, of a prepared set."""
    if name.lower().endswith(SUFFIXES) or name.startswith((".", "/", "~")):
        raise ValueError(missing_file(name))
    chosen = []

    def check(features):
        names = sorted(n for n, feature in features.items() if type(feature).__name__ == "Text")
        classes = {n: f for n, f in features.items() if hasattr(f, "num_classes")}
        if not (names and classes):
            raise ValueError(
                f"{name!r}: expected the features text and label; the set has "
                f"{', '.join(features)}."
            )
        texts, of = choose_columns(
            [*names, *classes], text or names, label or next(iter(classes)), name
        )
        if of not in classes:
            raise ValueError(f"{name!r}: {of} is not a class; expected {', '.join(classes)}.")
        chosen.extend((texts, of, classes[of].names))

    builder = tfds.open_set(SHORT_NAMES.get(name, name), data_dir, "a file, nor a folder", check)
    texts, label, names = chosen
    # Of MNLI, for example, the first word says it: validation_matched.
    found = [(read_split(name.partition("_")[0]), name) for name in sorted(builder.info.splits)]
    held_out = [n for split in SPLITS if split != "train" for s, n in found if s == split]
    tested = tfds.choose_test(builder, held_out, label)
    train, test = (s and _read_split(builder, texts, label, s) for s in ("train", tested))
    return names, train, test


def _read_split(builder, texts, label, split):
    found, labels = [], []
    for sample in tfds.read_split(builder, split).as_numpy_iterator():
        parts = tuple(str(sample[name], "utf-8") for name in texts)
        found.append(parts if len(parts) == 2 else parts[0])
        labels.append(sample[label])
    return TextSplit(found, labels)
