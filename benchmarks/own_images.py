"""Accuracy, file size and processor time of classifiers of your own pictures.

linear head  apps/train.py --epochs 0: a logistic regression on the features of the weights
fine-tuned   apps/train.py: chooses on held-out pictures between the head and all layers
scratch      apps/train.py --weights none
--peer       a logistic regression on the features of a quantized TFLite classifier: what its last
             convolution or dense layer reads. Its size and its time are those of the whole file.

Test pictures choose nothing. *CPU ms* is the median of 50 calls on one thread, in turns. With
--per-class, only linear heads are compared, on so many training pictures of each class: mean and
standard deviation over draws.
"""

import contextlib
import functools
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.harness import make_parser, show_table

WAYS = {"linear head": ["--epochs", "0"], "fine-tuned": [], "scratch": []}
LAST = ("CONV_2D", "FULLY_CONNECTED")


class Peer:
    """A TFLite classifier with integers for pixels, and its features."""

    def __init__(self, path):
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        from keras_gmlp.weights.loading import load

        self.path, self.model = Path(path), load(path, threads=1)
        plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES  # they keep no tensors in between
        self.open = Interpreter(
            path, experimental_preserve_all_tensors=True, experimental_op_resolver_type=plain
        )
        self.open.allocate_tensors()
        (taken,) = self.open.get_input_details()
        self.place, self.shape, self.dtype = taken["index"], taken["shape"][1:], taken["dtype"]
        if self.dtype not in (np.uint8, np.int8):
            raise ValueError(f"{path}: takes {self.dtype.__name__}; expected a quantized model")
        layers = [op["inputs"] for op in self.open._get_ops_details() if op["op_name"] in LAST]
        self.features, *_ = layers[-1]

    def embed(self, images):
        """Returns the features of images, as integers: a head takes any scale and zero point."""
        found = []
        for image in images.astype("int16") + np.iinfo(self.dtype).min:
            self.open.set_tensor(self.place, image[None].astype(self.dtype))
            self.open.invoke()
            tensor = self.open.get_tensor(self.features)
            found.append(tensor.reshape(-1, tensor.shape[-1]).mean(0))  # of all places
        return np.stack(found).astype("float32")

    def read_features(self, folder):
        """Returns the vectors of the views of the training images, and those of the test images."""
        from keras_gmlp import data
        from keras_gmlp.tasks.linear_head import choose_views, cut_view

        found = data.load(folder, tuple(self.shape[:2]))
        images, labels = found.train.arrays()
        views = choose_views(len(images), found.mirror)
        vectors = np.stack([self.embed(cut_view(images, view)) for view in views])
        images, truth = found.test.arrays()
        return vectors, labels, self.embed(images), truth


def read_own_features(weights, folder):
    """Returns what `Peer.read_features` does, of weights as apps/train.py uses them."""
    from keras_gmlp.runs.prepare import prepare
    from keras_gmlp.runs.settings import RunSettings
    from keras_gmlp.tasks import linear_head

    prepared = prepare(RunSettings(weights=weights, data=folder))
    model, data, task = prepared.model, prepared.data, prepared.recipe.task
    vectors, labels = linear_head.read_training_features(model, data, task)
    views = linear_head.choose_views(len(data.test), False)[:1]
    (tested,), truth = linear_head.read_features(model, data.test, views)
    return vectors, labels, tested, truth


def score_linear_head(features, per_class=None, seed=0):
    """Returns the test accuracy in % of a head on so many random training images of a class."""
    from keras_gmlp.tasks.linear_head import STRENGTHS, fit_head, score_head

    vectors, labels, tested, truth = features
    classes, rng = labels.max() + 1, np.random.default_rng(seed)
    drawn = [rng.permutation(np.flatnonzero(labels == c))[:per_class] for c in range(classes)]
    cut = np.concatenate([places[: max(1, len(places) // 5)] for places in drawn])
    every = np.concatenate(drawn)
    kept = np.setdiff1d(every, cut)
    heads = fit_head(vectors[:, kept], labels[kept], classes, STRENGTHS)
    losses = [score_head(*head, vectors[0, cut], labels[cut])[1] for head in heads]
    strength = STRENGTHS[int(np.argmin(losses))]
    (head,) = fit_head(vectors[:, every], labels[every], classes, [strength])
    return 100 * score_head(*head, tested, truth)[0]


def train_own(way, options, folder):
    """Returns the test accuracy of a run in %, and its exported file."""
    from keras_gmlp.programs import run

    place = Path(folder, way.replace(" ", "-"))
    weights = "none" if way == "scratch" else options.weights
    given = ["--data", options.folder, "--weights", weights, "--out", str(place), *WAYS[way]]
    with contextlib.redirect_stdout(sys.stderr):
        if run("train", [*given, "--seed", str(options.seed)]):
            raise ValueError(f"{way} failed")
    accuracy = json.loads((place / "metrics.json").read_text())["test_accuracy"]
    return 100 * accuracy, place / "model.tflite"


def compare_ways(options, peers):
    """Returns a row for each way and each peer."""
    from keras_gmlp.inference.latency import time_calls
    from keras_gmlp.weights.loading import load

    rows, calls = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for way in options.only or WAYS:
            accuracy, file = train_own(way, options, folder)
            model = load(file, threads=1)
            rows.append({"": way, "accuracy, %": accuracy, "MB": file.stat().st_size / 1e6})
            image = np.zeros((1, *model.image_shape), "uint8")
            calls[way] = functools.partial(model.logits, image)
        for peer in peers:
            accuracy, name = score_linear_head(peer.read_features(options.folder)), peer.path.stem
            rows.append({"": name, "accuracy, %": accuracy, "MB": peer.path.stat().st_size / 1e6})
            calls[name] = functools.partial(peer.model.logits, np.zeros((1, *peer.shape), "uint8"))
        seconds = time_calls(calls, clock=time.process_time)
    return [{**row, "CPU ms": 1000 * seconds[row[""]]} for row in rows]


def compare_numbers(options, peers):
    """Returns a row for each model: the accuracy of its head for numbers of training pictures."""
    models = {options.weights: functools.partial(read_own_features, options.weights)}
    models |= {peer.path.stem: peer.read_features for peer in peers}
    rows = []
    for name, read in models.items():
        features = read(options.folder)
        rows.append({"": name})
        for number in options.per_class:
            found = [score_linear_head(features, number, seed) for seed in range(options.draws)]
            rows[-1][f"{number} of each"] = f"{np.mean(found):.1f} ± {np.std(found):.1f} %"
    return rows


def main(arguments=None):
    from keras_gmlp.utils.sources import DEFAULT_BACKBONE

    parser = make_parser("own_images", __doc__)
    add = parser.add_argument
    add("folder", metavar="FOLDER", help="as --data of apps/train.py")
    add("--weights", default=DEFAULT_BACKBONE, help="as of apps/train.py; default: %(default)s")
    add("--only", nargs="+", choices=WAYS, metavar="WAY", help=", ".join(WAYS))
    add("--peer", nargs="+", default=[], metavar="FILE.tflite")
    add("--per-class", type=int, nargs="+", metavar="N")
    add("--draws", type=int, default=5, help="with --per-class; default: 5")
    add("--seed", type=int, default=0, help="of the trainings; default: 0")
    options = parser.parse_args(arguments)
    try:
        peers = [Peer(path) for path in options.peer]
    except ValueError as error:
        parser.error(str(error))
    rows = compare_numbers(options, peers) if options.per_class else compare_ways(options, peers)
    show_table(rows, parser, arguments or sys.argv[1:], options.csv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
