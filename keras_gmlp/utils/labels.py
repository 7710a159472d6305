"""Class names: checks and files."""

import re


def is_label(name):
    """Returns whether labels.txt can hold a class name: one line of text, in UTF-8."""
    return (
        isinstance(name, str)
        and name.splitlines() == [name]
        and not re.search(r"[\ud800-\udfff]", name)  # bytes of a file name that are no text
    )


def check_labels(labels, source):
    """Raises a `ValueError` of one line if labels.txt cannot hold a class name."""
    for label in labels:
        if not is_label(label):
            raise ValueError(
                f"{source}: labels.txt cannot hold the class name {label!r}; expected one line of "
                "text. Rename the class."
            )


def read_labels(path):
    """Returns the class names in a labels.txt, a list."""
    try:
        return _split_lines(path.read_text("utf-8"))
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not UTF-8; expected a class name on each line.") from None


def _split_lines(text):
    return text.removesuffix("\n").split("\n") if text else []
