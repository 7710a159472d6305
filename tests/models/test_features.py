"""The vectors before the head of a classifier."""

import keras
import numpy as np
from check_layer import to_numpy
from random_models import random_model

from keras_gmlp import features

IMAGES = np.random.default_rng(1).integers(0, 256, (3, 16, 16, 3), "uint8")


def logits_from(vectors, model):
    """Returns the mean of the logits that each head computes from its part of the vectors."""
    heads = [layer for layer in model.layers if layer.name.startswith("head")]
    parts = np.split(vectors, len(heads), axis=1)
    logits = [to_numpy(head(part)) for head, part in zip(heads, parts, strict=True)]
    return np.mean(logits, axis=0)


def test_logits_are_a_linear_function_of_the_features():
    for family, overrides, size in (
        ("gmlp", {}, 32),
        ("gmlp", {"pooling": "attention"}, 32),
        ("vit", {}, 32),
        ("deit", {}, 64),
        ("resnet", {"depth": 8}, 32),
        ("convnet", {}, 12),
    ):
        model = random_model(family, **overrides)
        body = features(model)
        vectors = to_numpy(body(IMAGES))
        assert vectors.shape == (3, size) == (3, body.output_shape[1])
        expected = to_numpy(model(IMAGES))
        assert np.ptp(expected, axis=0).min() > 1e-3
        np.testing.assert_allclose(logits_from(vectors, model), expected, atol=1e-4)
        weight = model.trainable_weights[0]  # the features follow those of the classifier
        weight.assign(0.5 * to_numpy(weight))
        vectors, expected = to_numpy(body(IMAGES)), to_numpy(model(IMAGES))
        np.testing.assert_allclose(logits_from(vectors, model), expected, atol=1e-4)


def test_features_of_a_model_in_mixed_precision_are_float32():
    model = random_model("deit", dtype="mixed_bfloat16")
    vectors = features(model)(IMAGES)
    assert keras.backend.standardize_dtype(vectors.dtype) == "float32"
    assert vectors.shape == (3, 64)
