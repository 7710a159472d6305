"""Evaluates a trained model at other image sizes, without further training."""

import json
from fractions import Fraction
from pathlib import Path

from keras_gmlp.programs.shared import cli

KINDS = ("patch", "window", "resampled", "fresh")

EPILOG = """\
For each size, the images of the run's data set are scaled and up to four models are tested:
  patch      patches scale with the image: tokens and spatial weights stay the same
  window     spatial weights are resampled on the token grid; each token reads a window of pixels
             that scales with the image
  resampled  spatial weights are resampled on the token grid; patches keep their pixels
  fresh      spatial weights are as at the start of training; patches keep their pixels

examples:
  apps/evaluate_sizes.py gmlp_n4_32-cifar10 --sizes 48 64
  apps/evaluate_sizes.py runs/vit --sizes 40 --images 1000 --json

To train further at a size: apps/train.py --weights RUN --data NAME --image-size 48, with
--patch-window 6 or --patch-size 6.
exit codes: 0 done, 1 failure, 2 wrong usage, 130 stopped with Ctrl-C
"""


def parse(arguments):
    parser = cli.Parser(description=__doc__, epilog=EPILOG)
    parser.add_argument(
        "run", metavar="RUN", help="folder of a run, or the name of an included model"
    )
    parser.add_argument(
        "--sizes",
        type=cli.count,
        nargs="+",
        required=True,
        metavar="PIXELS",
        help="sides of the images, multiples of the patch size",
    )
    parser.add_argument(
        "--images", type=cli.count, metavar="N", help="test images to use; default: all"
    )
    cli.add_data_dir(parser)
    cli.add_backend(parser)
    parser.add_argument("--json", action="store_true", help="print the accuracies as JSON")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse(arguments)
    return cli.guarded("evaluate_sizes", lambda: run(options))


def run(options):
    rows = list(measure(options))
    if options.json:
        print(json.dumps(rows))
    return 0


def measure(options):
    """Yields a row of accuracies per size, and prints it."""
    cli.import_tensorflow()
    from keras_gmlp.data.datasets import load_recorded, require_one_label
    from keras_gmlp.utils.files import read_json
    from keras_gmlp.utils.shipped import find_shipped
    from keras_gmlp.weights import pretrained

    source = pretrained.load(options.run)
    recipe = read_json(Path(find_shipped(options.run)) / "recipe.json", {})
    name = recipe.get("data")
    if name is None:
        raise ValueError(f"{options.run}: no data named in recipe.json; expected a run's folder.")
    require_one_label(name)
    height, own, channels = source.model.input_shape[1:]
    if height != own:
        raise ValueError(
            f"{options.run}: expected a model for square images; received one for {height}x{own}."
        )
    sizes = list(dict.fromkeys([own, *options.sizes]))  # each once
    # All sizes first, so that a wrong one fails before any is measured.
    adapted = {size: source.adapt(input_shape=(size, size, channels)) for size in sizes}
    if not options.json:
        print("pixels" + "".join(f"{kind:>11}" for kind in KINDS))
    for size in sizes:
        fit = source.preparation.get("fit", "crop")
        shape = (size, size, channels)
        dataset = load_recorded(recipe, shape, fit=fit)
        row = measure_at(size, source, *adapted[size], dataset, options.images or -1)
        if not options.json:
            shown = (f"{100 * row[key]:.2f} %" if key in row else "-" for key in KINDS)
            print(f"{size:6}" + "".join(f"{text:>11}" for text in shown), flush=True)
        yield row


def measure_at(size, source, model, transfer, dataset, images):
    """Returns the accuracies at one size, by kind of adaptation."""
    import keras

    from keras_gmlp.layers import PatchEmbedding
    from keras_gmlp.models.structure import find_stem
    from keras_gmlp.tasks.image_classification import ImageClassification

    def accuracy(model):
        return ImageClassification().evaluate(model, dataset, samples=images)["accuracy"]

    if tuple(dataset.labels) != source.labels:
        raise ValueError(
            f"{source.origin}: the model's classes differ from those of {dataset.name}."
        )
    row = {"pixels": size, "resampled": accuracy(model)}
    stem = find_stem(source.model, PatchEmbedding)
    growth = Fraction(size, source.model.input_shape[1])
    patch = scaled_patch(stem, growth) if stem else None
    if patch:
        larger, _ = source.adapt(input_shape=dataset.image_shape, patch_size=patch)
        row |= {"patch_size": patch, "patch": accuracy(larger)}
    window = scaled_window(stem, growth) if stem else None
    if window:
        wider, _ = source.adapt(input_shape=dataset.image_shape, patch_window=window)
        row |= {"patch_window": window, "window": accuracy(wider)}
    if transfer.resized:
        keras.utils.set_random_seed(0)
        at_start = keras.models.clone_model(model).get_weights()
        for weight, value in zip(model.weights, at_start, strict=True):
            if weight.path in transfer.resized:
                weight.assign(value)
        row["fresh"] = accuracy(model)
    return row


def scaled_patch(stem, growth):
    """Returns the patch size scaled with the image, or `None` if it is not an integer."""
    patch = stem.patch_size * growth
    if stem.patch_window > stem.patch_size or growth == 1 or patch.denominator > 1:
        return None
    return int(patch)


def scaled_window(stem, growth):
    """Returns the window scaled with the image, or `None` if it would not grow."""
    more = stem.patch_window * growth - stem.patch_size
    window = stem.patch_size + 2 * round(more / 2)
    return window if window > stem.patch_window else None
