"""Speeds of training: of a nano gMLP, of language models, and on an accelerator; see `peers`."""

import functools
import itertools
import statistics
import time
import typing
from pathlib import Path

from keras_gmlp.benchmark import peers
from keras_gmlp.benchmark.harness import Candidate, Workload, time_calls
from keras_gmlp.benchmark.peers import LENGTH, WORDS
from keras_gmlp.models.presets import lookup
from keras_gmlp.utils.environment import installed_versions

THIS = Path(__file__).resolve().parents[2]
BACKENDS = ("tensorflow", "jax", "torch")

# Runs with this package and with older ones: it uses what all of them have.
TRAIN = """
import csv, json, pathlib, statistics, sys, tempfile
import numpy as np
import tensorflow as tf
try:
    from keras_gmlp import Recipe, build, train
    try:
        from keras_gmlp.data.images.image_data import ImageData
    except ImportError:  # before images and text had a room each
        from keras_gmlp.data.image_data import ImageData
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
steps, epochs, precision = *map(int, sys.argv[1:3]), sys.argv[3]
rng = np.random.default_rng(0)
images = rng.integers(0, 256, (128 * steps, 32, 32, 3), "uint8")
split = tf.data.Dataset.from_tensor_slices((images, np.arange(len(images), dtype="int64") % 10))
labels = tuple("0123456789")
data = ImageData("random", labels, (32, 32, 3), split, split.take(128))
recipe = Recipe(epochs=epochs, batch_size=128, precision=precision)
model = build("gmlp_n4_32", **recipe.model_arguments())
with tempfile.TemporaryDirectory() as directory:
    train(model, data, recipe, directory, verbose=0)
    with open(pathlib.Path(directory) / "history.csv", newline="") as file:
        seconds = [float(line["seconds"]) for line in csv.DictReader(file)]
print(json.dumps({"clock": len(images) / statistics.median(seconds[1:])}))
"""


class TrainingSpeed(Workload):
    """Training speed of a nano gMLP: this package next to an older one or to timm.

    Trains on random images in memory with the package's own `train`. The speed is that of the
    median epoch after the first. timm's model has the same size and trains with AdamW in eager
    PyTorch, on batches that are ready, without augmentation and without averaging its weights,
    which this package does.
    """

    name = "training"
    options: typing.ClassVar = {
        "--package": {"type": Path, "help": "a checkout to compare with"},
        "--timm": {"action": "store_true", "help": "compare with timm's blocks"},
        "--backends": {"nargs": "+", "default": BACKENDS, "choices": BACKENDS},
        "--precisions": (["float32"], "policies of Keras"),
        "--steps": (8, "in an epoch"),
        "--epochs": (3, "the first one compiles"),
    }

    def candidates(self, options):
        packages = {"timm": THIS} if options.timm else {}
        packages |= {"other package": options.package} if options.package else {}
        packages["this package"] = THIS
        for backend, precision in itertools.product(options.backends, options.precisions):
            script = ("-c", TRAIN, str(options.steps), str(options.epochs), precision)
            for title, package in packages.items():
                yield Candidate(
                    f"{backend}, {precision}, {title}",
                    functools.partial(peers.train_timm, precision == "mixed_bfloat16"),
                    f"{backend}, {precision}, {next(iter(packages))}",
                    {"KERAS_BACKEND": backend, "PYTHONPATH": str(package.resolve())},
                    () if title == "timm" else script,
                )


PREDICTED = 19  # masked places in a window at 15 %
PEER = "Hugging Face, BERT, 9 layers of 128"


class TextSpeed(Workload):
    """Training speed of language models next to Hugging Face's BERT.

    Trains each preset on random tokens, and Hugging Face's eager PyTorch BERT of the size of
    `bert_nano` on the same ones, with AdamW.
    """

    name = "text"
    unit = "tokens/s"
    versions = ("keras", "tensorflow-cpu", "tensorflow", "jax", "torch", "transformers")

    options: typing.ClassVar = {
        "--presets": (["bert_nano", "gmlp_nano", "amlp_nano"], "of language models"),
        "--backend": {"default": "torch", "choices": BACKENDS},
        "--precision": ("float32", "policy of Keras"),
        "--batch": (64, "windows in a step"),
        "--steps": (8, "timed after two others"),
    }

    def candidates(self, options):
        steps = {preset: functools.partial(_keras_step, preset) for preset in options.presets}
        for name, make_step in {**steps, PEER: peers.make_bert_step}.items():
            backend = "torch" if name == PEER else options.backend
            measure = functools.partial(_train_text, make_step)
            yield Candidate(name, measure, PEER, {"KERAS_BACKEND": backend})


def _train_text(make_step, options, folder):
    """Measures the training of a language model on random tokens."""
    import numpy as np

    generator = np.random.default_rng(0)
    ids = generator.integers(5, WORDS, (options.batch, LENGTH)).astype("int32")
    places = np.sort(generator.random((options.batch, LENGTH)).argsort()[:, :PREDICTED])
    arrays = ids, places.astype("int32"), np.take_along_axis(ids, places, axis=1)
    step = make_step(options.precision, *arrays)
    return time_calls(step, options.steps, options.batch * LENGTH, untimed=2)


def _keras_step(preset, precision, ids, places, targets):
    """Returns a function that trains one step of a preset."""
    import keras
    import numpy as np

    from keras_gmlp.models.presets import build

    model = build(preset, vocabulary_size=WORDS, dtype=precision)
    inputs = {"token_ids": ids, "mask_positions": places}
    weights = np.ones(targets.shape, "float32")

    def step():
        model.train_on_batch(inputs, targets, sample_weight=weights)
        keras.ops.convert_to_numpy(model.optimizer.iterations)  # waits for the device

    return step


class DeviceSpeed(Workload):
    """Training speed on an accelerator: the device pipeline, next to tf.data and timm.

    Each preset trains on random images with RandAugment, MixUp and CutMix: with the device
    pipeline (JAX), with the host pipeline (tf.data, if TensorFlow is installed), and as timm's
    model under `torch.compile` on images that lie on the GPU, as bfloat16, without augmentation and
    with AdamW. The peak is that of a bfloat16 matrix product in the same process. A training step
    counts as three forward passes.
    """

    name = "device"
    options: typing.ClassVar = {
        "presets": {"nargs": "+", "metavar": "PRESET"},
        "--batch": (512, "images in a step"),
        "--steps": (60, "in an epoch"),
        "--epochs": (4, "the first one compiles"),
        "--precision": ("mixed_bfloat16", "policy of Keras"),
        "--devices": {"type": int, "metavar": "N", "help": "also train on N devices"},
    }

    def check(self, options):
        for preset in options.presets:
            lookup(preset)

    def candidates(self, options):
        from keras_gmlp.benchmark.files import timm_architecture

        timm = {"timm": peers.train_compiled_timm} if installed_versions(["timm"]) else {}
        ways = {"device": _measure_fit}
        if options.devices:
            ways[f"{options.devices} devices"] = _measure_on_devices
        if installed_versions(("tensorflow", "tensorflow-cpu")):
            ways["host"] = functools.partial(_measure_fit, pipeline="host")
        for preset in options.presets:
            for way, measure in {**ways, **(timm if timm_architecture(preset) else {})}.items():
                yield Candidate(
                    f"{preset}, {way}",
                    functools.partial(measure, preset),
                    f"{preset}, device",
                    {"KERAS_BACKEND": "jax"},
                )


def _measure_on_devices(preset, options, folder):
    from keras_gmlp.training.devices import use_devices

    with use_devices(options.devices):
        return {"clock": _measure_fit(preset, options, folder)["clock"]}


def _measure_fit(preset, options, folder, pipeline="device"):
    """Trains with the parts of `keras_gmlp.train`."""
    import keras
    import numpy as np

    from keras_gmlp.data.batches.augmentation import Augmentation
    from keras_gmlp.data.batches.share import Position
    from keras_gmlp.data.images.image_data import ImageData
    from keras_gmlp.data.images.splits import ArraySplit
    from keras_gmlp.models.presets import build, lookup
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
    model = build(preset, **recipe.model_arguments())
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
    speed = count / statistics.median(after - before for before, after in itertools.pairwise(ends))
    return {"clock": speed, "share": 3 * _forward_flops(model) * speed / _matrix_product_peak()}


def _forward_flops(model):
    """Returns the floating-point operations of one image's forward pass, as XLA counts them."""
    import jax
    import numpy as np

    def forward(images):
        return model(images, training=False)

    batch = np.zeros((2, *model.input_shape[1:]), "float32")
    analysis = jax.jit(forward).lower(batch).compile().cost_analysis()
    return (analysis[0] if isinstance(analysis, list) else analysis)["flops"] / 2


def _matrix_product_peak(size=8192):
    """Returns the floating-point operations per second of a bfloat16 matrix product."""
    import jax

    if jax.devices()[0].platform == "cpu":
        size = 1024
    x = jax.random.normal(jax.random.key(0), (size, size), "bfloat16")
    multiply = jax.jit(lambda a, b: a @ b)
    return time_calls(lambda: multiply(x, x).block_until_ready(), 10, 2 * size**3)["clock"]
