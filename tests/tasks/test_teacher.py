"""Distillation: losses by hand, and runs whose model learns what a teacher says."""

import dataclasses

import keras
import numpy as np
import pytest
from check_layer import redraw_weights, to_numpy
from read_table import read_table
from tiny_run import Kill, KillWithin, make_data, tiny_model

from keras_gmlp.data.batches.augmentation import Augmentation
from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.tasks.teacher import features_loss, load_teacher, run_teacher
from keras_gmlp.training.recipes import Recipe
from keras_gmlp.training.train import train


def test_features_loss_by_hand():
    teacher = np.array([[1.0, 3.0], [5.0, 5.0]], "float32")  # normalized: (-1, 1) and (0, 0)
    student = np.array([[0.0, 0.0], [2.0, 1.0]], "float32")
    found = to_numpy(features_loss(keras.ops.array(teacher), keras.ops.array(student)))
    np.testing.assert_allclose(found, [1.0, 2.5], rtol=1e-5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run whose model answers class 1 for every image."""
    folder = tmp_path_factory.mktemp("teacher")
    model = tiny_model()
    redraw_weights(model)
    head = model.get_layer("head")
    head.kernel.assign(np.zeros((8, 2)))
    head.bias.assign([0.0, 9.0])
    model.save(folder / "model.keras")
    return folder


def random_teacher(folder, **overrides):
    model = tiny_model(**overrides)
    redraw_weights(model)
    model.save(folder / "model.keras")


def first_loss(task, data, directory, pipeline="host"):
    """Returns the loss of one epoch of one batch, at a rate that changes nothing."""
    recipe = Recipe(epochs=1, batch_size=24, learning_rate=1e-9, ema=0.0, task=task)
    model = tiny_model()
    for weight in model.weights:  # the same on each backend
        weight.assign(np.random.default_rng(len(weight.shape)).normal(0, 0.3, weight.shape))
    train(model, data, dataclasses.replace(recipe, pipeline=pipeline), directory, verbose=0)
    return float(read_table(directory / "history.csv")[0]["loss"]), model


@pytest.mark.eager
def test_loss_of_a_batch_with_a_teacher(folder, tmp_path):
    data = make_data()
    shared = {"label_smoothing": 0.0, "augmentation": Augmentation(crop=0, flip=False)}
    task = ImageClassification(teacher=str(folder), teacher_share=0.25, temperature=2.0, **shared)
    found, model = first_loss(task, data, tmp_path / "run")
    images, labels = data.train.arrays()
    logits = model.predict(images, verbose=0).astype("float64")

    def cross_entropy(rows, logits):
        logits = logits - logits.max(-1, keepdims=True)
        return -(rows * (logits - np.log(np.exp(logits).sum(-1, keepdims=True)))).sum(-1).mean()

    soft = np.exp([0.0, 4.5]) / np.exp([0.0, 4.5]).sum()  # what the teacher says, at temperature 2
    expected = 0.75 * cross_entropy(np.eye(2)[labels], logits)
    expected += 0.25 * 4 * cross_entropy(soft[None], logits / 2)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    if keras.backend.backend() == "jax":
        on_device, _ = first_loss(task, data, tmp_path / "device", "device")
        np.testing.assert_allclose(on_device, expected, rtol=1e-5)


@pytest.mark.once
def test_model_learns_features_and_the_run_resumes(tmp_path):
    random_teacher(tmp_path, dim=12)
    data = make_data()
    task = ImageClassification(teacher=str(tmp_path), teacher_share=0.5, feature_weight=1.0)
    recipe = Recipe(epochs=3, batch_size=4, learning_rate=0.01, task=task, pipeline="host")

    whole, killed = tiny_model(), tiny_model()
    train(whole, data, recipe, tmp_path / "whole", verbose=0)
    with pytest.raises(Kill):
        train(killed, data, recipe, tmp_path / "killed", callbacks=[KillWithin(2)], verbose=0)
    resumed = tiny_model()
    train(resumed, data, recipe, tmp_path / "killed", verbose=0)
    for ours, theirs in zip(resumed.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    losses = [float(row["loss"]) for row in read_table(tmp_path / "whole/history.csv")]
    assert losses[-1] < losses[0]
    saved = keras.saving.load_model(tmp_path / "whole/model.keras")
    assert saved.count_params() == tiny_model().count_params()  # without the map of features


def test_teacher_of_another_size_sees_scaled_images(tmp_path):
    random_teacher(tmp_path, input_shape=(16, 16, 3))
    teacher = load_teacher(tmp_path, tiny_model())
    images = np.full((1, 8, 8, 3), 77, "float32")
    same = np.full((1, 16, 16, 3), 77, "float32")
    for ours, theirs in zip(run_teacher(teacher, images), run_teacher(teacher, same), strict=True):
        np.testing.assert_allclose(to_numpy(ours), to_numpy(theirs), atol=1e-5)


@pytest.mark.once
def test_teacher_must_fit(folder, tmp_path):
    grey, five = tiny_model(input_shape=(8, 8, 1)), tiny_model(classes=5)
    for place, model, match in (
        (folder, grey, "channels"),
        (folder, five, "classes"),
        (tmp_path / "missing", five, "no such"),
    ):
        with pytest.raises(ValueError, match=match):
            load_teacher(place, model)
    assert load_teacher(folder, five, logits=False).output_shape[0] == (None, 2)
    for name, value in (("temperature", 0), ("feature_weight", 1.0)):
        with pytest.raises(ValueError, match=name):
            ImageClassification(**{name: value})
