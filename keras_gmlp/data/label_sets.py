"""Samples with any number of labels: each has a set of them, and a row of 0 and 1."""

import numpy as np

from keras_gmlp.utils.errors import printable


def refuse_several(name, label_sets):
    """Raises a `ValueError` of one line if images have several labels; see `list_table`."""
    if label_sets is not None:
        raise ValueError(
            f"{printable(name)}: images have any number of labels; expected one each. See 'Several "
            "labels per image' in docs/guides/your-images.md for the programs that take several."
        )


def make_rows(label_sets, classes):
    """Returns a row for each set of classes, 1 for its classes and 0 for others, float32."""
    rows = np.zeros((len(label_sets), classes), "float32")
    for row, members in zip(rows, label_sets, strict=True):
        row[list(members)] = 1
    return rows


def find_rarest(indices, label_sets, classes):
    """Returns each sample's class that the fewest have; without one the number of classes."""
    # Samples are divided by it, so that rare classes are in both parts.
    rows = make_rows(label_sets, classes)
    counts = np.bincount(indices, minlength=len(rows)) @ rows
    order = np.argsort(counts, kind="stable")
    rarest = order[np.argmax(rows[:, order], axis=1)]
    return np.where(rows.any(axis=1), rarest, classes)[indices]
