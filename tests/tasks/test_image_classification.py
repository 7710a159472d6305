"""Image classification: its batches, its figures, and the balance of the classes."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_run import tiny_model

import keras_gmlp
from keras_gmlp.data.batches.augmentation import Augmentation
from keras_gmlp.data.batches.order import Position
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.samples import from_pixels
from keras_gmlp.tasks import image_classification
from keras_gmlp.tasks.image_classification import ImageClassification


@pytest.fixture
def data():
    """Dark images of class 0, bright ones of class 1."""
    labels = np.arange(12, dtype="int64") % 2
    images = np.full((12, 8, 8, 3), 30, "uint8") + 190 * labels[:, None, None, None]
    whole = tf.data.Dataset.from_tensor_slices((images.astype("uint8"), labels))
    return ImageData("shades", ("dark", "bright"), (8, 8, 3), whole.take(8), whole.skip(8))


@pytest.mark.once
def test_image_task_smooths_labels_in_training_alone(data):
    task = ImageClassification(label_smoothing=0.2)
    for given, smoothing in ((data, 0.2), (None, 0.0)):
        loss, (metric,) = task.objective(None, given)
        assert (loss.label_smoothing, metric.name) == (smoothing, task.headline)


def test_image_task_augments_training_images_alone(data):
    task = ImageClassification(augmentation=Augmentation(crop=0, flip=False, cutout=0.5))
    (images, _), *_ = task.training_batches(data, 8, Position())
    assert (images.numpy() == 0).any()
    (images, _), *_ = task.evaluation_batches(data, "train", samples=4)
    assert images.shape[0] == 4
    assert set(np.unique(images)) == {30, 220}


@pytest.mark.once
def test_batches_of_test_images_fit_the_hardware(monkeypatch):
    images = np.zeros((320, 128, 128, 3), "uint8")
    data = keras_gmlp.data.from_arrays((images, np.zeros(len(images), "int64")))
    for found, expected in (([], 18), (["cuda:0"], 250)):
        monkeypatch.setattr(image_classification, "accelerators", lambda found=found: found)
        batches = ImageClassification().evaluation_batches(data, "train")
        assert next(iter(batches))[0].shape[0] == expected


def test_evaluation_counts_by_hand(data):
    model = tiny_model()
    head = model.get_layer("head")
    head.bias.assign([5.0, -5.0])  # always dark
    task = ImageClassification()
    values = task.evaluate(model, data)
    assert values["accuracy"] == 0.5
    assert values["loss"] == pytest.approx(5.0, abs=1e-3)  # half of 10


@pytest.mark.once
def test_balance_weighs_the_classes():
    split = from_pixels(np.zeros((256, 4, 4, 1), "uint8"), np.repeat([0, 1], [240, 16]))
    data = ImageData("long tail", ("common", "rare"), (4, 4, 1), split, split)

    def weigh(balance, data=data):
        return ImageClassification(balance=balance).objective(None, data)[0].class_weights

    weights = {balance: weigh(balance) for balance in (0, 1)}
    assert weights == {0: None, 1: pytest.approx([256 / 480, 256 / 32])}
    half = weigh(0.5)
    assert half[1] / half[0] == pytest.approx(np.sqrt(240 / 16))
    assert (240 * half[0] + 16 * half[1]) / 256 == pytest.approx(1)
    assert weigh(1, None) is None
    with pytest.raises(ValueError, match="balance"):
        ImageClassification(balance=2)
