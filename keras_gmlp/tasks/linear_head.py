"""A linear head on the features of a model, fitted in seconds, as a logistic regression."""

import keras
import numpy as np

from keras_gmlp.data.images.samples import resize_images
from keras_gmlp.models.saved import require_numbers
from keras_gmlp.models.structure import features, find_zooms
from keras_gmlp.tasks.scores import rank_classes
from keras_gmlp.utils.environment import accelerators, require
from keras_gmlp.utils.progress import PATIENCE, ProgressBar

# Inverse strengths of the regularization, for standardized features.
STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

# Where a view looks, as shares of the side: top, left, side. The first is the whole image.
WINDOWS = ((0, 0, 1), (0, 0, 0.85), (0.15, 0.15, 0.85))

# Every image gets so many views, and further ones while there are few; one of very many images.
VIEWS, FURTHER, MANY = 3, 1000, 10_000

TOGETHER = 64  # views that the model takes at a time

STEPS = 1000  # of L-BFGS, at most


def choose_views(images, mirror, own=1):
    """Returns views of each image, windows and mirrored or not; fewer for a model with `own`."""
    mirrors = (False, True) if mirror else (False,)
    views = [(window, mirrored) for window in WINDOWS for mirrored in mirrors]
    count = VIEWS + FURTHER // max(1, images) if images < MANY else 1
    return views[: max(1, count // own)]


def cut_view(images, view):
    """Returns a view of images, uint8 `(samples, height, width, channels)`."""
    (top, left, share), mirrored = view
    if share < 1:
        height, width = images.shape[1:3]
        top, left = round(top * height), round(left * width)
        rows, columns = max(1, round(share * height)), max(1, round(share * width))
        part = images[:, top : top + rows, left : left + columns]
        images = resize_images(part, images.shape[1:], "stretch")
    return images[:, :, ::-1] if mirrored else images


def read_features(model, split, views):
    """Computes the vectors before the head of a model."""
    embed, vectors, labels = without_compiler(features(model)), [], []
    together = TOGETHER // len(find_zooms(model))
    with ProgressBar("reading features", len(split)) as progress:
        for images, truth in split.keep().batches(together):
            # Always as many, since TensorFlow and JAX compile each number again.
            full = images[np.arange(together) % len(images)]
            seen = [embed.predict_on_batch(cut_view(full, view)) for view in views]
            vectors.append(np.stack(seen)[:, : len(images)].astype("float32"))
            labels.append(truth)
            progress.show(sum(map(len, labels)))
    vectors = require_numbers(np.concatenate(vectors, axis=1), model.name, "features")
    return vectors, np.concatenate(labels)


def without_compiler(model):
    """Turns off TensorFlow's compiler for a model, and returns it."""
    if keras.backend.backend() == "tensorflow" and not accelerators():
        model.jit_compile = False
    return model


def fit_head(vectors, labels, classes, strengths, class_weights=None):
    """Fits a logistic regression for each strength of the regularization."""
    require("sklearn", "A fitted head", "demo")
    from sklearn.linear_model import LogisticRegression

    views = len(vectors)
    rows = vectors.reshape(-1, vectors.shape[-1]).astype("float64")
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    deviation = np.where(deviation > 1e-6 * np.abs(mean) + 1e-12, deviation, np.inf)  # constant
    rows = (rows - mean) / deviation
    truth, weights = np.tile(labels, views), np.full(len(rows), 1 / views)
    if class_weights is not None:
        weights *= np.asarray(class_weights)[truth]
    regression = LogisticRegression(max_iter=STEPS, warm_start=True)
    patience = PATIENCE if len(labels) < MANY else 0  # many take longer before the first one ends
    with ProgressBar("fitting the head", len(strengths), patience) as progress:
        for done, strength in enumerate(strengths):
            progress.show(done)
            regression.set_params(C=strength).fit(rows, truth, weights)
            yield _fold(regression, mean, deviation, classes)


def _fold(regression, mean, deviation, classes):
    """Returns kernel and bias for vectors that are not standardized."""
    weights, intercept = regression.coef_, regression.intercept_
    if len(weights) == 1:  # two classes: a sigmoid, as a softmax of two halves
        weights, intercept = (np.concatenate([-x, x]) / 2 for x in (weights, intercept))
    known = regression.classes_.astype(int)
    kernel = np.zeros((len(mean), classes))
    bias = np.full(classes, intercept.min() - 5.0)
    kernel[:, known] = weights.T / deviation[:, None]
    bias[known] = intercept - mean @ kernel[:, known]
    return kernel, bias


def read_training_features(model, data, task):
    """Returns the vectors of the views of the training images, and their labels."""
    own = len(find_zooms(model))
    views = choose_views(len(data.train), data.mirror and task.augmentation.flip, own)
    return read_features(model, data.train, views)


def fit_model(model, data, task, vectors=None):
    """Fits the head of a model to the training images as a task asks, or to vectors of them."""
    vectors, labels = vectors or read_training_features(model, data, task)
    classes = len(data.labels)
    weights = task.class_weights(labels, classes)
    (head,) = fit_head(vectors, labels, classes, [task.fit_head], weights)
    set_head(model, *head)


def set_head(model, kernel, bias):
    """Writes kernel and bias into the head of a model."""
    model.get_layer("head").set_weights([kernel.astype("float32"), bias.astype("float32")])


def score_head(kernel, bias, vectors, labels):
    """Returns accuracy and cross-entropy of a head on vectors `(samples, features)`."""
    found = rank_classes(vectors @ kernel + bias, labels, np.arange(len(bias)))
    accuracy = np.mean(found["predictions"] == labels)
    return float(accuracy), float(-found["log_likelihoods"].mean())
