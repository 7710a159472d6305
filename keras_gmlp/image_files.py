"""The image files of a data set, of which some cannot be read."""

import os
import threading
import time

from keras_gmlp.errors import first_of
from keras_gmlp.images import read_image

PATIENCE = 20.0  # seconds that are spent on finding further files that cannot be read
NAMED = 10  # of them


class ImageFiles:
    """Reads a data set's files; of the first that cannot be read, it tells the others, too.

    Called by several threads at once.

    Args:
        paths: of the files, as bytes.
        shape: `(height, width, channels)` that they are brought to.
    """

    def __init__(self, paths, shape):
        self.paths, self.shape = paths, shape
        self.lock, self.searched, self.unreadable = threading.Lock(), 0, []

    def read(self, path):
        """The pixels of one of the files; see `images.read_image`.

        Raises:
            ValueError: it cannot be read. One line that names it and, found within `PATIENCE`, the
                others that cannot be read either.
        """
        try:
            return read_image(os.fsdecode(path), self.shape)
        except ValueError as error:
            raise ValueError(f"{error}{self._others(path)}") from None

    def _others(self, known):
        with self.lock:
            if not self.searched:
                self._search()
            # Once more: meanwhile they may have been repaired.
            names = [os.fsdecode(p) for p in self.unreadable if p != known and not self._reads(p)]
        if not names:
            return ""
        return (
            f" Of {self.searched:,} files looked at these cannot be read either: "
            f"{first_of(names, NAMED)}."
        )

    def _search(self):
        end = time.monotonic() + PATIENCE
        for path in self.paths:
            self.searched += 1
            if not self._reads(path):
                self.unreadable.append(path)
            if time.monotonic() > end:
                break

    def _reads(self, path):
        try:
            read_image(os.fsdecode(path), self.shape)
        except ValueError:
            return False
        return True
