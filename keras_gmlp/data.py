"""Data sets as tf.data pipelines: TFDS names, folders of images, the bundled digits.

TensorFlow and keras-cv are imported inside the functions that need them, so that importing this
module costs nothing; they feed models on every backend.
"""

import dataclasses
from pathlib import Path

import numpy as np

from keras_gmlp.images import EXTENSIONS, read_image

MIRRORED_CHANGES_LABEL = ("digits", "mnist", "kmnist", "emnist", "svhn_cropped", "omniglot")
MEMORY_LIMIT = 4 * 2**30  # bytes of decoded pixels that are kept in memory; more are streamed
SHUFFLE_BUFFER = 10_000  # samples, of a data set that is streamed


@dataclasses.dataclass(frozen=True)
class Augmentation:
    """What is done to training images; every field at 0 or False means nothing.

    Attributes:
        crop: padding before a random crop back to size, as a share of the side (0.125: 4 of 32).
        flip: mirror left and right, half of the images.
        rand_augment: magnitude of RandAugment's two operations, in [0, 1].
        cutout: side of the square that is blacked out, as a share of the image's side.
        mixup: share of batches that MixUp blends; cutmix: share that CutMix pastes. Together at
            most 1; a batch gets one or the other.
    """

    crop: float = 0.125
    flip: bool = True
    rand_augment: float = 0.0
    cutout: float = 0.0
    mixup: float = 0.0
    cutmix: float = 0.0

    def __post_init__(self):
        for name, value in dataclasses.asdict(self).items():
            if not 0 <= value <= 1:
                raise ValueError(f"augmentation {name} must be in [0, 1]; received {value}.")
        if self.mixup + self.cutmix > 1:
            raise ValueError(
                "mixup and cutmix are shares of the batches, together at most 1; received "
                f"{self.mixup} and {self.cutmix}."
            )


@dataclasses.dataclass(frozen=True)
class ImageData:
    """A data set ready to feed: `train` and `test` give (uint8 image, int64 class index).

    Attributes:
        name: TFDS name, folder, or "digits".
        labels: class names, in the order of their indices.
        image_shape: `(height, width, channels)` of all images.
        train, test: `tf.data.Dataset` of single samples, of known cardinality.
        mirror: whether a mirrored image keeps its label.
    """

    name: str
    labels: tuple[str, ...]
    image_shape: tuple[int, int, int]
    train: "tf.data.Dataset"  # noqa: F821
    test: "tf.data.Dataset"  # noqa: F821
    mirror: bool = True


def load(name, image_size=None, data_dir=None):
    """Opens a data set.

    Args:
        name: `"digits"` (scikit-learn's handwritten digits, bundled), a folder, or the name of an
            image-classification set of TensorFlow Datasets, for example `"cifar10"`. A folder
            holds one folder of images for each class, or `train` and `test` (or `val`) folders
            that do; without them, every fifth image of each class is held out as test data.
        image_size: `(height, width)` that all images are resized to (scaled to cover it, centre
            cropped). Defaults to the size of the set's images, or to 224 where they vary.
        data_dir: where TFDS keeps its sets. Defaults to TFDS' own, `$TFDS_DATA_DIR`.

    Returns:
        An `ImageData`.

    Raises:
        ValueError: no such set or folder, or one without images and classes.
    """
    if name == "digits":
        return _digits(image_size)
    if Path(name).is_dir():
        return _folder(Path(name), image_size or (224, 224))
    if "/" in str(name) and Path(name).suffix == "" and str(name).startswith((".", "/", "~")):
        raise ValueError(f"{name}: no such folder.")
    return _tfds(name, image_size, data_dir)


def training_batches(data, batch_size, augmentation=None, seed=0, initial_epoch=0):
    """Shuffled, augmented batches of the training split; one iteration is one epoch.

    Decoded pixels are kept in memory when they fit (`MEMORY_LIMIT`). The same seed gives the same
    batches, epoch for epoch, and `initial_epoch=k` begins with the (k+1)-th epoch's, so that a
    resumed run sees what it would have seen. Larger sets are shuffled through a buffer, and there
    a resumed run's order differs.

    Args:
        data: an `ImageData`.
        batch_size: samples in a batch; the rest of an epoch that fills none is left out.
        augmentation: an `Augmentation`; `None` for none. `flip` is ignored where it would change
            the label.
        seed: of the order and of the augmentation.
        initial_epoch: epochs that were done before.

    Returns:
        A `tf.data.Dataset` of (float32 images in [0, 255], labels): class indices, or rows of
        probabilities where MixUp or CutMix is on.
    """
    import tensorflow as tf

    size = int(data.train.cardinality())
    batch_size = min(batch_size, size)
    augmenter = _Augmenter(augmentation or Augmentation(0, False), data, seed)
    epoch = tf.Variable(initial_epoch, dtype=tf.int64, trainable=False)

    def start_epoch(_):
        current = epoch.assign_add(1)
        # Counted by the epoch, not by the draws so far: a resumed run goes on alike.
        for i, generator in enumerate(augmenter.generators):
            generator.reset(tf.stack([current, tf.constant(0, tf.int64), seed + i]))
        return current

    order = tf.data.Dataset.range(1).map(start_epoch)
    if _fits_in_memory(data, size):
        images, labels = _in_memory(data.train)

        def batches_of(current):
            key = tf.cast(tf.stack([seed, current]), tf.int32)
            return (
                tf.data.Dataset.range(size)
                .batch(batch_size, drop_remainder=True)
                .map(lambda i: tf.random.experimental.index_shuffle(i, key, size - 1))
                .map(lambda i: (tf.gather(images, i), tf.gather(labels, i)))
            )
    else:

        def batches_of(current):
            shuffled = data.train.shuffle(SHUFFLE_BUFFER, seed=seed)
            return shuffled.batch(batch_size, drop_remainder=True)

    # The augmentation of one batch after the other keeps the draws in order; it runs beside the
    # training step, several times as fast (see tests/test_data.py), and TensorFlow spreads each
    # operation over the cores.
    batches = order.flat_map(batches_of).map(augmenter)
    batches = batches.apply(tf.data.experimental.assert_cardinality(size // batch_size))
    return batches.prefetch(tf.data.AUTOTUNE)


def evaluation_batches(data, batch_size=250):
    """Batches of the test split in order: (uint8 images, class indices)."""
    import tensorflow as tf

    if _fits_in_memory(data, int(data.test.cardinality())):
        return tf.data.Dataset.from_tensor_slices(_in_memory(data.test)).batch(batch_size)
    return data.test.batch(batch_size).prefetch(tf.data.AUTOTUNE)


class _Augmenter:
    """keras-cv's layers behind one call on a batch, and the random generators they draw from."""

    def __init__(self, augmentation, data, seed):
        import keras_cv
        import tensorflow as tf

        make = keras_cv.layers
        height, width, channels = data.image_shape
        self.seed = seed
        self.image_shape = data.image_shape
        self.classes = len(data.labels)
        self.pad = [[0, 0], *([round(augmentation.crop * n)] * 2 for n in (height, width)), [0, 0]]
        self.layers = []
        if augmentation.crop:
            self.layers.append(make.RandomCrop(height, width, seed=seed + 1))
        if augmentation.flip and data.mirror:
            self.layers.append(make.RandomFlip("horizontal", seed=seed + 2))
        self.rand_augment = None
        if augmentation.rand_augment:
            if channels != 3:
                raise ValueError(
                    f"RandAugment needs colour images; those of {data.name} have {channels} "
                    "channel. Leave rand_augment at 0."
                )
            self.rand_augment = make.RandAugment(
                (0, 255), 2, augmentation.rand_augment, seed=seed + 3
            )
        if augmentation.cutout:
            side = (augmentation.cutout, augmentation.cutout)
            self.layers.append(make.RandomCutout(side, side, seed=seed + 4))
        self.mixers = [
            (share, mixer(alpha, seed=seed + 5))
            for share, mixer, alpha in (
                (augmentation.mixup, make.MixUp, 0.8),
                (augmentation.cutmix, make.CutMix, 1.0),
            )
            if share
        ]
        self.choice = tf.random.Generator.from_seed(seed + 6)
        layers = [*self.layers, self.rand_augment, *(mixer for _, mixer in self.mixers)]
        self.generators = [self.choice]
        self.generators += [part._random_generator for part in _parts(layers)]

    def __call__(self, images, labels):
        import tensorflow as tf

        # Some of keras-cv's layers draw without their seed; this one holds for the whole graph.
        tf.compat.v1.set_random_seed(self.seed)
        images = tf.pad(tf.cast(images, tf.float32), self.pad)
        for layer in self.layers:
            images = layer(images, training=True)
        if self.rand_augment is not None:
            # One after the other: left to itself the layer draws for all images at once, in an
            # order that changes from run to run.
            images = tf.map_fn(
                lambda image: self.rand_augment(image, training=True), images, parallel_iterations=1
            )
        if self.mixers:
            images, labels = self._mix(images, tf.one_hot(labels, self.classes))
        images = tf.ensure_shape(images, (None, *self.image_shape))
        return tf.clip_by_value(images, 0.0, 255.0), labels

    def _mix(self, images, labels):
        """By the first mixer whose share of [0, 1) holds a random number, or not at all."""
        import tensorflow as tf

        draw, below, branches = self.choice.uniform(()), 0.0, []
        for share, mixer in self.mixers:

            def mixed(mixer=mixer):
                out = mixer({"images": images, "labels": labels}, training=True)
                return out["images"], out["labels"]

            below += share
            branches.append((draw < below, mixed))
        return tf.case(branches, default=lambda: (images, labels))


def _parts(layers):
    """The layers and, of RandAugment, those that it chooses from and the chooser."""
    for layer in filter(None, layers):
        yield layer
        yield from _parts([*getattr(layer, "layers", []), getattr(layer, "_random_choice", None)])


def _fits_in_memory(data, samples):
    return samples * np.prod(data.image_shape) <= MEMORY_LIMIT


def _in_memory(dataset):
    """All samples as two tensors."""
    return dataset.batch(int(dataset.cardinality())).get_single_element()


def _digits(image_size):
    """1,797 handwritten digits of 8x8 pixels, 360 of them for testing; a fixed split."""
    import tensorflow as tf
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = np.round(digits.images * 255 / 16)[..., None].astype("uint8")
    if image_size:
        images = tf.image.resize(images, image_size, "bicubic", antialias=True)
        images = tf.cast(tf.clip_by_value(tf.round(images), 0, 255), tf.uint8)
    order = np.random.default_rng(0).permutation(len(digits.target))
    train, test = (
        tf.data.Dataset.from_tensor_slices(
            (tf.gather(images, part), digits.target[part].astype("int64"))
        )
        for part in (order[360:], order[:360])
    )
    labels = tuple(map(str, range(10)))
    return ImageData("digits", labels, tuple(images.shape[1:]), train, test, mirror=False)


def _folder(root, image_size):
    """A folder of class folders, decoded as `classify` decodes."""
    import tensorflow as tf

    splits = {p.name for p in root.iterdir() if p.is_dir()}
    held_out = next((n for n in ("test", "val", "validation") if n in splits), None)
    labels = _class_names(root / "train" if held_out and "train" in splits else root)
    if held_out and "train" in splits:
        train = _class_files(root / "train", labels)
        test = _class_files(root / held_out, labels)
    else:
        files = _class_files(root, labels)
        test = [pair for _, group in _by_class(files) for pair in group[4::5]]
        train = [pair for _, group in _by_class(files) for pair in group if pair not in set(test)]
    if not train or not test:
        raise ValueError(
            f"{root}: {len(train)} training and {len(test)} test images; each split needs at least "
            "one (without train and test folders, at least 5 images of a class)."
        )
    shape = (*image_size, 3)

    def decode(path, label):
        image = tf.numpy_function(lambda p: read_image(p.decode(), shape), [path], tf.uint8)
        return tf.ensure_shape(image, shape), label

    def dataset(pairs):
        paths, indices = zip(*pairs, strict=True)
        listing = tf.data.Dataset.from_tensor_slices((list(paths), np.array(indices, "int64")))
        return listing.map(decode, num_parallel_calls=tf.data.AUTOTUNE)

    return ImageData(str(root), labels, shape, dataset(train), dataset(test))


def _class_names(root):
    names = tuple(sorted(p.name for p in root.iterdir() if p.is_dir() and p.name[0] != "."))
    if len(names) < 2:
        raise ValueError(
            f"{root}: expected a folder of images for each of two or more classes; found "
            f"{len(names)} folders. Lay the images out as {root}/<class name>/<image>."
        )
    return names


def _class_files(root, labels):
    return [
        (str(path), index)
        for index, label in enumerate(labels)
        for path in sorted((root / label).rglob("*"))
        if path.suffix.lower() in EXTENSIONS
    ]


def _by_class(files):
    groups = {}
    for path, index in files:
        groups.setdefault(index, []).append((path, index))
    return groups.items()


def _tfds(name, image_size, data_dir):
    import tensorflow as tf
    import tensorflow_datasets as tfds

    try:
        builder = tfds.builder(name, data_dir=data_dir)
    except (tfds.core.registered.DatasetNotFoundError, ValueError) as error:
        raise ValueError(
            f"{name!r} is neither a folder, nor 'digits', nor a data set of TensorFlow Datasets "
            f"({str(error).splitlines()[0]})."
        ) from None
    features = builder.info.features
    if not {"image", "label"} <= set(features) or not hasattr(features["label"], "names"):
        raise ValueError(f"{name!r} is no image-classification set: it has {list(features)}.")
    height, width, channels = features["image"].shape
    shape = (*(image_size or (height or 224, width or 224)), channels or 3)
    try:
        builder.download_and_prepare()
    except Exception as error:
        raise ValueError(
            f"{name!r} is not in {builder.data_dir} and could not be downloaded "
            f"({str(error).splitlines()[0][:200]}). Set TFDS_DATA_DIR to where it is, or connect."
        ) from None

    def decode(encoded, label):
        # Bit for bit what Pillow decodes, which classification uses. It reads PNG too.
        image = tf.io.decode_jpeg(encoded, channels=shape[-1], dct_method="INTEGER_ACCURATE")
        if (height, width) != shape[:2]:
            image = _cover(image, shape)
        return tf.ensure_shape(image, shape), label

    def split(which):
        dataset = builder.as_dataset(
            split=which, as_supervised=True, decoders={"image": tfds.decode.SkipDecoding()}
        )
        size = dataset.cardinality()
        dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
        return dataset.apply(tf.data.experimental.assert_cardinality(size))

    available = builder.info.splits
    held_out = next((s for s in ("test", "validation") if s in available), None)
    train, test = ("train", held_out) if held_out else ("train[:80%]", "train[80%:]")
    labels = tuple(features["label"].names)
    mirror = builder.name not in MIRRORED_CHANGES_LABEL
    return ImageData(name, labels, shape, split(train), split(test), mirror)


def _cover(image, shape):
    """Scales until the target is covered, then crops around the centre."""
    import tensorflow as tf

    target = tf.constant(shape[:2], tf.float32)
    size = tf.cast(tf.shape(image)[:2], tf.float32)
    scaled = tf.cast(tf.math.ceil(size * tf.reduce_max(target / size) - 1e-3), tf.int32)
    image = tf.image.resize(image, scaled, "bicubic", antialias=True)
    image = tf.image.resize_with_crop_or_pad(image, *shape[:2])
    return tf.cast(tf.clip_by_value(tf.round(image), 0, 255), tf.uint8)
