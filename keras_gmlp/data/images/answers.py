"""A teacher's answers to fixed views of the training images, stored in a folder.

The folder holds `answers.json`, `labels.npy`, `samples.npy` (the first images, small) and for each
view `logits-V.npy` and, if the teacher has features, `features-V.npy`, in float16.
"""

import dataclasses
import json
from pathlib import Path

import numpy as np

from keras_gmlp.data.images.views import Views, cut_views
from keras_gmlp.utils.files import (
    atomic_write,
    directory_lock,
    load_array,
    read_json,
    remove_leftovers,
    require_space,
    write_json,
)
from keras_gmlp.utils.progress import ProgressBar

DESCRIPTION = "answers.json"
REMEDY = "delete the folder and store the answers again"
TOGETHER = 64  # views that a teacher sees at a time
SAMPLED = 64  # images that identify the data


def is_answers(folder):
    """Returns whether a folder holds stored answers."""
    return (Path(folder) / DESCRIPTION).is_file()


@dataclasses.dataclass(frozen=True)
class Answers:
    """Stored answers to the views of the training images of an `ImageData`."""

    folder: Path
    views: Views
    labels: tuple[str, ...]
    sizes: dict  # numbers of logits and, if the teacher has them, features of a view
    fit: str = "crop"

    def require_match(self, data):
        """Raises a `ValueError` if the answers are not for these training images in this order."""
        found, same = data.train.read_labels(), tuple(data.labels) == self.labels
        same = same and data.fit == self.fit
        if not (same and _holds(self.folder, found, _sample(data.train))):
            count = len(load_array(self.folder / "labels.npy", REMEDY))
            raise ValueError(
                f"teacher {self.folder}: holds answers for {count:,} other training images; "
                f"{data.name} has {len(found):,}. Store the answers with the same --data, "
                "--validation, --groups, --fraction and --fit."
            )

    def without_views(self, augmentation):
        """Returns an augmentation without the crop and the flip, which the views replace."""
        if augmentation.mixup or augmentation.cutmix:
            raise ValueError(
                f"teacher {self.folder}: its stored answers are for single images; received "
                f"mixup={augmentation.mixup} and cutmix={augmentation.cutmix}. Set both to 0."
            )
        off = {"crop": 0.0, "resized_crop": None, "flip": False, "alternating_flip": False}
        return dataclasses.replace(augmentation, **off)

    def attacher(self, samples, size):
        """Returns a function that cuts the views of a batch and adds the answers, for tf.data."""
        import tensorflow as tf

        files = {kind: self.files(kind) for kind in self.sizes}
        with tf.device("CPU"):
            windows = tf.constant(self.draw_windows(samples))

        def gather(view, indices):
            return [file[view][indices] for file in files.values()]

        def attach(epoch, indices, images, labels):
            view = epoch % self.views.count
            found = tf.numpy_function(gather, [view, indices], [tf.float16] * len(files))
            answers = {
                kind: tf.ensure_shape(tf.cast(values, tf.float32), (None, self.sizes[kind]))
                for kind, values in zip(files, found, strict=True)
            }
            views = cut_views(images, tf.gather(windows[view], indices), size, tf)
            return views, {"labels": labels, **answers}

        return attach

    def epoch_arrays(self, samples):
        """Returns functions from an epoch to arrays: the windows, then each kind of answers."""
        windows = self.draw_windows(samples)
        files = [windows, *(self.files(kind) for kind in self.sizes)]
        return [
            lambda epoch, views=views: np.asarray(views[epoch % self.views.count][:samples])
            for views in files
        ]

    def device_augmenter(self, augment, size):
        """Returns `augment` of `make_device_augmenter` for samples with windows and answers."""
        import jax.numpy as jnp

        def change(key, images, labels, windows, *rest):
            answers, place = rest[: len(self.sizes)], rest[len(self.sizes) :]
            views = cut_views(images, windows, size, jnp)
            images, labels = augment(key, views, labels, *place)
            answers = [values.astype("float32") for values in answers]
            return images, {"labels": labels, **dict(zip(self.sizes, answers, strict=True))}

        return change

    def files(self, kind):
        """Returns the answers of one kind, mapped into memory: an array for each view."""
        names = [self.folder / f"{kind}-{view}.npy" for view in range(self.views.count)]
        return [load_array(name, REMEDY, mmap_mode="r") for name in names]

    def draw_windows(self, samples):
        """Returns the windows of all views, float32 `(views, samples, 5)`."""
        return np.stack([self.views.draw(view, samples) for view in range(self.views.count)])


def load_answers(folder):
    """Opens stored answers."""
    folder = Path(folder)
    found = read_json(folder / DESCRIPTION)
    try:
        views, sizes = Views(**found["views"]), {k: int(n) for k, n in found["sizes"].items()}
        labels, done = tuple(found["labels"]), int(found["done"])
        fit = found.get("fit", "crop")
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{folder / DESCRIPTION}: damaged ({error!r}); store it again.") from None
    if done < views.count:
        raise ValueError(
            f"{folder}: holds {done} of {views.count} views; finish it with the same command of "
            "apps/teach.py."
        )
    return Answers(folder, views, labels, sizes, fit)


def measure_answers(samples, views, sizes):
    """Returns the bytes that stored answers take."""
    return 2 * samples * views * sum(sizes.values())


def store_answers(teacher, data, folder, views=None, batch_size=TOGETHER, description=None):
    """Stores a teacher's answers to views of the training images, or resumes."""
    folder, views = Path(folder), views or Views()
    if data.label_sets is not None:
        raise ValueError(f"{data.name}: images with several labels have no distillation.")
    if teacher.sizes["logits"] != len(data.labels):
        raise ValueError(
            f"The teacher has {teacher.sizes['logits']} classes; {data.name} has "
            f"{len(data.labels)}. Choose a teacher that was trained on the same classes."
        )
    labels = data.train.read_labels()
    begun = {
        **(description or {}),
        "data": data.name,
        "labels": list(data.labels),
        "samples": len(labels),
        "fit": data.fit,
        "views": json.loads(json.dumps(dataclasses.asdict(views))),  # tuples become lists
        "sizes": dict(teacher.sizes),
        "image_shape": list(teacher.image_shape),
    }
    with directory_lock(folder):
        done = _begin(folder, begun, labels, _sample(data.train))
        remaining, train = views.count - done, data.train.keep()
        require_space(folder, measure_answers(len(labels), remaining, teacher.sizes))
        with ProgressBar("asking the teacher", max(remaining * len(labels), 1)) as progress:
            for view in range(done, views.count):
                windows, seen = views.draw(view, len(labels)), 0
                found = {kind: [] for kind in teacher.sizes}
                for images, _ in train.batches(batch_size):
                    part = windows[seen : seen + len(images)]
                    answers = teacher.answer(cut_views(images, part, teacher.image_shape[:2]))
                    for kind, values in found.items():
                        values.append(np.asarray(answers[kind]).astype("float16"))
                    seen += len(images)
                    progress.show((view - done) * len(labels) + seen)
                for kind, values in found.items():
                    _save(folder / f"{kind}-{view}.npy", np.concatenate(values))
                write_json(folder / DESCRIPTION, {**begun, "done": view + 1})
    return load_answers(folder)


def _sample(split):
    """Returns the first images, scaled to 8 x 8 pixels, by which data are recognized."""
    images, _ = split.keep(SAMPLED).arrays()
    whole = np.tile(np.array([0, 0, 1, 1, 0], "float32"), (len(images), 1))
    return cut_views(images, whole, (8, 8)).astype("float16")


def _holds(folder, labels, samples):
    """Returns whether stored answers begin with these labels and images, read at any size."""
    own = load_array(folder / "labels.npy", REMEDY)
    stored = load_array(folder / "samples.npy", REMEDY)
    count = min(len(stored), len(samples))
    difference = np.abs(stored[:count].astype("float32") - samples[:count]).mean()
    return np.array_equal(own[: len(labels)], labels) and bool(difference < 4)


def _save(path, array):
    """Writes an array complete or not at all."""
    with atomic_write(path) as temporary:
        np.save(temporary, array)


def _begin(folder, begun, labels, samples):
    """Writes the description of new answers, or checks it; returns the number of stored views."""
    remove_leftovers(folder, r"(logits|features)-\d+\.npy|(labels|samples)\.npy")
    if is_answers(folder):
        found = read_json(folder / DESCRIPTION)
        found = found if isinstance(found, dict) else {}
        differing = [name for name, value in begun.items() if found.get(name) != value]
        if differing or not _holds(folder, labels, samples):
            raise ValueError(
                f"{folder}: holds answers of other {[*differing, 'images'][0]}; give another "
                "folder, or delete this one."
            )
        return int(found.get("done", 0))
    _save(folder / "labels.npy", labels.astype("int32"))
    _save(folder / "samples.npy", samples)
    write_json(folder / DESCRIPTION, {**begun, "done": 0})
    return 0
