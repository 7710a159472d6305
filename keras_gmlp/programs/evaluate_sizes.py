"""Evaluates a trained model at other image sizes, without further training."""

from fractions import Fraction
from pathlib import Path

from keras_gmlp.programs.shared import cli

KINDS = ("patch", "window", "resampled", "fresh")

USAGE = """\
run RUN  folder of a run, or the name of an included model
--sizes PIXELS:count+  sides of the images, multiples of the patch size
--images N:count  test images to use; default: all
--data-dir
--backend
--json  print the accuracies as JSON

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
"""


def run(options):
    cli.show_result(options, list(measure(options)))


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
    for kind, scaled in scale_patches(stem, growth).items() if stem else ():
        larger, _ = source.adapt(input_shape=dataset.image_shape, **scaled)
        row |= {**scaled, kind: accuracy(larger)}
    if transfer.resized:
        keras.utils.set_random_seed(0)
        at_start = keras.models.clone_model(model).get_weights()
        for weight, value in zip(model.weights, at_start, strict=True):
            if weight.path in transfer.resized:
                weight.assign(value)
        row["fresh"] = accuracy(model)
    return row


def scale_patches(stem, growth):
    """Returns the patch and the window scaled with the image, if they are integers."""
    scaled, patch = {}, stem.patch_size * growth
    if stem.patch_window <= stem.patch_size and growth != 1 and patch.denominator == 1:
        scaled["patch"] = {"patch_size": int(patch)}
    more = stem.patch_window * growth - stem.patch_size
    window = stem.patch_size + 2 * round(more / 2)
    if window > stem.patch_window:
        scaled["window"] = {"patch_window": window}
    return scaled


main = cli.Program("evaluate_sizes", __doc__, USAGE, run, sizes={"required": True})
