"""The parts of labelled texts, or of questions, that a model trains on and is tested on."""

import dataclasses
import itertools
import os
from pathlib import Path

import numpy as np

from keras_gmlp.data.text import sentences, squad
from keras_gmlp.data.text.sentences import TextSplit, hold_out, load_text
from keras_gmlp.data.text.squad import load_squad

SPLITS = ("test", "train", "all")


def open_texts(name, columns=None, held_out=0.0, data_dir=None):
    """Returns a `TextData`, with a part of the training texts for testing if asked."""
    texts = load_text(name, data_dir=data_dir, **(columns or {}))
    if not held_out:
        return texts
    # Most training texts of SST-2 are phrases of other ones.
    held = hold_out(texts, held_out, whole=name in ("sst2", "glue/sst2"))
    return dataclasses.replace(held, test=held.validation, validation=None)


def open_questions(name, columns=None, held_out=0.0, data_dir=None):
    """Returns a `SquadData`, with a part of the training questions for testing if asked."""
    questions = load_squad(name, data_dir=data_dir, **(columns or {}))
    if not held_out:
        return questions
    titles = list(dict.fromkeys(question.title for question in questions.train))
    held = set(titles[round(len(titles) * (1 - held_out)) :])
    kept, cut = ([q for q in questions.train if (q.title in held) == out] for out in (False, True))
    return dataclasses.replace(questions, train=kept, test=cut)


def choose_texts(name, split=None, columns=None, held_out=0.0, data_dir=None):
    """Returns the texts to evaluate a classifier on, the names of their classes and the split."""
    columns, path = columns or {}, Path(os.path.expanduser(name))
    split = _decide(split, path, "test" in columns or held_out, sentences.find_parts)
    if split != "all":
        data = open_texts(name, columns, held_out, data_dir)
        names, found = data.labels, getattr(data, split)
    elif path.exists():
        named = {key: value for key, value in columns.items() if key in ("text", "label")}
        parts = [sentences.read_texts(part, **named) for part in sentences.find_parts(path) if part]
        texts, labels = (list(itertools.chain(*both)) for both in zip(*parts, strict=True))
        names, indices = np.unique(labels, return_inverse=True)
        names, found = tuple(names.tolist()), TextSplit(texts, indices)
    else:
        data = load_text(name, data_dir=data_dir, **columns)
        labels = np.concatenate([data.train.labels, data.test.labels])
        names, found = data.labels, TextSplit([*data.train.texts, *data.test.texts], labels)
    return _some(found, name, split), names, split


def choose_questions(name, split=None, columns=None, held_out=0.0, data_dir=None):
    """Returns the questions to evaluate a model on, and the split; see `choose_texts`."""
    columns, path = columns or {}, Path(os.path.expanduser(name))
    split = _decide(split, path, "test" in columns or held_out, squad.find_parts)
    if split != "all":
        found = getattr(open_questions(name, columns, held_out, data_dir), split)
    elif path.exists():
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        found = [question for file in files for question in squad.read_squad(file)]
    else:
        data = load_squad(name, data_dir=data_dir)
        found = [*data.train, *data.test]
    return _some(found, name, split), split


def _decide(split, path, marked, find_parts):
    """Returns the split, or the default of one's own data."""
    if split not in (None, *SPLITS):
        raise ValueError(f"split is {split!r}; expected {', '.join(SPLITS)}.")
    if split is not None:
        return split
    marked = marked or not path.exists() or all(find_parts(path))
    return "test" if marked else "all"


def _some(samples, name, split):
    if not len(samples):
        raise ValueError(f"{name}: the split {split} is empty; give another one (--split).")
    return samples
