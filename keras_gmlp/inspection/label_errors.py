"""Pictures whose label is likely wrong, found without training a network."""

import numpy as np

from keras_gmlp.utils.environment import require

FOLDS = 5  # parts of the pictures; a class in fewer pictures is not judged
DIMENSIONS = 128  # of the features that the classifier sees
DOUBT = 0.15  # largest probability of a suspect label, relative to the suggested class
CELLS = 8  # cells of a thumbnail's side
DIRECTIONS = 8  # bins of the edges' directions


def thumbnail_features(thumbnails):
    """Returns the colours and the directions of edges in each part of the pictures."""
    count, side = thumbnails.shape[:2]
    in_cells = (count, CELLS, side // CELLS, CELLS, side // CELLS)
    colours = thumbnails.reshape(*in_cells, 3).mean(axis=(2, 4), dtype="float32") / 255
    dy, dx = np.gradient(thumbnails.mean(axis=-1, dtype="float32"), axis=(1, 2))
    strength = np.hypot(dx, dy)
    direction = (np.arctan2(dy, dx) % np.pi / np.pi * DIRECTIONS).astype("uint8") % DIRECTIONS
    by_direction = (strength * (direction == bin_) for bin_ in range(DIRECTIONS))
    edges = np.stack([s.reshape(in_cells).sum(axis=(2, 4)) for s in by_direction], axis=-1)
    last = CELLS - 1
    blocks = np.concatenate(
        [edges[:, y : last + y, x : last + x] for y in (0, 1) for x in (0, 1)], axis=-1
    )
    # Weak edges are noise: the constant keeps them weak.
    blocks = np.sqrt(blocks / (blocks.sum(axis=-1, keepdims=True) + 10))
    return np.concatenate([colours.reshape(count, -1), blocks.reshape(count, -1)], axis=1)


def predict_out_of_fold(features, labels, seed=0):
    """Predicts each label by a classifier that has not seen that picture."""
    require("sklearn", "The search for wrong labels", "demo")
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.preprocessing import StandardScaler

    scaled = StandardScaler().fit_transform(features)
    most = min(DIMENSIONS, *scaled.shape)
    components = PCA(most, random_state=seed).fit_transform(scaled)
    # A few pictures could not move the weights against a fixed penalty.
    strength = 0.01 + 10 / len(labels)
    classifier = LogisticRegression(C=strength, tol=1e-3, max_iter=1000)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    return cross_val_predict(classifier, components, labels, cv=folds, method="predict_proba")


def find_label_errors(probabilities: np.ndarray, labels: np.ndarray) -> dict[int, int]:
    """Finds labels that predictions contradict, by confident learning.

    A class is confident in a picture if its probability is at least the mean probability of that
    class over the pictures that carry its label (Northcutt et al., 2021, arxiv.org/abs/1911.00068).
    A label is suspect if the most probable confident class is another one, and the label has less
    than 15 % of its probability.

    Args:
        probabilities: Out-of-fold probabilities `(pictures, classes)`.
        labels: Columns of the given labels, `(pictures,)`.

    Returns:
        A dict from the index of a picture to the column of the suggested class, the least probable
        label first.
    """
    rows = np.arange(len(labels))
    given = probabilities[rows, labels]
    counts = np.bincount(labels, minlength=probabilities.shape[1])
    thresholds = np.bincount(labels, given, probabilities.shape[1]) / np.maximum(counts, 1)
    confident = np.where(probabilities >= thresholds, probabilities, 0.0)
    suggested = confident.argmax(axis=1)
    suspect = (suggested != labels) & (given < DOUBT * confident[rows, suggested])
    order = np.argsort(given, kind="stable")
    return {int(row): int(suggested[row]) for row in order if suspect[row]}


def can_judge(probabilities, labels):
    """Returns whether predictions are good enough to doubt labels."""
    wrong = np.mean(probabilities.argmax(axis=1) != labels)
    return bool(wrong <= 0.5 * (1 - np.bincount(labels).max() / len(labels)))
