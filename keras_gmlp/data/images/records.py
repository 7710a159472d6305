"""Sets of labelled images that TensorFlow Datasets (TFDS) prepared, read without it.

The samples, their order and their pixels are those that TFDS gives.
"""

import io
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from PIL import Image

from keras_gmlp.data.images.encoded_splits import EncodedSplit
from keras_gmlp.data.images.fits import resize_images
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.read_image import MAX_PIXELS, explain_failure, open_image, scale_window
from keras_gmlp.data.images.splits import READERS
from keras_gmlp.data.tfds.download import open_or_download
from keras_gmlp.data.tfds.prepared import FILES_IN_TURN, SAMPLES_IN_TURN, take_turns
from keras_gmlp.data.tfds.tfrecords import find_records

NEEDED = ("image", "label")  # features that a sample must have

# Data sets of letters and digits: a mirrored image has another label, or none.
MIRRORED_CHANGES_LABEL = (
    "binary_alpha_digits", "cmaterdb", "emnist", "kmnist", "mnist", "mnist_corrupted", "omniglot",
    "svhn_cropped",
)  # fmt: skip


def load_records(name, image_size=None, data_dir=None, fit="crop"):
    """Opens a data set from TFRecord files that TFDS prepared, or downloads it."""

    def find_shape(features):
        """Returns the shape of the images, and the number of classes."""
        image = features.get("image", {}).get("image", {})
        classes = features.get("label", {}).get("classLabel", {}).get("numClasses")
        size = [int(n) for n in image.get("shape", {}).get("dimensions", ())]
        is_image = len(size) == 3 and size[2] in (-1, 1, 3)
        if classes is None or not is_image or image.get("dtype") not in ("uint8", "uint16"):
            raise ValueError(
                f"{name!r} is not an image-classification data set: expected the features image, "
                f"of 1 or 3 channels, and label; it has {', '.join(sorted(features))}."
            )
        height, width, channels = (max(n, 0) for n in size)  # -1 if they vary
        return (*(image_size or (height or 224, width or 224)), channels or 3), int(classes)

    prepared = open_or_download(name, data_dir, find_shape)
    (shape, classes), splits = find_shape(prepared.features), prepared.splits
    if not prepared.readable or not splits.get("train", {}).get("shardLengths"):
        raise ValueError(
            f"{prepared.folder}: expected TFRecord files with a split train, as TensorFlow "
            "Datasets writes them by default. Prepare the set again."
        )

    def open_split(*part):
        return RecordSplit(prepared.shards(*part), shape, prepared.cycle, fit=fit)

    def is_labelled(split):
        """Returns whether there is a first sample and it has a label; a hidden one is -1."""
        return (split.take(1).read_labels() >= 0).any()

    names = [name for name in ("test", "validation") if name in splits]
    held_out = next((name for name in names if is_labelled(open_split(name))), None)
    parts = [("train",), (held_out,)] if held_out else [("train", 0, 80), ("train", 80, 100)]
    train, test = (open_split(*part) for part in parts)
    mirror = prepared.name not in MIRRORED_CHANGES_LABEL
    return ImageData(name, prepared.class_names(classes), shape, train, test, mirror, fit=fit)


class RecordSplit(EncodedSplit):
    """Samples in TFRecord files, in the order of TFDS.

    Args:
        shards: A list of `Shard`.
        shape: `(height, width, channels)`; images of another size are scaled.
        cycle: Number of files that take turns.
        samples: Number of samples from the start. Defaults to all.
        fit: How images of another aspect ratio are scaled, one of `data.images.fits.FITS`.
    """

    def __init__(self, shards, shape, cycle=FILES_IN_TURN, samples=None, fit="crop"):
        self.shards, self.shape, self.cycle = list(shards), tuple(shape), cycle
        self.fit = fit
        whole = sum(shard.take for shard in self.shards)
        self._places = np.arange(whole if samples is None else min(samples, whole))

    def _sources(self):
        shards = (itertools.starmap(_label, shard.samples(NEEDED)) for shard in self.shards)
        order = take_turns(shards, self.cycle, SAMPLES_IN_TURN)
        chosen = np.zeros(self._places[-1] + 1 if len(self) else 0, bool)
        chosen[self._places] = True
        return itertools.compress(itertools.islice(order, len(chosen)), chosen)

    def _finder(self):
        with ThreadPoolExecutor(READERS) as pool:
            found = list(pool.map(lambda s: find_records(s.path, s.skip, s.take), self.shards))
        ends = np.cumsum([len(places) for places in found])
        starts, places = ends - [len(places) for places in found], np.concatenate(found)
        numbers = (range(*pair) for pair in zip(starts, ends, strict=True))
        turns = take_turns(numbers, self.cycle, SAMPLES_IN_TURN)
        order = np.fromiter(turns, "int64", len(places))[self._places]

        def find(index):
            number = order[index]
            which = np.searchsorted(ends, number, "right")
            shard, (first, size) = self.shards[which], places[number]
            with open(shard.path, "rb") as file:
                file.seek(first)
                record = file.read(size)
            source, label = _label(
                *shard.parse(number - starts[which] + shard.skip, record, NEEDED)
            )
            return source, np.int64(label)

        return find

    def _encoded(self, source):
        return source[0]

    def _decode(self, source, window=None):
        return decode_image(source[0], self.shape, source[1], window, self.fit)


def decode_image(encoded, shape, place, window=None, fit="crop"):
    """Decodes an image of a data set, to the pixels that TensorFlow gives."""
    channels = shape[-1]
    try:
        with open_image(io.BytesIO(encoded), place) as image:
            if image.width * image.height > MAX_PIXELS:
                raise Image.DecompressionBombError
            mode = "L" if channels == 1 else "RGB"
            if channels == 1 and image.format == "JPEG":
                image.draft(mode, image.size)  # the brightness that the file holds
            if image.mode.startswith("I"):  # 16 bits
                image = Image.fromarray((np.asarray(image) >> 8).astype("uint8"))
            image = image if image.mode == mode else image.convert(mode)
            pixels = np.asarray(scale_window(image, window, shape[:2]) if window else image)
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(f"{place}: {explain_failure(error)}") from None
    pixels = pixels.reshape(*pixels.shape[:2], channels)
    return pixels if pixels.shape == shape else resize_images(pixels, shape, fit)


def _label(place, features):
    """Returns ((encoded image, place), class index) of a sample."""
    image, label = features.get("image", ()), features.get("label", ())
    if [type(value) for value in (*image, *label)] != [bytes, int]:
        raise ValueError(f"{place}: holds no image and label.")
    return (image[0], place), label[0]
