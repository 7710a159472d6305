"""A head fitted to features: the probabilities of scikit-learn, in the model's own layer."""

import keras
import numpy as np
import pytest
from own_images import write_start
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import keras_gmlp
from keras_gmlp.data.images.samples import from_pixels
from keras_gmlp.tasks.linear_head import (
    choose_views,
    cut_view,
    fit_head,
    read_features,
    score_head,
    set_head,
)
from keras_gmlp.weights.pretrained import load

pytestmark = pytest.mark.once  # finetuning fits heads on other backends

WHOLE = choose_views(1, mirror=False)[:1]


def make_split(classes, images=70):
    rng = np.random.default_rng(1)
    labels = np.arange(images) % classes
    pixels = rng.integers(0, 150, (images, 8, 8, 3)) + 40 * labels[:, None, None, None]
    return from_pixels(pixels.clip(0, 255).astype("uint8"), labels)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    return load(write_start(tmp_path_factory.mktemp("start") / "start.keras"))


@pytest.mark.parametrize("classes", [2, 3])
def test_head_gives_the_probabilities_of_scikit_learn(start, classes):
    split = make_split(classes)
    model, _ = start.adapt(tuple("xyz"[:classes]))
    vectors, labels = read_features(model, split, WHOLE)
    images, truth = split.arrays()
    assert vectors.shape == (1, 70, 16)
    assert (labels == truth).all()
    expected = keras_gmlp.features(model).predict(images, verbose=0)
    np.testing.assert_allclose(vectors[0], expected, atol=1e-5)
    reference = make_pipeline(StandardScaler(), LogisticRegression(C=0.5, max_iter=1000))
    reference.fit(expected.astype("float64"), truth)
    (head,) = fit_head(vectors, labels, classes, [0.5])
    set_head(model, *head)
    logits = model.predict(images, verbose=0)
    probabilities = keras.ops.convert_to_numpy(keras.ops.softmax(logits))
    np.testing.assert_allclose(probabilities, reference.predict_proba(expected), atol=1e-4)
    accuracy, loss = score_head(*head, expected, truth)
    assert accuracy == reference.score(expected, truth)
    chosen = probabilities[np.arange(70), truth]
    assert loss == pytest.approx(-np.log(chosen).mean(), abs=1e-4)


def test_repeated_views_change_nothing():
    rng = np.random.default_rng(0)
    vectors, labels = rng.normal(size=(1, 40, 5)), np.arange(40) % 2
    (once,), (thrice,) = (fit_head(np.repeat(vectors, n, axis=0), labels, 2, [1.0]) for n in (1, 3))
    np.testing.assert_allclose(once[0], thrice[0], atol=1e-3)


def test_a_class_without_images_is_improbable_and_a_weighted_one_more_probable():
    rng = np.random.default_rng(0)
    vectors, labels = rng.normal(size=(1, 60, 4)), np.arange(60) % 2
    vectors[..., 3] = 7.0  # constant: its deviation is 0
    (kernel, bias), (_, weighted) = (
        next(fit_head(vectors, labels, 3, [1.0], weights)) for weights in (None, [1, 5, 1])
    )
    assert np.isfinite(kernel).all()
    assert (kernel[3] == 0).all()
    assert (kernel[:, 2] == 0).all()
    logits = vectors[0] @ kernel + bias
    assert (logits[:, 2] < logits[:, :2].max(axis=1) - 3).all()
    assert weighted[1] - weighted[0] > bias[1] - bias[0] + 1


def test_views():
    assert [len(choose_views(n, True)) for n in (1, 500, 1200, 3000, 50_000)] == [6, 5, 3, 3, 1]
    assert len(choose_views(1, False)) == 3
    images = np.arange(2 * 8 * 8 * 3, dtype="uint8").reshape(2, 8, 8, 3)
    whole, mirrored, cut, *_ = (cut_view(images, view) for view in choose_views(1, True))
    assert (whole == images).all()
    assert (mirrored == images[:, :, ::-1]).all()
    assert cut.shape == images.shape
    assert cut[0, 0, 0, 0] <= images[0, 1, 1, 0]  # the window begins at the upper left corner


def test_features_that_are_not_finite_are_an_error(start):
    model, _ = start.adapt(("x", "y"))
    norm = model.get_layer("norm")
    norm.set_weights([np.full_like(w, np.nan) for w in norm.get_weights()])
    with pytest.raises(ValueError, match="features are NaN or infinite"):
        read_features(model, make_split(2), WHOLE)
