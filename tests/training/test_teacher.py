import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from check_layer import redraw_weights, to_numpy

import keras_gmlp
from keras_gmlp.data.image_data import ImageData
from keras_gmlp.training.recipes import Recipe
from keras_gmlp.training.tasks import ImageClassification
from keras_gmlp.training.teacher import load_teacher, teach
from keras_gmlp.training.train import train


def tiny_model(**overrides):
    keras.utils.set_random_seed(0)
    sizes = {"dim": 8, "depth": 1, "hidden_dim": 16, "patch_size": 4, "classes": 2}
    return keras_gmlp.gMLP(**{**sizes, "input_shape": (8, 8, 3), **overrides})


@pytest.mark.parametrize("labels", [[0, 1], [[1, 0, 0], [0, 1, 0]]])
@pytest.mark.parametrize(
    ("teaching", "answers"),
    [("soft", [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]), ("hard", [[1, 0, 0], [0, 0, 1]])],
)
def test_labels_by_hand(labels, teaching, answers):
    logits = np.log([[2.0, 1.0, 1.0], [1.0, 1.0, 2.0]]).astype("float32")
    rows = to_numpy(teach(keras.ops.array(labels), keras.ops.array(logits), 0.4, teaching))
    expected = 0.6 * np.eye(3)[:2] + 0.4 * np.array(answers)
    np.testing.assert_allclose(rows, expected, rtol=1e-6)


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


def test_model_learns_from_its_teacher_and_not_from_the_labels(folder, tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (16, 8, 8, 3)).astype("uint8")
    split = tf.data.Dataset.from_tensor_slices((images, np.zeros(16, "int64")))
    data = ImageData("zeros", ("zero", "one"), (8, 8, 3), split, split)
    task = ImageClassification(label_smoothing=0.0, teacher=str(folder), teacher_share=1.0)
    recipe = Recipe(epochs=3, batch_size=4, learning_rate=0.05, task=task)
    pipelines = ["host", "device"] if keras.backend.backend() == "jax" else ["host"]
    for pipeline in pipelines:
        chosen = dataclasses.replace(recipe, pipeline=pipeline)
        model = tiny_model()
        metrics = train(model, data, chosen, tmp_path / pipeline, verbose=0)
        assert metrics["test_accuracy"] == 0.0  # all of class 1, as the teacher says
        assert not any("teacher" in weight.path for weight in model.weights)
        saved = keras.saving.load_model(tmp_path / pipeline / "model.keras")
        assert saved.count_params() == tiny_model().count_params()


def test_teacher_must_fit(folder, tmp_path):
    with pytest.raises(ValueError, match=r"expects images of shape \(8, 8, 3\); the model has"):
        load_teacher(folder, tiny_model(input_shape=(16, 16, 3)))
    with pytest.raises(ValueError, match=r"expects classes \(2,\); the model has \(5,\)"):
        load_teacher(folder, tiny_model(classes=5))
    with pytest.raises(ValueError, match="no such folder"):
        load_teacher(tmp_path / "missing", tiny_model())
    with pytest.raises(ValueError, match="teaching must be one of soft, hard; received 'loud'"):
        ImageClassification(teaching="loud")
    with pytest.raises(ValueError, match=r"teacher_share must be in \[0, 1\]; received 2"):
        ImageClassification(teacher_share=2)
