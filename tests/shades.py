"""Trains a tiny model on generated pictures; tests start it in processes of their own."""

import sys

import keras
import numpy as np

import keras_gmlp
from keras_gmlp.data import ImageData
from keras_gmlp.data.images.samples import from_arrays
from keras_gmlp.training.callbacks import TimeLimitError
from keras_gmlp.training.devices import find_process
from keras_gmlp.training.recipes import find_recipe, override

SHAPE = {"input_shape": (8, 8, 1), "classes": 3, "patch_size": 4}
SIZES = {"dim": 16, "depth": 2, "hidden_dim": 32, "attention_size": 8}


def make_data():
    """Returns 146 training images and 54 test images, which 4 and 8 devices cannot divide."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 200)
    images = rng.integers(0, 80, (200, 8, 8, 1)) + 80 * labels[:, None, None, None]
    images = images.astype("uint8")
    train, test = from_arrays(images[:146], labels[:146]), from_arrays(images[146:], labels[146:])
    return ImageData("shades", ("dark", "grey", "light"), (8, 8, 1), train, test)


def train_on(name, devices=1, pipeline="device", model_parallel=1, stop=False, **others):
    """Trains three epochs, or one if `stop`, and writes the weights to the folder `name`."""
    changes = {"epochs": 3, "batch_size": 48, "precision": "float32", "optimizer": "muon"}
    changes |= {"mixup": 0.3, "cutmix": 0.3, "stochastic_depth": 0.2, "ema": 0.2}
    recipe = override(find_recipe("quick"), {**changes, "pipeline": pipeline, **others})
    keras.utils.set_random_seed(0)
    with keras_gmlp.use_devices(devices, model_parallel):
        model = keras_gmlp.aMLP(**SHAPE, **SIZES, **recipe.model_arguments())
        kernel = model.get_layer("block_0").expand.kernel.value
        parts = {shard.data.shape for shard in kernel.addressable_shards}
        limit = 0 if stop else None
        try:
            keras_gmlp.train(model, make_data(), recipe, name, verbose=0, time_limit=limit)
        except TimeLimitError:
            return
        np.savez(f"{name}/weights-{find_process()[0]}.npz", *model.get_weights())
    print(name, len(kernel.sharding.device_set), *parts)


def read_weights(folder, process=0):
    """Returns the weights that a process wrote to the folder of a run."""
    with np.load(folder / f"weights-{process}.npz") as arrays:
        return [arrays[key] for key in arrays]


if __name__ == "__main__":
    port, processes, process = map(int, sys.argv[1:4])
    keras.distribution.initialize(f"127.0.0.1:{port}", processes, process)
    train_on("stopped", 2, model_parallel=2, stop=True)
    train_on("stopped", 2)
    train_on("shared", 2, "host", epochs=1)
    try:
        train_on("other", 2, "host", epochs=1, seed=1 + process)
    except ValueError as error:
        print(error)
