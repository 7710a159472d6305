"""Planted wrong labels."""

import numpy as np
import pytest
from blobs import digit, thumbnails
from sklearn.datasets import load_digits

from keras_gmlp.analysis.label_errors import (
    can_judge,
    find_label_errors,
    make_embedder,
    predict_out_of_fold,
    thumbnail_features,
)


def flip_labels(labels, rng):
    flipped = rng.choice(len(labels), len(labels) // 20, replace=False)
    labels = labels.copy()
    labels[flipped] = (labels[flipped] + rng.integers(1, 10, len(flipped))) % 10
    return labels, set(flipped.tolist())


def test_flipped_labels_are_found():
    digits = load_digits()
    labels, flipped = flip_labels(digits.target[:600], np.random.default_rng(1))
    features = thumbnail_features(thumbnails(map(digit, digits.images[:600])))
    probabilities = predict_out_of_fold(features, labels)
    found = find_label_errors(probabilities, labels)
    assert can_judge(probabilities, labels)
    assert len(flipped & set(found)) >= 0.7 * len(flipped)
    assert len(flipped & set(found)) >= 0.5 * len(found)
    right = sum(found[i] == digits.target[i] for i in flipped & set(found))
    assert right >= 0.9 * len(flipped & set(found))


def test_confident_learning_by_hand():
    labels = np.array([0, 0, 0, 1, 1, 1])
    probability = np.array([0.9, 0.8, 0.1, 0.04, 0.2, 0.45])  # of class 0
    probabilities = np.stack([probability, 1 - probability], axis=1)
    # The means of the labels are 0.6 and 0.77; no class is confident in the last picture.
    assert find_label_errors(probabilities, labels) == {2: 1}
    assert can_judge(probabilities, labels)
    assert not can_judge(probabilities, 1 - labels)


def test_features_that_explain_nothing_judge_nothing():
    labels = np.arange(100) % 2
    features = np.random.default_rng(0).normal(size=(100, 8))
    assert not can_judge(predict_out_of_fold(features, labels), labels)


def test_embedder_returns_what_the_head_takes():
    import keras

    import keras_gmlp

    model = keras_gmlp.gMLP(
        input_shape=(8, 8, 1), classes=3, patch_size=4, dim=16, depth=1, hidden_dim=32
    )
    images = np.random.default_rng(0).integers(0, 256, (70, 8, 8, 1))
    features = make_embedder(model, lambda index: images[index])(range(70))
    assert features.shape == (70, 16)
    logits = keras.ops.convert_to_numpy(model.get_layer("head")(features))
    np.testing.assert_allclose(logits, model.predict(images, verbose=0), atol=1e-5)
    with pytest.raises(ValueError, match="no layer named head; expected an image classifier"):
        make_embedder(keras.Sequential([keras.Input((8, 8, 1))], name="other"), None)
