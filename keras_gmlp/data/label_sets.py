"""Several labels per image: each image has the index of a set of classes, as others of a class."""

import numpy as np


def make_rows(label_sets, classes):
    """Returns a row for each set, with 1 for its classes and 0 for others.

    Args:
        label_sets: Tuples of class indices.
        classes: Number of classes.

    Returns:
        float32 array `(sets, classes)`.

    Example:
        >>> make_rows([(), (0, 2)], 3).tolist()
        [[0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]
    """
    rows = np.zeros((len(label_sets), classes), "float32")
    for row, members in zip(rows, label_sets, strict=True):
        row[list(members)] = 1
    return rows


def find_rarest(indices, rows):
    """Finds the class of each image that the fewest images have.

    Images are divided by it, so that rare classes are in both parts; a frequent one may be absent
    from one of two small parts.

    Args:
        indices: Index of each image's set, `(images,)`.
        rows: Array that `make_rows` returns.

    Returns:
        int64 class indices `(images,)`; for images without a class the number of classes.

    Example:
        >>> find_rarest([0, 1, 2], make_rows([(), (0, 1), (0,)], 2)).tolist()
        [2, 1, 0]
    """
    counts = np.bincount(indices, minlength=len(rows)) @ rows
    order = np.argsort(counts, kind="stable")
    rarest = order[np.argmax(rows[:, order], axis=1)]
    return np.where(rows.any(axis=1), rarest, rows.shape[1])[indices]
