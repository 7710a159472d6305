"""A folder of pictures, their random views, and what a teacher says about each view."""

import json
import os
from pathlib import Path

import numpy as np
from PIL import Image

from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.utils.progress import ProgressBar

SUFFIXES = {".bmp", ".jpeg", ".jpg", ".png", ".webp"}
TOGETHER = 32  # views that a teacher sees at a time


def pack_pictures(folder, target, size, labelled=False):
    """Writes the pictures under a folder as an array, and their classes: the folders they are in.

    Nothing is written again if `target` holds them already.
    """
    target = Path(target)
    if (target / "pictures.json").is_file():
        return
    files = sorted(p for p in Path(folder).rglob("*") if p.suffix.lower() in SUFFIXES)
    if not files:
        raise ValueError(f"{folder}: no pictures.")
    classes = sorted({path.parent.name for path in files}) if labelled else []
    target.mkdir(parents=True, exist_ok=True)
    pictures = np.lib.format.open_memmap(
        target / "pictures.npy", "w+", "uint8", (len(files), size, size, 3)
    )
    with ProgressBar("reading pictures", len(files)) as progress:
        for i, path in enumerate(files):
            pictures[i] = read_image(path, (size, size, 3))
            progress.show(i + 1)
    pictures.flush()
    if labelled:
        labels = [classes.index(path.parent.name) for path in files]
        np.save(target / "labels.npy", np.array(labels, "int32"))
    (target / "pictures.json").write_text(json.dumps({"from": str(folder), "classes": classes}))


class Pictures:
    """Pictures in an endless order: pass after pass, each shuffled, each with a new view.

    Args:
        folder: What `pack_pictures` and `store_features.py` wrote.
        share: How many times an epoch takes each picture, such as 2 or 0.33.
        teacher: A `Teacher` that answers at once; `None` to read stored features. Views are then
            those that are stored, in turns.
    """

    def __init__(self, folder, share=1.0, teacher=None):
        self.folder, self.teacher = Path(folder), teacher
        self.classes = json.loads((self.folder / "pictures.json").read_text())["classes"]
        self.pictures = np.load(self.folder / "pictures.npy", mmap_mode="r")
        self.labels = np.load(self.folder / "labels.npy") if self.classes else None
        self.in_epoch = round(share * len(self.pictures))
        self.features = []
        while (path := self.folder / f"features-{len(self.features)}.npy").is_file():
            self.features.append(np.load(path, mmap_mode="r"))
        if not self.features and teacher is None:
            raise ValueError(f"{folder}: no stored features; store_features.py writes them.")
        self.length = teacher.length if teacher else self.features[0].shape[1]

    def choose(self, epoch):
        """Returns the rows `(sample, view)` of an epoch, int64 `(in_epoch, 2)`."""
        places = epoch * self.in_epoch + np.arange(self.in_epoch)
        passes, places = np.divmod(places, len(self.pictures))
        rows = np.empty((self.in_epoch, 2), "int64")
        for number in np.unique(passes):
            order = np.random.default_rng([number, 0]).permutation(len(self.pictures))
            rows[passes == number, 0] = order[places[passes == number]]
        rows[:, 1] = passes if self.teacher else passes % len(self.features)
        return rows

    def read(self, rows, size):
        """Returns the views of rows, uint8 `(rows, size, size, 3)`, and the teacher's features."""
        views = [cut_view(self.pictures[i], draw_window(i, view), size) for i, view in rows]
        if self.teacher is None:
            found = np.stack([self.features[view][i] for i, view in rows])
        else:
            found = self.teacher.answer(self, rows)
        return np.stack(views), found.astype("float32")


def draw_window(sample, view):
    """Returns left, top, width and height of a view as shares of a picture, and if it is mirrored.

    They do not depend on the size of the view, so that a teacher may see the same view larger.
    """
    area, ratio, left, top, mirrored = np.random.default_rng([view, sample]).random(5)
    area, ratio = 0.35 + 0.65 * area, (3 / 4) * (16 / 9) ** ratio
    width, height = min(1.0, (area * ratio) ** 0.5), min(1.0, (area / ratio) ** 0.5)
    return left * (1 - width), top * (1 - height), width, height, mirrored < 0.5


def cut_view(picture, window, size):
    """Returns a view of a picture `(side, side, 3)`, scaled to a square."""
    left, top, width, height, mirrored = window
    side = len(picture)
    box = left * side, top * side, (left + width) * side, (top + height) * side
    view = Image.fromarray(picture).resize((size, size), Image.Resampling.BICUBIC, box)
    return np.asarray(view)[:, ::-1] if mirrored else np.asarray(view)


class Teacher:
    """An ONNX file from pictures `(batch, height, width, 3)` in [0, 255] to `features`."""

    def __init__(self, path, threads=1):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(path), options)
        (self.input,) = self.session.get_inputs()
        self.size, self.length = self.input.shape[1], self.session.get_outputs()[0].shape[1]

    def answer(self, pictures, rows):
        """Returns the features of views, float32 `(rows, features)`."""
        found = []
        for start in range(0, len(rows), TOGETHER):
            part = rows[start : start + TOGETHER]
            views = [
                cut_view(pictures.pictures[i], draw_window(i, view), self.size) for i, view in part
            ]
            batch = np.stack(views).astype("float32")
            found.append(self.session.run(["features"], {self.input.name: batch})[0])
        return np.concatenate(found)


def store_features(pictures, views):
    """Writes the teacher's features of so many views of each picture; views that exist stay."""
    samples, done = np.arange(len(pictures.pictures)), len(pictures.features)
    with ProgressBar("asking the teacher", max(1, (views - done) * len(samples))) as progress:
        for view in range(done, views):
            found = []
            for start in range(0, len(samples), TOGETHER):
                part = samples[start : start + TOGETHER]
                rows = np.stack([part, np.full_like(part, view)], axis=1)
                found.append(pictures.teacher.answer(pictures, rows).astype("float16"))
                progress.show((view - done) * len(samples) + part[-1] + 1)
            path = pictures.folder / f"features-{view}.npy"
            np.save(path.with_suffix(".new.npy"), np.concatenate(found))
            os.replace(path.with_suffix(".new.npy"), path)
