"""Tasks: what the training loop asks of one, and image classification."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_gmlp
from keras_gmlp.data.batches.augmentation import Augmentation
from keras_gmlp.data.batches.share import Position
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.splits import ArraySplit
from keras_gmlp.tasks import image_classification
from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.tasks.task import Task
from keras_gmlp.training.recipes import Recipe
from keras_gmlp.training.train import train
from keras_gmlp.utils.card import read_card

SIZES = {"dim": 8, "depth": 1, "hidden_dim": 16, "patch_size": 4, "input_shape": (8, 8, 3)}


@pytest.fixture
def data():
    """Dark images of class 0, bright ones of class 1."""
    labels = np.arange(12, dtype="int64") % 2
    images = np.full((12, 8, 8, 3), 30, "uint8") + 190 * labels[:, None, None, None]
    whole = tf.data.Dataset.from_tensor_slices((images.astype("uint8"), labels))
    return ImageData("shades", ("dark", "bright"), (8, 8, 3), whole.take(8), whole.skip(8))


@pytest.mark.once
def test_image_task_smooths_labels_in_training_alone():
    task = ImageClassification(label_smoothing=0.2)
    assert (task.loss().label_smoothing, task.loss(training=False).label_smoothing) == (0.2, 0.0)
    assert [metric.name for metric in task.metrics()] == [task.headline]


@pytest.mark.once
def test_image_task_describes_the_data(data, tmp_path):
    task = ImageClassification()
    described = {"data": "shades", "image_shape": [8, 8, 3], "labels": ["dark", "bright"]}
    described["fit"] = "crop"
    assert json.loads(json.dumps(task.describe_data(data))) == described
    assert task.size(data) == 8
    task.write_files(data, tmp_path)
    assert (tmp_path / "labels.txt").read_text() == "dark\nbright\n"


def test_image_task_augments_training_images_alone(data):
    task = ImageClassification(augmentation=Augmentation(crop=0, flip=False, cutout=0.5))
    (images, _), *_ = task.training_batches(data, 8, Position())
    assert (images.numpy() == 0).any()
    (images, _), *_ = task.evaluation_batches(data, "train", samples=4)
    assert images.shape[0] == 4
    assert set(np.unique(images)) == {30, 220}


@pytest.mark.once
@pytest.mark.parametrize(("side", "processor", "device"), [(32, 250, 1000), (128, 18, 250)])
def test_batches_of_test_images_fit_the_hardware(side, processor, device, monkeypatch):
    images = np.zeros((2500 if side == 32 else 320, side, side, 3), "uint8")
    data = keras_gmlp.data.from_arrays((images, np.zeros(len(images), "int64")))
    for found, expected in (([], processor), (["cuda:0"], device)):
        monkeypatch.setattr(image_classification, "accelerators", lambda found=found: found)
        batches = ImageClassification().evaluation_batches(data, "train")
        assert next(iter(batches))[0].shape[0] == expected


def test_evaluation_counts_by_hand(data):
    model = keras_gmlp.gMLP(**SIZES, classes=2)
    head = model.get_layer("head")
    head.bias.assign([5.0, -5.0])  # always dark
    task = ImageClassification()
    values = task.evaluate(model, data)
    assert values["accuracy"] == 0.5
    assert values["loss"] == pytest.approx(5.0, abs=1e-3)  # half of 10
    measured = task.measure(model, data)
    assert measured["test_loss"] == values["loss"]
    assert (measured["test_accuracy"], measured["train_accuracy"]) == (0.5, 0.5)


@pytest.mark.once
def test_model_of_another_shape_or_classes(data):
    task = ImageClassification()
    task.check_fit(keras_gmlp.gMLP(**SIZES, classes=2), data)
    with pytest.raises(ValueError, match=r"requires images of shape .* shades has \(8, 8, 3\)"):
        task.check_fit(keras_gmlp.gMLP(**{**SIZES, "input_shape": (8, 8, 1)}, classes=2), data)
    with pytest.raises(ValueError, match=r"has 3 classes; shades has 2. Build .* with classes=2"):
        task.check_fit(keras_gmlp.gMLP(**SIZES, classes=3), data)


@dataclasses.dataclass(frozen=True)
class Regression(Task):
    """A task without images, labels or classes."""

    scale: float = 1.0

    name = "regression"
    headline = "error"
    unit = "points"

    def loss(self, training=True):
        return keras.losses.MeanSquaredError()

    def metrics(self):
        return [keras.metrics.MeanSquaredError(name="error")]

    def check_fit(self, model, data):
        pass

    def size(self, data):
        return len(data)

    def training_batches(self, data, batch_size, position):
        return self._samples(data).batch(batch_size)

    def evaluation_batches(self, data, split="test", samples=-1):
        return self._samples(data).take(samples).batch(4)

    def _samples(self, data):
        pixels = np.broadcast_to(data[:, None, None, None], (len(data), 8, 8, 3))
        return tf.data.Dataset.from_tensor_slices((pixels, self.scale * data[:, None]))

    def describe_data(self, data):
        return {"data": "points"}


def test_training_loop_knows_no_images(tmp_path):
    keras.utils.set_random_seed(0)
    task = Regression(scale=0.5)
    recipe = Recipe(epochs=2, batch_size=4, task=task)
    points = np.linspace(0, 1, 8, dtype="float32")
    metrics = train(keras_gmlp.gMLP(**SIZES, classes=1), points, recipe, tmp_path, verbose=0)
    assert metrics["points_per_second"] > 0
    recorded = json.loads((tmp_path / "recipe.json").read_text())
    assert (recorded["task"], recorded["scale"], recorded["data"]) == ("regression", 0.5, "points")
    assert not (tmp_path / "labels.txt").exists()
    assert "image_shape" not in recorded
    assert metrics["test_error"] >= 0
    assert read_card(tmp_path / "model.keras") == {}
    assert (tmp_path / "curves.png").exists()
    assert not (tmp_path / "README.md").exists()


def long_tailed():
    """Two classes that overlap in brightness; the bright one has a sixteenth of the images."""
    random = np.random.default_rng(0)
    labels = np.r_[np.zeros(240), np.ones(16)].astype("int64")
    means = np.where(labels, 150, 110) + random.normal(0, 25, 256)
    images = np.clip(means, 0, 255)[:, None, None, None] * np.ones((1, 4, 4, 1))
    rare = ArraySplit(images.astype("uint8"), labels)
    return ImageData("long tail", ("common", "rare"), (4, 4, 1), rare, rare)


@pytest.mark.once
def test_balance_weighs_the_classes():
    data = long_tailed()
    weights = {b: ImageClassification(balance=b).training_loss(data).class_weights for b in (0, 1)}
    assert weights == {0: None, 1: pytest.approx([256 / 480, 256 / 32])}
    half = ImageClassification(balance=0.5).training_loss(data).class_weights
    assert half[1] / half[0] == pytest.approx(np.sqrt(240 / 16))
    assert (240 * half[0] + 16 * half[1]) / 256 == pytest.approx(1)
    assert ImageClassification(balance=1).loss(training=False).class_weights is None
    with pytest.raises(ValueError, match=r"balance must be in \[0, 1\]; received 2"):
        ImageClassification(balance=2)


@pytest.mark.once
def test_balance_raises_the_recall_of_the_rare_class(tmp_path):
    data, recalls = long_tailed(), {}
    for balance in (0.0, 1.0):
        augmentation = Augmentation(crop=0, flip=False, mixup=0.2)
        task = ImageClassification(balance=balance, augmentation=augmentation)
        recipe = Recipe(epochs=4, batch_size=16, learning_rate=0.02, task=task)
        keras.utils.set_random_seed(0)
        model = keras_gmlp.gMLP(4, 1, 8, patch_size=4, classes=2, input_shape=(4, 4, 1))
        train(model, data, recipe, tmp_path / str(balance), verbose=0)
        predicted = keras.ops.convert_to_numpy(model(data.test.arrays()[0])).argmax(-1)
        recalls[balance] = predicted[240:].mean()
    assert recalls[1.0] > recalls[0.0] + 0.3
