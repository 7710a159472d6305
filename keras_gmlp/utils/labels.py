"""Class names: checks and files."""

import re
import unicodedata

# Soft hyphen, zero-width space, marks of direction, word joiner, byte order mark. Joiners count:
# they change how a word looks.
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]")
SEVERAL = "|"  # between several labels of a sample in a table
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def is_label(name):
    """Returns whether labels.txt can hold a class name: one line of text, in UTF-8."""
    return (
        isinstance(name, str)
        and name.splitlines() == [name]
        and not re.search(r"[\ud800-\udfff]", name)  # bytes of a file name that are not text
        and not _CONTROL.search(name)
        and clean_label(name) != ""
    )


def clean_label(name):
    """Returns a class name in NFC, without invisible characters and the space around it."""
    return unicodedata.normalize("NFC", _INVISIBLE.sub("", name)).strip()


def clean_value(text):
    """Returns the class name of a field of a table: 1.0, as spreadsheets write it, is 1."""
    return re.sub(r"^([+-]?[0-9]+)\.0*$", r"\1", clean_label(text))


def clean_values(names):
    """Returns the sorted class names of the fields of a sample; one that is missing is `""`."""
    cleaned = map(clean_value, names)
    return tuple(sorted({"" if name.lower() == "nan" else name for name in cleaned}))


def check_labels(labels, source):
    """Raises a `ValueError` of one line if labels.txt cannot hold a class name."""
    for label in labels:
        if not is_label(label):
            raise ValueError(
                f"{source}: labels.txt cannot hold the class name {label!r}; expected one line of "
                "text. Rename the class."
            )


def show_labels(labels):
    """Returns class names with spaces for underscores, unless two would become the same."""
    shown = [label.replace("_", " ") for label in labels]
    return shown if len(set(shown)) == len(set(labels)) else list(labels)
