"""Training images that are held out: for validation, or in folds for cross-validation."""

import dataclasses

import numpy as np

from keras_gmlp.data.datasets import load
from keras_gmlp.data.dividing import check_apart, divide, divide_groups, find_groups
from keras_gmlp.data.images.image_data import ImageData, take_fraction
from keras_gmlp.data.label_sets import find_rarest, refuse_several
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import printable

# Settings of a run that divide its training images: arguments of `divide_training`.
PARTS = ("fraction", "folds", "fold", "validation")


def divide_training(data, fraction=1.0, folds=None, fold=None, validation=None, groups=None):
    """Divides the training images as a run does."""
    if fraction < 1:
        data = take_fraction(data, fraction)
    if folds:
        data = make_folds(data, folds, groups)[fold - 1]
    return hold_out(data, validation, groups) if validation else data


def load_divided(name, shape=None, fit=None, groups=None, parts=None, roles=None):
    """Loads data as images of a shape; `parts` are arguments of `divide_training`."""
    size, channels = (shape[:2], shape[2]) if shape else (None, None)
    return divide_training(
        load(name, size, None, channels, groups, fit, roles), **(parts or {}), groups=groups
    )


def hold_out(
    data: ImageData, share: float = 0.1, groups: str | None = None, seed: int = 0
) -> ImageData:
    """Holds a share of the training images out for validation.

    Args:
        data: An `ImageData` without validation images.
        share: Share of each class, in (0, 1). At least one image of a class is held out, and one
            kept; of a single one none is held out. Of several labels the rarest counts.
        groups: Regular expression that finds the group of an image in its path, such as
            `r"patient(\\d+)"`: what its parentheses match, or all that it matches. A group stays
            on one side. `None` for no groups.
        seed: Seed of the choice.

    Returns:
        An `ImageData` with fewer training images, and `validation`.

    Raises:
        ValueError: If `data` has validation images, `share` is outside (0, 1), the images have no
            paths or one without a group, or a group has training and test images.

    Example:
        >>> import keras_gmlp
        >>> digits = hold_out(keras_gmlp.data.load("digits"), share=0.1)
        >>> len(digits.train), len(digits.validation), len(digits.test)
        (1294, 143, 360)
    """
    if data.validation is not None:
        raise ValueError(
            f"{printable(data.name)}: has validation images already; give no share to hold out."
        )
    kept, cut = find_held_out(data, share, groups, seed)
    train, validation = (data.train.take(places) for places in (kept, cut))
    if data.label_sets is not None:
        rows = data.label_rows()
        present, left = (rows[s.labels].any(axis=0) for s in (data.train, train))
        if (present & ~left).any():
            name = data.labels[np.argmax(present & ~left)]
            raise ValueError(
                f"{printable(data.name)}: all images with the label {printable(name)} would be for "
                "validation. Add images, or choose a smaller share."
            )
    return dataclasses.replace(data, train=train, validation=validation)


def find_held_out(data, share, groups=None, seed=0):
    """Returns the indices of the training images that `hold_out` keeps, and that it holds out."""
    labels = data.train.labels
    if data.label_sets is not None:
        labels = find_rarest(labels, data.label_sets, len(data.labels))
    if groups is None:
        kept, cut = divide(range(len(labels)), labels, share, seed)
    else:
        kept, cut = divide_groups(_find_members(data, groups), labels, share, seed)
    if not cut:
        raise ValueError(
            f"{printable(data.name)}: every class has too few images, or groups, for training and "
            "validation. Add images, or choose smaller groups."
        )
    return kept, cut


def make_folds(data, count=5, groups=None, seed=0):
    """Divides the training images into folds, a list of `ImageData` that test one fold each."""
    refuse_several(data.name, data.label_sets)
    require("sklearn", "Cross-validation", "demo")
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    labels, members, kind, folds = data.train.labels, None, StratifiedKFold, []
    if groups is not None:
        members = list(map(str, _find_members(data, groups)))
        kind = StratifiedGroupKFold
    for kept, cut in kind(count, shuffle=True, random_state=seed).split(labels, labels, members):
        lost = np.setdiff1d(labels, labels[kept])
        if lost.size or not len(cut):  # few images, or groups of very different sizes
            raise ValueError(
                f"{printable(data.name)}: too few images, or too large groups, for {count} folds. "
                "Choose fewer folds, smaller groups, or add images."
            )
        train, test = (data.train.take(places) for places in (kept, cut))
        folds.append(dataclasses.replace(data, train=train, test=test))
    return folds


def _find_members(data, groups):
    """Returns the group of each training image, checked against the test images."""
    if not (paths := data.train.paths):
        raise ValueError(f"groups require images in files; {printable(data.name)} has none.")
    members = find_groups(paths, groups)
    check_apart(data.name, members, find_groups(data.test.paths, groups))
    return members
