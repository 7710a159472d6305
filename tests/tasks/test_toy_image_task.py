"""A task of a user's own, a regression on images, is one class that no module knows.

It trains, is exported and checked, gets a model card, is opened and called.
"""

import dataclasses

import keras
import numpy as np
import pytest

import keras_gmlp
from keras_gmlp.data import Augmentation, ImageData
from keras_gmlp.data.images.samples import from_pixels
from keras_gmlp.export.verify import export_run
from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.training.recipes import Recipe
from keras_gmlp.training.train import train
from keras_gmlp.utils.card import write_card

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="exported on TensorFlow"
)


@dataclasses.dataclass(frozen=True)
class Brightness(ImageClassification):
    """Predicts the class of an image as a number, since the classes have an order."""

    name = "brightness"
    headline = "error"
    kind = "a model of brightness"
    output = "the brightness"

    def objective(self, model, data=None):
        return keras.losses.MeanSquaredError(), [keras.metrics.MeanAbsoluteError("error")]

    def check_fit(self, model, data):
        assert model.output_shape == (None, 1)

    def write_card(self, path, model, data, metadata):
        write_card(path, model, ["brightness"], {**metadata, "task": self.name})

    @classmethod
    def predict(cls, model, image):
        return float(model.logits(model.read(image)[None])[0, 0])

    @classmethod
    def check_samples(cls, model, data):
        images, values = data.test.arrays()
        return images, values.astype("float32")

    @classmethod
    def score_logits(cls, logits, truth):
        return {"error": round(float(np.abs(logits[:, 0] - truth).mean()), 6)}


def make_data():
    random = np.random.default_rng(0)
    labels = np.arange(80) % 4
    images = random.integers(0, 20, (80, 8, 8, 1)) + 70 * labels[:, None, None, None]
    splits = [
        from_pixels(images[s].astype("uint8"), labels[s]) for s in np.split(np.arange(80), [64])
    ]
    return ImageData("shades", ("black", "dark", "light", "white"), (8, 8, 1), *splits)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run, and its metrics."""
    keras.utils.set_random_seed(0)
    model = keras_gmlp.gMLP(8, 1, 16, input_shape=(8, 8, 1), patch_size=4, classes=1)
    folder = tmp_path_factory.mktemp("brightness") / "run"
    task = Brightness(augmentation=Augmentation(crop=0, flip=False))
    recipe = Recipe(epochs=12, batch_size=8, learning_rate=0.02, ema=0.0, task=task)
    return folder, train(model, make_data(), recipe, folder, verbose=0)


def test_it_learns_is_opened_called_and_has_a_model_card(run):
    assert run[1]["test_error"] < 0.5  # of the mean value: 1
    gauge = keras_gmlp.load(run[0])
    images, values = make_data().test.arrays()
    found = [gauge(image) for image in images]
    assert np.abs(found - values).mean() == pytest.approx(run[1]["test_error"], abs=1e-4)
    card = (run[0] / "README.md").read_text()
    assert "A model of brightness, trained with `keras_gmlp` on `shades`" in card
    assert "| output | the brightness |" in card
    assert f"| `model.keras` | {round(run[1]['test_error'], 4)} |" in card


def test_its_export_is_checked(run):
    folder, metrics = run
    found = export_run(folder, ["tflite_float32"], make_data())["tflite_float32"]
    assert found["max_logit_difference"] < 1e-4
    assert found["error"] == pytest.approx(metrics["test_error"], abs=1e-4)
    small = keras_gmlp.load(folder / "model_float32.tflite")
    assert (small.model, small.labels) == (None, ("brightness",))
