"""Damaged packed sets, and sets whose descriptions and class indices are odd."""

import json

import numpy as np

from attack.kinds import SilentLossError
from attack.mutations import copy_folder, mutate, mutate_json
from keras_gmlp.data import ArraySplit, ImageData
from keras_gmlp.data.images.packed import load_packed, pack

LABELS = (-5, -1, 2, 3, 255, 2**31, 2**62, 0.5, 1.5, float("nan"), float("inf"), True, None, "1")


class Packed:
    """Each case is a packed set in which one file or two are changed."""

    def __init__(self, folder):
        split = ArraySplit(np.arange(8 * 48, dtype="uint8").reshape(8, 4, 4, 3), np.arange(8) % 3)
        sets = ((0,), (1,), (0, 2))
        for name, label_sets in (("one", None), ("several", sets)):
            splits = {"train": split, "test": split, "validation": split}
            data = ImageData("x", tuple("abc"), (4, 4, 3), **splits, label_sets=label_sets)
            pack(data, folder / name)
        self.folder = folder

    def make(self, rng, folder):
        place = folder / "packed"
        for path in copy_folder(self.folder / rng.choice(("one", "several")), place, rng):
            change = rng.randrange(4)
            if change == 0:
                path.write_bytes(mutate(path.read_bytes(), rng))
            elif path.suffix == ".json":
                path.write_text(json.dumps(mutate_json(json.loads(path.read_text()), rng)))
            elif change == 1:
                path.unlink()
            elif path.stem.endswith("labels"):
                labels = [
                    rng.choice(LABELS),
                    *np.load(path)[: rng.choice((7, 7, 7, 0, 6))].tolist(),
                ]
                kinds = ("int8", "int64", "uint64", "float16", "float64", "bool", "complex64", "U4")
                save(path, labels, rng.choice((None, *kinds)), rng)
            else:
                save(path, np.load(path), rng.choice(("uint8", "float32", "int16", "bool")), rng)
        return place, rng.choice((None, (4, 4), (3, 5), (8, 8)))

    def check(self, case):
        folder, size = case
        data = load_packed(folder, size)
        count = len(data.labels if data.label_sets is None else data.label_sets)
        for name, split in data.splits().items():
            images, labels = split.arrays()
            if images.shape != (len(split), *data.image_shape) or images.dtype != "uint8":
                raise SilentLossError(f"{name}: images {images.shape} of {images.dtype}")
            if not (len(labels) == len(images) and all(int(n) in range(count) for n in labels)):
                raise SilentLossError(f"{name}: class indices {labels}")
            if name == "train" and not len(labels):
                raise SilentLossError("no training images")


def save(path, values, kind, rng):
    """Writes an array in another type or shape, where NumPy can."""
    try:
        array = np.array(values, kind)
    except (TypeError, ValueError, OverflowError):
        array = np.array(values, object)
    if rng.random() < 0.3:
        array = rng.choice(
            (array[None], array[..., None], array[:0], array[::-1], array.reshape(-1)[:1])
        )
    np.save(path, array, allow_pickle=True)
