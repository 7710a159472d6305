"""Labelled texts and pairs of texts, by name: GLUE, files of the user, folders by class."""

import contextlib
import dataclasses
import os
from collections import Counter
from pathlib import Path

import numpy as np

from keras_gmlp.data import tfds
from keras_gmlp.data.dividing import divide, divide_whole
from keras_gmlp.data.text.labelled_files import (
    SUFFIXES,
    choose_columns,
    read_folder,
    read_table,
    warn_outside,
)
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.files import missing_file
from keras_gmlp.utils.inputs import (
    SPLITS,
    find_splits,
    list_suffix,
    list_visible_files,
    list_visible_folders,
    read_split,
    warn_left_out,
    warn_of_nested,
)
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


@dataclasses.dataclass(frozen=True)
class TextData:
    """Labelled texts, or pairs of texts, for training and testing.

    Attributes:
        name: Name in TFDS, or a path.
        labels: Class names, in the order of their indices.
        train, test: `TextSplit`.
        validation: `TextSplit` that training tests after each epoch, in place of `test`; `None`
            for none.

    Raises:
        ValueError: If `labels.txt` cannot hold a class name. One line.
    """

    name: str
    labels: tuple[str, ...]
    train: TextSplit
    test: TextSplit
    validation: TextSplit | None = None

    def __post_init__(self):
        check_labels(self.labels, self.name)

    @property
    def pairs(self):
        """Whether the texts are pairs."""
        return self.train.pairs


def load_text(name, text=None, label=None, test=None, seed=0, data_dir=None):
    """Opens labelled texts.

    Args:
        name: One of

            - a set in TensorFlow Datasets with a text, or two, and a class:
              `"glue/sst2"`, `"glue/mrpc"`, `"glue/cola"`, in short `"sst2"`. GLUE's test labels
              are not public; its validation split is the test split here.
            - a `.csv`, `.tsv` or `.jsonl` file; see `read_table`. A column `split` with train and
              test divides it.
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
    if not str(name) or not path.exists():
        classes, train, tested = _read_prepared(str(name), text, label, data_dir)
    else:
        place, held_out = (path, test) if test else find_parts(path, report=True)
        rows, tested = read_texts(place, text, label), None
        if held_out:
            if rows.divided:
                raise ValueError(
                    f"{place}: its column split names {', '.join(sorted(set(rows.splits)))}, and "
                    f"{held_out} holds test texts, too. Leave these out, or rename the column."
                )
            tested = read_alike(rows, Path(os.path.expanduser(held_out)), text, label)
            if "test" in (tested.splits or ()):
                tested = tested.take("test")
        elif rows.splits:
            rows, tested = rows.divide(name)
        classes, train, tested = _number_classes(name, rows, tested)
    if tested is None:
        train, tested = map(train.take, divide(train.texts, train.labels, SHARE, seed))
    if tested.texts and tested.pairs != train.pairs:
        raise ValueError(f"{name}: pairs in one split and single texts in the other.")
    return TextData(str(name), classes, train, tested)


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


def find_parts(path, report=False):
    """Returns the paths of training and test texts in a place; reports what may be wrong in it."""
    if not path.is_dir():
        return path, None
    folders = list_visible_folders(path)
    splits = find_splits(path, folders, list_visible_folders)
    if splits and report:  # each split names what it leaves out itself
        others = [folder for folder in folders if folder not in splits.values()]
        outside = [file for each in others for file in list_visible_files(each)]
        warn_outside(path, [*list_suffix(path, (".txt",)), *outside])
    if not splits:
        files = list_suffix(path, SUFFIXES)
        splits = find_splits(path, files, lambda _: True)
        if report and set(splits) == {"train"}:  # with test texts, other files may be of a contest
            others = [file for file in files if file != splits["train"]]
            warn_left_out(path, others, "whose names are not a split's")
        if report and not splits:
            warn_of_nested(path, folders, list_visible_folders)
    return splits.get("train", path), splits.get("test")


def read_texts(path, text=None, label=None):
    """Returns the `LabelledRows` of a file, or of a folder by class."""
    if path.is_dir():
        if text or label:
            raise ValueError(f"{path}: a folder has no columns; leave text and label out.")
        return read_folder(path)
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path}: expected a folder or a file in {', '.join(SUFFIXES)}.")
    return read_table(path, text, label)


def read_alike(rows, path, text=None, label=None):
    """Returns the `LabelledRows` of test texts, from the columns of the training texts."""
    if path.suffix.lower() in SUFFIXES and path.is_file():
        text, label = text or rows.columns[0], label or rows.columns[1]
    return read_texts(path, text=text, label=label)


def sort_classes(labels):
    """Returns the names of the classes, a list in order; numbers in that of their values."""
    classes = sorted(set(labels))
    with contextlib.suppress(ValueError):  # not all are numbers
        classes.sort(key=float)
    return classes


def _number_classes(name, rows, tested):
    """Returns the classes of `LabelledRows`, and a `TextSplit` of them and of tested ones."""
    classes = sort_classes(rows.labels)
    if len(classes) < 2:
        raise ValueError(
            f"{name}: one class only, {classes[0]}; expected two or more to choose between."
        )
    if tested is not None and (unknown := sorted(set(tested.labels) - set(classes))):
        raise ValueError(
            f"{name}: the test texts have the class {unknown[0]}, the training texts do not; they "
            f"have {', '.join(classes)}."
        )
    few = [label for label, count in Counter(rows.labels).items() if count < 2]
    if tested is None and few:
        raise ValueError(
            f"{name}: class {printable(few[0])} has one text; expected two or more, one of them "
            "for testing. Add texts or give a test file."
        )
    index = {label: place for place, label in enumerate(classes)}
    train, test = (
        part and TextSplit(part.texts, [index[label] for label in part.labels])
        for part in (rows, tested)
    )
    return tuple(classes), train, test


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
        chosen.extend((texts, of, tuple(classes[of].names)))

    builder = tfds.open_set(SHORT_NAMES.get(name, name), data_dir, "a file, nor a folder", check)
    texts, label, names = chosen
    found = [(read_split(name, loose=True), name) for name in sorted(builder.info.splits)]
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
