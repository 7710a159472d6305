"""Labelled texts in files: CSV, TSV, JSON lines, and folders of text files by class."""

import json
from pathlib import Path

from keras_gmlp.data.text.names import did_you_mean
from keras_gmlp.utils.files import walk_readable
from keras_gmlp.utils.tables import TABLES, read_rows, read_text

PAIRS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("sentence_a", "sentence_b"),
    ("query", "passage"),
)

TEXTS = (
    "text", "sentence", "review", "review_text", "reviewtext", "content", "comment",
    "comment_text", "message", "tweet", "utterance", "query", "question", "body", "document",
    "description", "headline", "title",
)  # fmt: skip

LABELS = (
    "label", "labels", "class", "target", "category", "sentiment", "intent", "emotion",
    "polarity", "rating", "stars", "score", "topic", "y",
)  # fmt: skip

JSON_FILES = (".jsonl", ".ndjson", ".json")
SUFFIXES = (*TABLES, *JSON_FILES)
UNLABELLED = "unsup"  # the folder for texts without a class in the film reviews of Maas et al.


def read_table(path, text=None, label=None):
    """Reads the texts and labels of a CSV, TSV, JSON lines or JSON file."""
    suffix = path.suffix.lower()
    if suffix in TABLES:
        names, rows = read_rows(path)
    else:
        names, rows = _read_objects(path, read_text(path), suffix)
    if not rows:
        raise ValueError(f"{path}: no rows; expected one for each text.")
    texts, label = choose_columns(names, text, label, path)
    found, labels = [], []
    for place, row in rows:
        values = [_as_text(row.get(name)) for name in (*texts, label)]
        for name, value in zip((*texts, label), values, strict=True):
            if not value.strip():
                raise ValueError(f"{path}, {place}: {name} is empty; fill it or remove the row.")
        found.append(values[0] if len(texts) == 1 else tuple(values[:-1]))
        labels.append(values[-1].strip())
    if len(labels) >= 20 and len(set(labels)) > len(labels) // 2:
        raise ValueError(
            f"{path}: column {label!r} has {len(set(labels)):,} classes in {len(labels):,} rows; "
            "name the column of the labels."
        )
    return found, labels


def choose_columns(names, text=None, label=None, place=""):
    """Returns the columns of the text, a tuple of one or two names, and that of the label."""
    text = (text,) if isinstance(text, str) else tuple(text or ())
    if len(text) > 2:
        raise ValueError(f"expected one column of texts or two of pairs; received {len(text)}.")
    for name in (*text, *([label] if label else [])):
        if name not in names:
            hint = did_you_mean(name, names)
            raise ValueError(f"{place}: no column {name!r}; it has {', '.join(names)}.{hint}")
    by_lower = {name.lower(): name for name in reversed(names)}
    label = label or next(
        (by_lower[n] for n in LABELS if n in by_lower and by_lower[n] not in text), None
    )
    free = {lower: name for lower, name in by_lower.items() if name != label}
    if not text:
        pair = next((pair for pair in PAIRS if set(pair) <= set(free)), None)
        single = next((name for name in TEXTS if name in free), None)
        rest = list(free) if len(free) == 1 and label else []
        text = tuple(free[name] for name in pair or ([single] if single else rest))
    if not label and len(names) - len(text) == 1:
        (label,) = set(names) - set(text)
    if not text or not label:
        missing = "texts" if not text else "labels"
        raise ValueError(
            f"{place}: no column is known to hold the {missing} among {', '.join(names)}; name it."
        )
    return text, label


def read_folder(root):
    """Reads a folder with one folder of `.txt` files for each class."""
    texts, labels = [], []
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        if folder.name.startswith(".") or folder.name == UNLABELLED:
            continue
        paths = (Path(place, name) for place, _, names in walk_readable(folder) for name in names)
        for path in sorted(path for path in paths if path.suffix == ".txt"):
            text = read_text(path)
            if not text.strip():
                raise ValueError(f"{path}: empty; expected a text. Remove it.")
            texts.append(text)
            labels.append(folder.name)
    if not texts:
        raise ValueError(
            f"{root}: no texts; lay them out as {root}/<class name>/<text>.txt, or give a CSV, "
            "TSV or JSON lines file."
        )
    return texts, labels


def _read_objects(path, content, suffix):
    """Returns the names of the members and (place, dictionary) for each object of a JSON file."""
    try:
        if suffix == ".json":
            objects = json.loads(content)
            rows = [(f"entry {number}", entry) for number, entry in enumerate(objects, 1)]
        else:
            lines = enumerate(content.split("\n"), 1)
            rows = [(f"line {n}", json.loads(line)) for n, line in lines if line.strip()]
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{path}: damaged or not JSON{' lines' * (suffix != '.json')} ({error})."
        ) from None
    for place, row in rows:
        if not isinstance(row, dict):
            raise ValueError(
                f"{path}, {place}: expected an object such as "
                f'{{"text": "...", "label": "..."}}; received {type(row).__name__}.'
            )
    names = dict.fromkeys(name for _, row in rows for name in row)
    return list(names), rows


def _as_text(value):
    """Returns a value of a table or a JSON file as text."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value)
