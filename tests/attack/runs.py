"""Damaged run folders: the same command refuses them or ends as if nothing had happened."""

import keras
import numpy as np

import keras_gmlp
from attack.kinds import SilentLossError
from attack.mutations import VALUES, copy_folder, mutate
from keras_gmlp.data import ArraySplit, Augmentation, ImageData
from keras_gmlp.models.saved import load_model
from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.training.callbacks import TimeLimitError
from keras_gmlp.training.recipes import Recipe
from keras_gmlp.training.train import train
from keras_gmlp.utils.files import write_json

TASK = ImageClassification(augmentation=Augmentation(crop=0, flip=False))
RECIPE = Recipe(epochs=2, batch_size=8, learning_rate=0.01, task=TASK)


class Runs:
    """Each case is the folder of a complete or a stopped run with one or two damaged files."""

    def __init__(self, folder):
        self.complete, self.stopped = folder / "complete", folder / "stopped"
        train_run(self.complete)
        try:
            train_run(self.stopped, time_limit=0)
        except TimeLimitError:
            self.weights = load_model(self.complete / "model.keras").get_weights()
        else:
            raise AssertionError("the run was not stopped")

    def make(self, rng, folder):
        run = folder / "run"
        for path in copy_folder(rng.choice((self.complete, self.stopped)), run, rng):
            change = rng.randrange(5)
            if change == 0:
                path.unlink()
            elif change == 1:
                path.write_bytes(b"")
            elif change == 2 and path.suffix == ".json":
                write_json(path, rng.choice([value for value in VALUES if value != "\ud800"]))
            else:
                path.write_bytes(mutate(path.read_bytes(), rng))
        return run

    def check(self, run):
        train_run(run)
        weights = load_model(run / "model.keras").get_weights()
        if not all(map(np.array_equal, weights, self.weights)):
            raise SilentLossError("the run went on and ended with other weights.")


def train_run(folder, **options):
    """Trains a small model on dark and bright images."""
    labels = np.arange(16) % 2
    images = np.broadcast_to(200 * labels[:, None, None, None], (16, 4, 4, 1)).astype("uint8")
    split = ArraySplit(images, labels)
    data = ImageData("shades", ("dark", "bright"), (4, 4, 1), split, split)
    keras.utils.set_random_seed(0)
    model = keras_gmlp.gMLP(4, 1, hidden_dim=8, patch_size=4, classes=2, input_shape=(4, 4, 1))
    return train(model, data, RECIPE, folder, verbose=0, **options)
