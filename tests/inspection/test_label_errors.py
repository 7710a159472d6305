"""Planted wrong labels."""

import numpy as np
from pictures import digit, thumbnails
from sklearn.datasets import load_digits

from keras_gmlp.inspection.label_errors import (
    can_judge,
    find_label_errors,
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
