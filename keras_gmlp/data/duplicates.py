"""Images that are in the training and in the test split of a folder."""

import collections
import functools
import os
import time

from keras_gmlp.utils.files import hash_file
from keras_gmlp.utils.progress import ProgressBar

PATIENCE = 20.0  # seconds to search


def find_duplicates(data, patience=PATIENCE):
    """Finds test images whose files are those of training images, by size and digest.

    Args:
        data: An `ImageData`.
        patience: Seconds after which the search ends. In a larger folder it then has compared a
            random part of the training images.

    Returns:
        A dict of paths: of each such test image, and of a training image with the same content.
        Empty for data that are not in files of their own.
    """
    end = time.monotonic() + patience
    train, test = (map(os.fsdecode, getattr(s, "paths", ())) for s in (data.train, data.test))
    by_size = collections.defaultdict(list)
    for path in test:
        by_size[_size(path)].append(path)
    by_size.pop(None, None)
    digest, found = functools.cache(_digest), {}
    with ProgressBar("comparing training and test images", len(data.train)) as progress:
        for number, path in enumerate(train):
            if time.monotonic() > end:
                break
            progress.show(number)
            same = by_size.get(_size(path))
            own = same and digest(path)
            found.update((p, path) for p in same or () if own and digest(p) == own)
    return found


def _size(path):
    """Returns the bytes of a file; `None` if it is missing."""
    try:
        return os.path.getsize(path)
    except OSError:
        return None


def _digest(path):
    """Returns the digest of a file; `None` if it cannot be read, which is reported later."""
    try:
        return hash_file(path)
    except OSError:
        return None
