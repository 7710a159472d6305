"""Accuracy of a trained model at other image sizes, without further training.

For each size the test images of the run's data set are scaled, and up to four models are tested:

patch      patches scale with the image: tokens and weights over tokens stay the same
window     weights over tokens are resampled; each token sees a window that scales with the image
resampled  weights over tokens are resampled; patches keep their pixels
fresh      weights over tokens are as at the start of training; patches keep their pixels
"""

import sys
from fractions import Fraction

import numpy as np

from benchmarks.harness import make_parser, show_table


def measure_size(source, data, images=-1):
    """Returns the accuracies of a `Pretrained` on test images, by the kind of model."""
    import keras

    from keras_gmlp.layers import PatchEmbedding
    from keras_gmlp.models.structure import find_stem

    pixels, labels = data.test.take(slice(images)).arrays()

    def accuracy(model):
        return 100 * float(np.mean(model.predict(pixels, verbose=0).argmax(1) == labels))

    model, transfer = source.adapt(input_shape=data.image_shape)
    found = {"resampled, %": accuracy(model)}
    stem = find_stem(source.model, PatchEmbedding)
    growth = Fraction(data.image_shape[0], source.model.input_shape[1])
    for kind, scaled in scale_patches(stem, growth).items() if stem else ():
        found[kind] = accuracy(source.adapt(input_shape=data.image_shape, **scaled)[0])
    if transfer.resized:
        keras.utils.set_random_seed(0)
        at_start = keras.models.clone_model(model).get_weights()
        for weight, value in zip(model.weights, at_start, strict=True):
            if weight.path in transfer.resized:
                weight.assign(value)
        found["fresh, %"] = accuracy(model)
    return found


def scale_patches(stem, growth):
    """Returns the patch and the window scaled with the image, if they are whole pixels."""
    scaled, patch = {}, stem.patch_size * growth
    if stem.patch_window <= stem.patch_size and growth != 1 and patch.denominator == 1:
        scaled["patch, %"] = {"patch_size": int(patch)}
    window = stem.patch_size + 2 * round((stem.patch_window * growth - stem.patch_size) / 2)
    if window > stem.patch_window:
        scaled["window, %"] = {"patch_window": window}
    return scaled


def main(arguments=None):
    parser = make_parser("image_sizes", __doc__)
    add = parser.add_argument
    add("run", metavar="RUN", help="folder of a run, or the name of an included model")
    add("--sizes", type=int, nargs="+", required=True, metavar="PIXELS", help="sides of the images")
    add("--images", type=int, default=-1, help="test images; default: all")
    options = parser.parse_args(arguments)
    from keras_gmlp.data.run_folder import Run
    from keras_gmlp.weights.pretrained import load

    source, run = load(options.run), Run(options.run)
    own, _, channels = source.model.input_shape[1:]
    fit, rows = source.preparation.get("fit", "crop"), []
    for size in dict.fromkeys([own, *options.sizes]):
        dataset = run.load_images((size, size, channels), fit=fit)
        rows.append({"": f"{size} pixels", **measure_size(source, dataset, options.images)})
    show_table(rows, parser, arguments or sys.argv[1:], options.csv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
