"""Speeds of what feeds the training: masks of tokens, augmentation, reading of images."""

import dataclasses
import functools
import itertools
import os
import typing
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from keras_gmlp.benchmark.harness import Candidate, Workload, time_batches
from keras_gmlp.training.recipes import RECIPES
from keras_gmlp.utils.files import write_json

TIMED = "in a round"  # batches
LENGTH, WORDS, DOCUMENTS, TOKENS = 128, 8192, 500, 2000  # tokens of a document


class MaskingSpeed(Workload):
    """Masked tokens per second next to Hugging Face's collator for masked language models.

    Both get windows of equal length from the same random tokens in memory: this package as
    `text.MaskedBatches`, Hugging Face as `DataCollatorForLanguageModeling` with NumPy.
    """

    name = "masking"
    unit = "tokens/s"
    versions = ("numpy", "transformers")
    compared = "processor"
    options: typing.ClassVar = {"--batch": (256, "windows in a batch"), "--batches": (100, TIMED)}

    def candidates(self, options):
        peer = "Hugging Face's collator"
        for name, make in {"`text.MaskedBatches`": our_batches, peer: peer_batches}.items():
            yield Candidate(name, functools.partial(_measure_masks, make), peer)

    def prepare(self, options, folder):
        """Writes documents of random tokens as a `Corpus`."""
        generator = np.random.default_rng(0)
        tokens = generator.integers(5, WORDS, DOCUMENTS * TOKENS).astype("uint16")
        np.save(folder / "tokens.npy", tokens)
        np.save(folder / "starts.npy", np.arange(DOCUMENTS + 1) * TOKENS)
        info = dict.fromkeys(("tokens", "words", "characters"), len(tokens))
        info |= {"documents": DOCUMENTS, "unknown": 0, "vocabulary_size": WORDS}
        write_json(folder / "corpus.json", {**info, "special_ids": [0, 1, 2, 3, 4]})


def _measure_masks(make, options, folder):
    from keras_gmlp.data.text.corpus import Corpus

    batches = map(make(Corpus(folder), options.batch), itertools.count())
    return time_batches(batches, lambda _: options.batch * LENGTH, options.batches, untimed=1)


def our_batches(corpus, batch):
    """Returns a function that makes the batch of a step."""
    from keras_gmlp.data.text.masking import MaskedBatches

    return MaskedBatches(corpus, batch, LENGTH).__getitem__


def peer_batches(corpus, batch):
    """Returns a function that makes a batch as Hugging Face does, from windows in memory."""
    import tokenizers
    import transformers

    names = ("pad", "unk", "cls", "sep", "mask")
    special = {f"{name}_token": f"[{name.upper()}]" for name in names}
    words = [*special.values(), *(f"word{i}" for i in range(5, WORDS))]
    level = tokenizers.models.WordLevel({word: i for i, word in enumerate(words)}, "[UNK]")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(level), **special
    )
    collate = transformers.DataCollatorForLanguageModeling(
        tokenizer, mlm_probability=0.15, return_tensors="np"
    )
    windows = corpus.windows(LENGTH)
    ids = corpus.tokens.take(windows[:, :1] + np.arange(LENGTH - 2), mode="clip")
    ids = np.pad(ids.astype("int64"), ((0, 0), (1, 1)), constant_values=((0, 0), (2, 3)))
    masks = (ids < 5).astype("int64")

    def make(step):
        rows = (step * batch + np.arange(batch)) % len(ids)
        return collate([{"input_ids": ids[i], "special_tokens_mask": masks[i]} for i in rows])

    return make


MAGNITUDE, AUGMENTED, SIDE, CLASSES = 0.4, 512, 32, 10  # images in a batch, pixels of a side
MIX = {"mixup": 0.4, "cutmix": 0.4}
KERAS_CV = "the same with keras-cv's RandAugment layer"
AUGMENTATIONS = {
    "crop, flip": {},
    "crop, flip, MixUp or CutMix": MIX,
    "crop, flip, RandAugment, MixUp or CutMix": {"rand_augment": MAGNITUDE, **MIX},
    KERAS_CV: MIX,
}


class AugmentationSpeed(Workload):
    """Images per second of the augmentation, also with keras-cv's RandAugment layer."""

    name = "augmentation"
    versions = ("keras", "tensorflow-cpu", "tensorflow", "keras-cv")
    compared = "processor"

    options: typing.ClassVar = {"--threads": ([1, 2], "of tf.data"), "--batches": (12, TIMED)}

    def candidates(self, options):
        for number, way in itertools.product(options.threads, AUGMENTATIONS):
            measure = functools.partial(_measure_augmentation, way, number)
            yield Candidate(f"{way}; threads: {number}", measure, f"{KERAS_CV}; threads: {number}")


def _measure_augmentation(way, threads, options, folder):
    untimed = 2 * threads + 1  # that threads have prepared
    batches = iter(augmented_batches(way, threads))
    return time_batches(batches, lambda batch: len(batch[1]), options.batches, untimed)


def augmented_batches(way, threads):
    """Returns an endless `tf.data.Dataset` of augmented noise that computes on some threads."""
    import tensorflow as tf

    from keras_gmlp.data.batches.augmentation import Augmentation
    from keras_gmlp.data.batches.host_augmentation import make_augmenter

    data = SimpleNamespace(mirror=True, labels=range(CLASSES), label_rows=lambda: None)
    augment = make_augmenter(Augmentation(**AUGMENTATIONS[way]), data)
    random = np.random.default_rng(0)
    images = tf.constant(random.integers(0, 256, (AUGMENTED, SIDE, SIDE, 3), "uint8"))
    labels = tf.constant(random.integers(0, CLASSES, AUGMENTED))
    keys = tf.data.Dataset.counter().map(lambda i: tf.stack([i, 0]))
    layer = None
    if way == KERAS_CV:
        import keras_cv

        layer = keras_cv.layers.RandAugment((0, 255), 2, MAGNITUDE)

    def make_batch(key):
        augmented, chosen = augment(key, images, labels)
        if layer is not None:
            augmented = layer(augmented, training=True)
        return augmented, chosen

    options = tf.data.Options()
    options.autotune.enabled = False
    options.threading.private_threadpool_size = threads
    options.threading.max_intra_op_parallelism = 1
    return keys.map(make_batch, num_parallel_calls=threads).with_options(options)


HEIGHT, WIDTH, SIZE, PACKED_SIZE = 375, 500, 224, 256
PICTURES, BATCH = 40, 64  # different pictures in the folder, images in a batch
SCALE = (0.08, 1.0)
SHUFFLE_BUFFER = 10_000  # decoded images that the former path held
WORKERS = 2  # processes of PyTorch's loader


class ReadingSpeed(Workload):
    """Images per second of reading, cropping and batching JPEG files, and the memory it takes.

    Writes JPEGs of 500 x 375 pixels to a folder that it deletes. The second epoch is measured: all
    of it, or with `--batches` from the second batch on, because the first one waits until the
    former path has filled its buffer.
    """

    name = "reading"
    versions = ("keras", "tensorflow-cpu", "tensorflow", "torch", "pillow")
    compared = "processor"
    options: typing.ClassVar = {
        "--images": (2000, "in the folder"),
        "--batches": {"type": int, "help": "of each epoch, at least 2; default: all"},
    }

    def candidates(self, options):
        for name, read in READERS.items():
            yield Candidate(name, functools.partial(_measure_reading, read), next(iter(READERS)))

    def prepare(self, options, folder):
        _write_pictures(folder / "photos", options.images)


def _measure_reading(read, options, folder):
    batches, peaks = read(folder / "photos"), []
    for _ in itertools.islice(batches, options.batches):
        pass

    def count(batch):
        peaks.append(_memory())
        return len(batch[1])

    second = itertools.islice(batches, options.batches)
    found = time_batches(second, count, untimed=int(bool(options.batches)))
    return {**found, "memory": max(peaks) / 1e6}


def _write_pictures(folder, images):
    """Writes class folders of JPEGs: `PICTURES` different ones, the others are links to them."""
    from PIL import Image

    random, written = np.random.default_rng(0), []
    for number in range(images):
        path = folder / f"{number % CLASSES}" / f"{number:06}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        if number >= PICTURES:
            os.link(written[number % PICTURES], path)
            continue
        written.append(path)
        small = Image.fromarray(random.integers(0, 256, (24, 32, 3), "uint8"))
        smooth = np.asarray(small.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)).astype(int)
        noisy = smooth + random.integers(-12, 13, smooth.shape)
        Image.fromarray(noisy.clip(0, 255).astype("uint8")).save(path, quality=90)


def _read_buffered(folder):
    """Returns batches as the package read them before: decoded by Pillow, shuffled in a buffer."""
    import tensorflow as tf

    from keras_gmlp import data
    from keras_gmlp.data.batches.host import without_tuning
    from keras_gmlp.data.batches.host_augmentation import make_augmenter

    found = data.load(folder, (SIZE, SIZE))
    augment = make_augmenter(data.Augmentation(), found)
    samples = found.train.dataset().shuffle(SHUFFLE_BUFFER).batch(BATCH, drop_remainder=True)
    augmented = samples.enumerate().map(
        lambda number, batch: augment(tf.stack([number, 0]), *batch), tf.data.AUTOTUNE
    )
    return without_tuning(augmented.prefetch(4))


def _read_files(folder, **settings):
    """Returns batches as the package reads them, with settings of the augmentation."""
    from keras_gmlp import data
    from keras_gmlp.data.images import splits

    splits.MEMORY_LIMIT = 0
    found = data.load(folder, (SIZE, SIZE))
    return data.training_batches(found, BATCH, data.Augmentation(**settings))


def _read_packed(folder, **settings):
    """Returns batches of a packed set, which it writes next to the folder."""
    from keras_gmlp import data

    packed = folder.with_name("packed")
    if not packed.exists():
        data.pack(data.load(folder, (PACKED_SIZE, PACKED_SIZE)), packed)
    return _read_files(packed, **settings)


def _read_with_torch(folder):
    """Returns PyTorch's loader with the steps of torchvision's transform: decode, crop, flip."""
    import torch
    from PIL import Image

    from keras_gmlp import data
    from keras_gmlp.data.images.resized_crop import DRAWS, draw_window

    split = data.load(folder, (SIZE, SIZE)).train

    class Files(torch.utils.data.Dataset):
        def __len__(self):
            return len(split)

        def __getitem__(self, index):
            image = Image.open(os.fsdecode(split.paths[index])).convert("RGB")
            draws = np.random.uniform(size=DRAWS)
            window = draw_window(draws, image.height, image.width, SCALE, np)
            top, left, height, width = map(int, window)
            part = image.crop((left, top, left + width, top + height))
            part = part.resize((SIZE, SIZE), Image.Resampling.BILINEAR)
            if np.random.uniform() < 0.5:
                part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            pixels = torch.from_numpy(np.array(part)).permute(2, 0, 1)
            return pixels.to(torch.float32).div(255), split.labels[index]

    return torch.utils.data.DataLoader(
        Files(), BATCH, shuffle=True, drop_last=True, num_workers=WORKERS
    )


IMAGENET = dataclasses.asdict(RECIPES["imagenet"].task.augmentation)
READERS = {
    "former path: Pillow, buffer": _read_buffered,
    "centre by Pillow, index path": _read_files,
    "JPEG windows, index path": functools.partial(_read_files, resized_crop=SCALE),
    "packed windows, index path": functools.partial(_read_packed, resized_crop=SCALE),
    "the same, recipe imagenet": functools.partial(_read_packed, **IMAGENET),
    f"PyTorch's loader, {WORKERS} workers, Pillow": _read_with_torch,
}


def _memory():
    """Returns the resident memory of this process and its children, without mapped files."""
    own = os.getpid()
    children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
    pages = 0
    for process in (own, *children):
        _, resident, shared, *_ = map(int, Path(f"/proc/{process}/statm").read_text().split())
        pages += resident - shared
    return pages * os.sysconf("SC_PAGE_SIZE")
