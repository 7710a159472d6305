"""Images per second of reading, cropping and batching JPEG files, and the memory it takes.

Run `python -m keras_gmlp.benchmark.reading_speed`; it writes JPEGs of 500 x 375 pixels to a folder
that it deletes, and prints a Markdown table. Each way to read runs in its own process; its second
epoch is measured: all of it, or with `--batches` from the second batch on, because the first one
waits until the former path has filled its buffer.
"""

import argparse
import dataclasses
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from keras_gmlp.training.recipes import RECIPES
from keras_gmlp.utils.environment import keep_freed_memory

HEIGHT, WIDTH, SIZE, PACKED_SIZE = 375, 500, 224, 256

IMAGES, CLASSES, PICTURES, BATCH_SIZE = 2_000, 10, 40, 64

SCALE = (0.08, 1.0)

SHUFFLE_BUFFER = 10_000  # decoded images that the former path held

WORKERS = 2  # processes of PyTorch's loader


def make_folder(folder, images):
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


def read_folder(folder):
    """Returns batches of windows of the files."""
    return _stream(folder, resized_crop=SCALE)


def read_centre(folder):
    """Returns batches of the scaled centres of the files."""
    return _stream(folder)


def read_packed(folder):
    """Returns batches of windows of a packed set, which it writes next to the folder."""
    from keras_gmlp import data

    packed = folder.with_name("packed")
    if not packed.exists():
        data.pack(data.load(folder, (PACKED_SIZE, PACKED_SIZE)), packed)
    return _stream(packed, resized_crop=SCALE)


def read_imagenet(folder):
    """Returns batches of the packed set with all augmentations of the ImageNet recipe."""
    settings = dataclasses.asdict(RECIPES["imagenet"].task.augmentation)
    return _stream(folder.with_name("packed"), **settings)


def _stream(folder, **settings):
    from keras_gmlp import data
    from keras_gmlp.data.batches import host as batches

    batches.MEMORY_LIMIT = 0
    return data.training_batches(
        data.load(folder, (SIZE, SIZE)), BATCH_SIZE, data.Augmentation(**settings)
    )


def read_buffered(folder):
    """Returns batches as the package read them before: decoded by Pillow, shuffled in a buffer."""
    import tensorflow as tf

    from keras_gmlp import data
    from keras_gmlp.data.batches.augmentation import make_augmenter
    from keras_gmlp.data.batches.host import without_tuning

    found = data.load(folder, (SIZE, SIZE))
    augment = make_augmenter(data.Augmentation(), found)
    samples = found.train.dataset().shuffle(SHUFFLE_BUFFER).batch(BATCH_SIZE, drop_remainder=True)
    augmented = samples.enumerate().map(
        lambda number, batch: augment(tf.stack([number, 0]), *batch), tf.data.AUTOTUNE
    )
    return without_tuning(augmented.prefetch(4))


def read_with_torch(folder):
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
        Files(), BATCH_SIZE, shuffle=True, drop_last=True, num_workers=WORKERS
    )


CANDIDATES = {
    "former path: Pillow, buffer": read_buffered,
    "centre by Pillow, index path": read_centre,
    "JPEG windows, index path": read_folder,
    "packed windows, index path": read_packed,
    "the same, recipe imagenet": read_imagenet,
    f"PyTorch's loader, {WORKERS} workers, Pillow": read_with_torch,
}


def measure(name, folder, most=None):
    """Returns images per second of clock and of processor time, and the peak memory in bytes."""
    keep_freed_memory()  # as apps/train.py does
    batches, peak, images = CANDIDATES[name](folder), 0, 0
    for _ in itertools.islice(batches, most):
        pass
    clock, processor = time.perf_counter(), _processor_time()
    for number, batch in enumerate(itertools.islice(batches, most)):
        if most and number == 0:
            clock, processor = time.perf_counter(), _processor_time()
        else:
            images += len(batch[1])
        peak = max(peak, _memory())
    clock, processor = time.perf_counter() - clock, _processor_time() - processor
    return {"clock": images / clock, "processor": images / processor, "memory": peak}


def _processor_time():
    """Returns seconds of this process and of its children that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _memory():
    """Returns the resident memory of this process and its children, without mapped files."""
    own = os.getpid()
    children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
    pages = 0
    for process in (own, *children):
        _, resident, shared, *_ = map(int, Path(f"/proc/{process}/statm").read_text().split())
        pages += resident - shared
    return pages * os.sysconf("SC_PAGE_SIZE")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=IMAGES, help="default: %(default)s")
    parser.add_argument("--batches", type=int, help="of each epoch, at least 2; default: all")
    parser.add_argument("--measure", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, folder = options.measure
        print(json.dumps(measure(name, Path(folder), options.batches)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "photos"
        make_folder(folder, options.images)
        print("| images/s | clock | per second of CPU time | relative | memory, MB |")
        print("|---|---|---|---|---|")
        first = None
        for name in CANDIDATES:
            command = [sys.executable, "-m", "keras_gmlp.benchmark.reading_speed"]
            command += ["--measure", name, str(folder)]
            if options.batches:
                command += ["--batches", str(options.batches)]
            result = subprocess.run(command, stdout=subprocess.PIPE, check=True)
            found = json.loads(result.stdout.splitlines()[-1])
            first = first or found["processor"]
            print(
                f"| {name} | {found['clock']:,.0f} | {found['processor']:,.0f} | "
                f"{found['processor'] / first:.2f} | {found['memory'] / 1e6:,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
