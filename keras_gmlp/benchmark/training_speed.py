"""Training speed of a nano gMLP: this package next to an older one or to timm, on every backend.

    python -m keras_gmlp.benchmark.training_speed --package OLD_CHECKOUT
    python -m keras_gmlp.benchmark.training_speed --timm --backends torch

Each run is a process that trains on random images in memory with the package's own `train`. Its
speed is that of the median epoch after the first, as `history.csv` records it. timm's model has the
same size and trains with AdamW in eager PyTorch, on batches that are ready, without augmentation
and without averaging its weights, which this package does. Both take turns, so that other work on
the machine affects both. Prints a Markdown table.
"""

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from keras_gmlp.utils.environment import installed_versions, processor

THIS = Path(__file__).resolve().parents[2]
BACKENDS = ("tensorflow", "jax", "torch")
BATCH = 128
VERSIONS = ("keras", "tensorflow-cpu", "tensorflow", "jax", "torch", "timm")

# Runs with this package and with older ones: it uses what all of them have.
WORKER = """
import sys
import numpy as np
import tensorflow as tf
try:
    from keras_gmlp import Recipe, build, train
    from keras_gmlp.data.images.image_data import ImageData
except ImportError:  # before the modules moved to one folder per job
    from keras_gmlp import build
    from keras_gmlp.recipes import Recipe
    from keras_gmlp.sources import ImageData
    from keras_gmlp.training import train
try:  # an older train() calls it itself
    from keras_gmlp.utils.environment import keep_freed_memory
    keep_freed_memory()
except ImportError:
    pass
directory, steps, epochs, precision = sys.argv[1], *map(int, sys.argv[2:4]), sys.argv[4]
rng = np.random.default_rng(0)
images = rng.integers(0, 256, (128 * steps, 32, 32, 3), "uint8")
split = tf.data.Dataset.from_tensor_slices((images, np.arange(len(images), dtype="int64") % 10))
labels = tuple("0123456789")
data = ImageData("random", labels, (32, 32, 3), split, split.take(128))
recipe = Recipe(epochs=epochs, batch_size=128, precision=precision)
model = build("gmlp_n4_32", **recipe.model_arguments())
train(model, data, recipe, directory, verbose=0)
"""

TIMM_WORKER = """
import csv, sys, time
from timm_worker import import_torchvision  # apps/ is on the path
import_torchvision()
import torch
from timm.models.mlp_mixer import MlpMixer, SpatialGatingBlock
from timm.layers import GatedMlp
directory, steps, epochs, precision = sys.argv[1], *map(int, sys.argv[2:4]), sys.argv[4]
model = MlpMixer(
    num_classes=10, img_size=32, patch_size=4, num_blocks=7, embed_dim=192, mlp_ratio=2,
    block_layer=SpatialGatingBlock, mlp_layer=GatedMlp,
).train()
parameters = sum(p.numel() for p in model.parameters())
assert parameters == 824_394, f"timm's model has {parameters:,} parameters"
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
loss_function = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
images = torch.randint(256, (steps, 128, 3, 32, 32), dtype=torch.uint8)
labels = torch.randint(10, (steps, 128))
seconds = []
for _ in range(epochs):
    start = time.perf_counter()
    for batch, target in zip(images, labels):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "mixed_bfloat16"):
            loss = loss_function(model(batch / 127.5 - 1), target)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    loss.item()
    seconds.append(time.perf_counter() - start)
with open(directory + "/history.csv", "w", newline="") as file:
    csv.writer(file).writerows([["seconds"], *([s] for s in seconds)])
"""
TIMM = "timm"


def main(arguments=None):
    options = parse(arguments)
    other = TIMM if options.timm else options.package
    packages = {"this": THIS, **({"other": other} if other else {})}
    print(f"{processor()}, {os.environ.get('OMP_NUM_THREADS', 'all')} threads, batch {BATCH}.")
    print(", ".join(f"{k} {v}" for k, v in installed_versions(VERSIONS).items()) + ".\n")
    name = "timm on PyTorch" if options.timm else "other package"
    print(f"| backend | precision | {name}, images/s | this package, images/s | ratio |")
    print("|---|---|---|---|---|", flush=True)
    for backend in options.backends:
        for precision in options.precisions:
            print(row(backend, precision, packages, options), flush=True)
    return 0


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    peers = parser.add_mutually_exclusive_group()
    peers.add_argument("--package", type=Path, help="a checkout to compare with")
    peers.add_argument("--timm", action="store_true", help="compare with timm's blocks")
    parser.add_argument("--backends", nargs="+", default=BACKENDS, choices=BACKENDS)
    parser.add_argument("--precisions", nargs="+", default=["float32"], metavar="POLICY")
    parser.add_argument("--repeats", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=8, help="in an epoch; default: %(default)s")
    parser.add_argument("--epochs", type=int, default=3, help="the first one compiles")
    return parser.parse_args(arguments)


def row(backend, precision, packages, options):
    """Measures one line of the table; the ratio is the median over pairs of runs."""
    speeds = {name: [] for name in packages}
    for repeat in range(options.repeats):
        order = list(packages) if repeat % 2 else list(reversed(packages))
        for name in order:
            speeds[name].append(measure(packages[name], backend, precision, options))
    cells = {name: f"{statistics.median(values):.0f}" for name, values in speeds.items()}
    ratio = ""
    if "other" in speeds:
        pairs = zip(speeds["this"], speeds["other"], strict=True)
        ratio = f"{statistics.median(this / other for this, other in pairs):.3f}"
    return f"| {backend} | {precision} | {cells.get('other', '')} | {cells['this']} | {ratio} |"


def measure(package, backend, precision, options):
    """Trains in a new process; returns the images per second of the median epoch."""
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    if package == TIMM:
        worker, path = TIMM_WORKER, THIS / "apps"
    else:
        worker, path = WORKER, Path(package).resolve()
    environment["PYTHONPATH"] = str(path)
    with tempfile.TemporaryDirectory() as directory:
        sizes = [str(options.steps), str(options.epochs), precision]
        command = [sys.executable, "-c", worker, directory, *sizes]
        result = subprocess.run(
            command, env=environment, cwd=directory, check=False, capture_output=True, text=True
        )
        if result.returncode:
            raise RuntimeError(f"{package} on {backend} failed:\n{result.stderr[-2000:]}")
        with open(Path(directory) / "history.csv", newline="") as file:
            seconds = [float(line["seconds"]) for line in csv.DictReader(file)]
    return BATCH * options.steps / statistics.median(seconds[1:])


if __name__ == "__main__":
    sys.exit(main())
