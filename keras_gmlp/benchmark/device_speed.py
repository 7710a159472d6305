"""Training speed on an accelerator: the device pipeline, next to tf.data and timm.

    python -m keras_gmlp.benchmark.device_speed gmlp_n4_32 gmlp_ti4_32 gmlp_s16_224

Each preset trains on random images with RandAugment, MixUp and CutMix. The columns are images per
second of the device pipeline (JAX), its share of the peak, of the host pipeline (tf.data, if
TensorFlow is installed) and of timm's model under `torch.compile` on images that lie on the GPU, as
bfloat16, without augmentation and with AdamW. The peak is that of a bfloat16 matrix product in the
same run. A training step counts as three forward passes. Prints a Markdown table.
"""

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from keras_gmlp.utils.environment import installed_versions

VERSIONS = ("keras", "jax", "torch", "timm", "tensorflow-cpu", "tensorflow")

TIMM = """
import sys, time, statistics, torch, timm
name, size, classes, batch, steps, repeats = sys.argv[1], *map(int, sys.argv[2:7])
device = "cuda" if torch.cuda.is_available() else "cpu"
model = timm.create_model(name, num_classes=classes).to(device).train()
optimizer = torch.optim.AdamW(model.parameters(), fused=device == "cuda")
loss_function = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
images = torch.randn(batch, 3, size, size, device=device)
labels = torch.randint(classes, (batch,), device=device)
compiled = torch.compile(model)

def step():
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(device, torch.bfloat16):
        loss = loss_function(compiled(images), labels)
    loss.backward()
    optimizer.step()
    return loss

for _ in range(5):
    step()
speeds = []
for _ in range(repeats):
    float(step())
    begin = time.perf_counter()
    for _ in range(steps):
        loss = step()
    float(loss)
    speeds.append(batch * steps / (time.perf_counter() - begin))
print(statistics.median(speeds))
"""


def main(arguments=None):
    options = parse(arguments)
    os.environ["KERAS_BACKEND"] = "jax"
    import jax

    peak = matrix_product_peak()
    versions = ", ".join(f"{k} {v}" for k, v in installed_versions(VERSIONS).items())
    print(
        f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores, {options.precision}. {versions}."
    )
    print(f"A bfloat16 matrix product: {peak / 1e12:.0f} TFLOP/s.\n")
    print("| model | batch | device, images/s | share of peak | host, images/s | timm, images/s |")
    print("|---|---|---|---|---|---|", flush=True)
    for preset in options.presets:
        print(row(preset, peak, options), flush=True)
    if options.devices:
        print(f"\n| model | device, images/s | on {options.devices} devices | ratio |")
        print("|---|---|---|---|", flush=True)
        for preset in options.presets:
            print(devices_row(preset, options), flush=True)
    return 0


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("presets", nargs="+", metavar="PRESET")
    parser.add_argument("--batch", type=int, default=512, help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=60, help="in an epoch; default: %(default)s")
    parser.add_argument("--epochs", type=int, default=4, help="the first one compiles")
    parser.add_argument("--precision", default="mixed_bfloat16", help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=240.0, help="limit of each timm run")
    parser.add_argument(
        "--devices", type=int, metavar="N", help="also train on N devices, and print the ratio"
    )
    return parser.parse_args(arguments)


def row(preset, peak, options):
    """Measures one model in all ways that are possible here."""
    from keras_gmlp.benchmark.files import timm_architecture
    from keras_gmlp.models.presets import lookup

    device, flops = measure(preset, "device", options)
    host = measure(preset, "host", options)[0] if _has_tensorflow() else None
    shape = lookup(preset)[1]["input_shape"]
    architecture, timm = timm_architecture(preset), None
    if architecture and "timm" in installed_versions(["timm"]):
        timm = measure_timm(architecture, shape, options)
    share = f"{100 * 3 * flops * device / peak:.1f} %"
    cells = [f"{value:,.0f}" if value else "" for value in (device, host, timm)]
    return f"| {preset} | {options.batch} | {cells[0]} | {share} | {cells[1]} | {cells[2]} |"


def devices_row(preset, options):
    """Measures one model without `--devices` and with it, in turns."""
    from keras_gmlp.training.devices import use_devices

    without, on_devices = [], []
    for _ in range(3):
        without.append(measure(preset, "device", options)[0])
        with use_devices(options.devices):
            on_devices.append(measure(preset, "device", options)[0])
    ratio = statistics.median(b / a for a, b in zip(without, on_devices, strict=True))
    speeds = (f"{statistics.median(speed):,.0f}" for speed in (without, on_devices))
    return f"| {preset} | {' | '.join(speeds)} | {ratio:.3f} |"


def measure(preset, pipeline, options):
    """Trains with `keras_gmlp.train`'s parts; returns images per second and FLOPs per image."""
    import keras
    import numpy as np

    from keras_gmlp.data.batches.augmentation import Augmentation
    from keras_gmlp.data.batches.share import Position
    from keras_gmlp.data.images.image_data import ImageData
    from keras_gmlp.data.images.splits import ArraySplit
    from keras_gmlp.models.presets import build_fresh, lookup
    from keras_gmlp.tasks.image_classification import ImageClassification
    from keras_gmlp.training.device_loop import EpochOrder
    from keras_gmlp.training.pipeline import prepare_fit
    from keras_gmlp.training.recipes import Recipe

    shape, classes = (lookup(preset)[1][name] for name in ("input_shape", "classes"))
    rng = np.random.default_rng(0)
    count = options.batch * options.steps
    # Large images repeat: their number would not fit in memory, and speed does not depend on it.
    distinct = min(count, max(options.batch, 2**30 // int(np.prod(shape))))
    images = rng.integers(0, 256, (distinct, *shape), "uint8")[np.arange(count) % distinct]
    labels = np.arange(count) % classes
    augmentation = Augmentation(rand_augment=0.4, mixup=0.4, cutmix=0.4)
    recipe = Recipe(
        epochs=options.epochs,
        batch_size=options.batch,
        precision=options.precision,
        pipeline=pipeline,
        task=ImageClassification(augmentation=augmentation),
    )
    names = tuple(map(str, range(classes)))
    train, test = ArraySplit(images, labels), ArraySplit(images[:1], labels[:1])
    data = ImageData("random", names, shape, train, test)
    model = build_fresh(preset, **recipe.model_arguments())
    trained, batches = prepare_fit(model, data, recipe, options.batch)
    orders = [EpochOrder(batches)] if pipeline == "device" else []
    if pipeline == "host":
        batches = recipe.task.training_batches(data, options.batch, Position(recipe.seed))
    ends = []
    clock = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: ends.append(time.perf_counter())
    )
    trained.fit(
        batches, epochs=options.epochs, callbacks=[*orders, clock], shuffle=False, verbose=0
    )
    seconds = [after - before for before, after in itertools.pairwise(ends)]
    return count / statistics.median(seconds), forward_flops(model)


def forward_flops(model):
    """Returns the floating-point operations of one image's forward pass, as XLA counts them."""
    import jax
    import numpy as np

    def forward(images):
        return model(images, training=False)

    batch = np.zeros((2, *model.input_shape[1:]), "float32")
    analysis = jax.jit(forward).lower(batch).compile().cost_analysis()
    return (analysis[0] if isinstance(analysis, list) else analysis)["flops"] / 2


def matrix_product_peak(size=8192):
    """Returns the floating-point operations per second of a bfloat16 matrix product."""
    import jax

    if jax.devices()[0].platform == "cpu":
        size = 1024
    x = jax.random.normal(jax.random.key(0), (size, size), "bfloat16")
    multiply = jax.jit(lambda a, b: a @ b)
    multiply(x, x).block_until_ready()
    seconds = []
    for _ in range(10):
        begin = time.perf_counter()
        multiply(x, x).block_until_ready()
        seconds.append(time.perf_counter() - begin)
    return 2 * size**3 / statistics.median(seconds)


def measure_timm(architecture, shape, options):
    """Returns the images per second of timm's model, or `None` if it does not run."""
    numbers = [shape[0], 1000, options.batch, min(options.steps, 20), 3]
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / "train_timm.py"  # torch.compile requires a file
        script.write_text(TIMM)
        command = [sys.executable, str(script), architecture, *map(str, numbers)]
        try:
            result = subprocess.run(
                command, capture_output=True, text=True, check=True, timeout=options.seconds
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
            print(f"timm's {architecture} does not run: {reason}", file=sys.stderr)
            return None
    return float(result.stdout.split()[-1])


def _has_tensorflow():
    return bool(installed_versions(("tensorflow", "tensorflow-cpu")))


if __name__ == "__main__":
    sys.exit(main())
