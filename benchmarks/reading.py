"""Images per second of reading, cropping and flipping JPEG files, next to torchvision.

Writes JPEGs of 500 x 375 pixels to a folder that it deletes; 40 of them differ. The second epoch is
measured, all of it or --batches.
"""

import dataclasses
import functools
import itertools
import os
import sys
import time

import numpy as np

from benchmarks.harness import Candidate, import_torchvision, make_parser, run

SIDE, PACKED_SIDE, BATCH = 224, 256, 64
DIFFERENT, CLASSES = 40, 10
SCALE = (0.08, 1.0)  # of a random resized crop
TORCH = "torchvision, two workers"


def list_candidates(options):
    from keras_gmlp.training.recipes import RECIPES

    imagenet = dataclasses.asdict(RECIPES["imagenet"].task.augmentation)
    for name, read in {
        TORCH: read_with_torch,
        "JPEG files": functools.partial(read_own, False, resized_crop=SCALE),
        "packed set": functools.partial(read_own, True, resized_crop=SCALE),
        "packed set, recipe imagenet": functools.partial(read_own, True, **imagenet),
    }.items():
        yield Candidate(name, functools.partial(measure_reading, read), TORCH)


def prepare(options, folder):
    """Writes class folders of JPEGs; most are links to those that differ."""
    from PIL import Image

    random, written = np.random.default_rng(0), []
    for number in range(options.images):
        path = folder / "photos" / f"{number % CLASSES}" / f"{number:06}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        if number >= DIFFERENT:
            os.link(written[number % DIFFERENT], path)
            continue
        written.append(path)
        small = Image.fromarray(random.integers(0, 256, (24, 32, 3), "uint8"))
        smooth = np.asarray(small.resize((500, 375), Image.Resampling.BICUBIC)).astype(int)
        noisy = smooth + random.integers(-12, 13, smooth.shape)
        Image.fromarray(noisy.clip(0, 255).astype("uint8")).save(path, quality=90)


def measure_reading(read, options, folder):
    batches, images = read(folder / "photos"), 0
    for _ in itertools.islice(batches, options.batches):
        pass
    clock, cpu = time.perf_counter(), processor_seconds()
    for _, labels in itertools.islice(batches, options.batches):
        images += len(labels)
    clock, cpu = time.perf_counter() - clock, processor_seconds() - cpu
    return {"images/s of CPU time": images / cpu, "images/s": images / clock}


def read_own(is_packed, folder, **settings):
    """Returns batches as this package reads them, with settings of the augmentation."""
    from keras_gmlp import data
    from keras_gmlp.data.images import samples

    samples.MEMORY_LIMIT = 0  # as if they did not fit in memory
    packed = folder.with_name("packed")
    if is_packed and not packed.exists():
        data.pack(data.load(folder, (PACKED_SIDE, PACKED_SIDE)), packed)
    found = data.load(packed if is_packed else folder, (SIDE, SIDE))
    return data.training_batches(found, BATCH, data.Augmentation(**settings))


def read_with_torch(folder):
    import_torchvision()
    import torch
    from torchvision import datasets, transforms

    steps = [transforms.RandomResizedCrop(SIDE, SCALE), transforms.RandomHorizontalFlip()]
    images = datasets.ImageFolder(folder, transforms.Compose([*steps, transforms.ToTensor()]))
    return torch.utils.data.DataLoader(images, BATCH, True, num_workers=2, drop_last=True)


def processor_seconds():
    """Returns seconds of this process and of its children that ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def main(arguments=None):
    parser = make_parser("reading", __doc__)
    parser.add_argument("--images", type=int, default=2000, help="in the folder; default: 2000")
    parser.add_argument("--batches", type=int, help="of each epoch; default: all")
    return run(parser, list_candidates, arguments, prepare)


if __name__ == "__main__":
    sys.exit(main())
