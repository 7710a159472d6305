"""`Samples`: the images and classes of a training or test set, in memory or read when needed."""

import copy
import functools
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import numpy as np
from PIL import Image

from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.utils.errors import one_line_errors
from keras_gmlp.utils.progress import ProgressBar

MEMORY_LIMIT = 4 * 2**30  # bytes of a set's pixels that stay in memory; larger sets stream
TOGETHER = 64  # samples that are read at a time
READERS = os.cpu_count() or 1  # threads that read and decode
POOL = ThreadPoolExecutor(READERS)  # whose threads start when they are needed
UNREAD = np.iinfo("int64").min  # in place of a class index


class Samples:
    """Images of one shape and their class indices, in a fixed order.

    Args:
        labels: Class indices, int64 `(samples,)`.
        shape: `(height, width, channels)` of the images.
        read: Function from places, an int64 array of any length, to uint8 images
            `(places, height, width, channels)`. Several threads may call it at a time.
        source: Function from a place to what a run records of that sample: the path of its file, as
            bytes, or its stored pixels. `None` if nothing is recorded.
        in_memory: Whether `read` takes the pixels from memory.
        cut: Function from places and windows, as of the method `read`, to images. Defaults to
            windows of the images that `read` reads.

    Raises:
        ValueError: By each method that reads, if an image cannot be read.
    """

    in_order = False  # whether reading is fast in this order only, and finds the labels
    _kept = None  # these samples in memory

    def __init__(
        self,
        labels: np.ndarray,
        shape: tuple[int, int, int],
        read: Callable[[np.ndarray], np.ndarray],
        source: Callable[[int], bytes | np.ndarray] | None = None,
        in_memory: bool = False,
        cut: Callable[..., np.ndarray] | None = None,
    ):
        self.shape, self.in_memory = tuple(shape), in_memory
        self._labels, self._read, self._source, self.cut = labels, read, source, cut
        self._places = np.arange(len(labels))

    def __len__(self):
        return len(self._places)

    @property
    def labels(self) -> np.ndarray:
        """The class indices, int64 `(samples,)`."""
        if UNREAD in self._labels[self._places]:
            self.read([-1])
        return self._labels[self._places]

    @property
    def sources(self) -> list:
        """What a run records of each sample, a list; empty if it records nothing."""
        return [] if self._source is None else list(map(self._source, self._places))

    @property
    def paths(self) -> list[bytes]:
        """The paths of the files as bytes, a list; empty if images are not in files."""
        first = self.take(slice(1)).sources
        return self.sources if first and isinstance(first[0], bytes) else []

    def take(self, indices: slice | np.ndarray) -> Self:
        """Returns some of the samples; `indices` are a slice, or an array in ascending order."""
        part = copy.copy(self)
        part._places = self._places[indices]
        part._kept = self._kept and self._kept.take(indices)
        return part

    def read(self, indices: slice | np.ndarray, windows: Callable | None = None) -> np.ndarray:
        """Reads images.

        Args:
            indices: A slice or an array.
            windows: Function from a row, or a slice of rows, and the height and the width of its
                image to the window `(top, left, height, width)` that is scaled to `shape`. `None`
                for whole images.

        Returns:
            uint8 `(indices, height, width, channels)`. Do not write to it.
        """
        places = self._places[indices]
        if windows is None:
            return self._read(places)
        if self.cut is not None:
            return self.cut(places, windows)
        return read_windows(self._read(places), windows, self.shape)

    def fits_in_memory(self) -> bool:
        """Returns whether the pixels of all samples may stay in memory; see `MEMORY_LIMIT`."""
        return len(self) * int(np.prod(self.shape)) <= MEMORY_LIMIT

    def keep(self) -> "Samples":
        """Returns these samples in memory, if they fit; so no image is read twice."""
        if self.in_memory or not self.fits_in_memory():
            return self
        if self._kept is None:
            images, done = np.empty((len(self), *self.shape), "uint8"), 0
            for found in self.stream():
                images[done : done + len(found)] = found
                done += len(found)
            self._kept = from_pixels(images, self.labels)
        return self._kept

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns uint8 images `(samples, height, width, channels)` and their `labels`.

        Do not write to the images: they stay in memory if they fit.
        """
        kept = self.keep()
        return kept.read(slice(None)), kept.labels

    def batches(self, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields the samples in order, two batches of them in memory.

        Args:
            size: Samples in a batch; the last may be smaller.

        Yields:
            uint8 images `(size, height, width, channels)` and int64 class indices `(size,)`.
        """
        parts = [self.take(slice(start, start + size)) for start in range(0, len(self), size)]
        with ThreadPoolExecutor(1) as ahead:  # reads a batch while another is used
            coming = [ahead.submit(part.read, slice(None)) for part in parts[:1]]
            for part, following in itertools.zip_longest(parts, parts[1:]):
                images = coming.pop().result()
                if following is not None:
                    coming.append(ahead.submit(following.read, slice(None)))
                yield images, part._labels[part._places]

    def stream(self) -> Iterator[np.ndarray]:
        """Yields all images in order, a few at a time, and shows the progress."""
        done = 0
        with ProgressBar("reading images", len(self)) as progress:
            for images, _ in self.batches(TOGETHER):
                yield images
                done += len(images)
                progress.show(done)


def from_pixels(images, labels):
    """Returns the `Samples` of uint8 images and class indices in memory."""
    images, labels = np.asarray(images), check_indices(images, labels)

    def read(places):
        first, end = (places[0], places[-1] + 1) if len(places) else (0, 0)
        if np.array_equal(places, np.arange(first, end)):
            return images[first:end]
        return images.take(places, axis=0)  # unlike an index, releases Python's lock

    return Samples(labels, images.shape[1:], read, in_memory=True)


def check_indices(images, labels):
    """Returns class indices of images as int64, after a check of both."""
    images, labels = np.asanyarray(images), np.asarray(labels)
    if images.dtype != np.uint8 or images.ndim != 4 or labels.shape != images.shape[:1]:
        raise ValueError(
            "expected uint8 images (samples, height, width, channels) and class indices "
            f"(samples,); received {images.dtype} {images.shape} and {labels.shape}."
        )
    with np.errstate(invalid="ignore"):  # of NaN
        indices = labels.astype("int64")
    if np.any(indices != labels):
        raise ValueError(f"expected class indices, whole numbers; received {labels.dtype}.")
    return indices


def from_files(files, shape, **preparation):
    """Returns the `Samples` of pairs of a path and a class index; see `read_image`."""
    paths = [os.fsencode(path) for path, _ in files]
    labels = np.array([label for _, label in files], "int64")

    def read_file(place, window=None):
        return read_image(os.fsdecode(paths[place]), shape, window=window, **preparation)

    def cut(places, windows):
        own = [functools.partial(windows, row) for row in range(len(places))]
        return read_images(read_file, shape, places, own)

    # With the fit crop windows are parts of the whole file, and otherwise of the scaled image.
    cut = cut if preparation.get("fit", "crop") == "crop" else None
    read = functools.partial(read_images, read_file, shape)
    return Samples(labels, shape, read, paths.__getitem__, cut=cut)


def from_dataset(dataset):
    """Returns the `Samples` of a `tf.data.Dataset` of (uint8 image, class index), in order."""
    spec = getattr(dataset, "element_spec", None)
    pair = isinstance(spec, tuple) and len(spec) == 2
    if not pair or spec[0].dtype != "uint8" or spec[0].shape.rank not in (3, None):
        raise ValueError(
            "expected Samples or a tf.data.Dataset of single samples, (uint8 image, class index); "
            f"received {type(dataset).__name__ if spec is None else spec}."
        )
    size = int(dataset.cardinality())
    if size < 0:
        raise ValueError(
            "expected a tf.data.Dataset of known, finite size; give it one with "
            "dataset.apply(tf.data.experimental.assert_cardinality(samples))."
        )
    shape, lock = spec[0].shape, threading.Lock()
    if not shape.is_fully_defined():
        with one_line_errors():
            shape = next(iter(dataset))[0].shape
    labels = np.full(size, UNREAD)
    parts, number, images = None, -1, None  # where reading is

    def read_part(wanted):
        nonlocal parts, number, images
        if parts is None or wanted < number:
            parts, number = dataset.batch(TOGETHER).as_numpy_iterator(), -1
        while number < wanted:
            (images, found), number = next(parts), number + 1
            labels[number * TOGETHER :][: len(found)] = found
        return images

    def read(places):
        result, numbers = np.empty((len(places), *shape), "uint8"), places // TOGETHER
        with lock, one_line_errors():
            for each in np.unique(numbers):
                result[numbers == each] = read_part(each)[places[numbers == each] % TOGETHER]
        return result

    samples = Samples(labels, shape, read)
    samples.in_order = True
    return samples


def read_images(read, shape, *items):
    """Returns the images that a function reads from each of some items, on all cores."""
    items = list(zip(*items, strict=True))
    images = np.empty((len(items), *shape), "uint8")

    def fill(rows):
        for row in rows:
            images[row] = read(*items[row])

    for _ in POOL.map(fill, np.array_split(np.arange(len(items)), READERS)):
        pass
    return images


def resize_images(images, shape, fit="crop"):
    """Scales uint8 images to a shape, as `read_image` fits those of another aspect ratio."""
    return read_images(lambda image: read_image(image, shape, fit=fit), shape, images)


def read_windows(images, windows, shape):
    """Returns windows of images of one size, scaled to a shape."""
    result, size = np.empty((len(images), *shape), "uint8"), (shape[1], shape[0])
    mode = "RGB" if shape[2] == 3 else "L"
    drawn = windows(slice(None), *images[0].shape[:2]).astype(int).tolist()
    for row, (top, left, height, width) in enumerate(drawn):
        part = images[row][top : top + height, left : left + width]
        picture = Image.fromarray(part if part.shape[2] == 3 else part[..., 0])
        picture = picture.resize(size, Image.Resampling.BILINEAR)
        picture = picture if picture.mode == mode else picture.convert(mode)
        result[row] = np.asarray(picture).reshape(shape)
    return result
