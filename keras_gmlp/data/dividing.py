"""Dividing samples into those for training and those that are held out."""

import os
import re

import numpy as np

from keras_gmlp.utils.errors import printable


def divide(groups, labels, share, seed):
    """Holds out a share of the samples of each class; a group stays together."""
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1; received {share}.")
    places, cut, random = {}, [], np.random.default_rng(seed)
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    members = list(places.values())
    classes = np.asarray([labels[group[0]] for group in members])
    for label in np.unique(classes):
        drawn = random.permutation(np.flatnonzero(classes == label))
        size = min(max(round(share * len(drawn)), 1), len(drawn) - 1)
        cut += [place for member in drawn[:size] for place in members[member]]
    return sorted(set(range(len(groups))) - set(cut)), sorted(cut)


def find_groups(paths, pattern):
    """Finds the group of each image in its path."""
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"groups {pattern!r}: not a regular expression ({error}).") from None
    groups = []
    for path in map(os.fsdecode, paths):
        match = expression.search(path)
        if match is None:
            raise ValueError(f"{printable(path)}: groups {pattern!r} finds nothing in this path.")
        groups.append(match.groups() or match.group())
    return groups


def divide_groups(groups, labels, share, seed=0):
    """Holds out a share of the groups; those of images of the same classes give their share."""
    classes = {}
    for group, label in zip(groups, labels, strict=True):
        classes.setdefault(group, set()).add(int(label))
    numbers = {}
    strata = [numbers.setdefault(frozenset(classes[group]), len(numbers)) for group in groups]
    return divide(groups, strata, share, seed)


def check_apart(name, train, test):
    """Checks that no group has training and test images."""
    shared = sorted(set(train) & set(test), key=str)
    if shared:
        some = shared[0] if isinstance(shared[0], str) else "".join(filter(None, shared[0]))
        raise ValueError(
            f"{printable(name)}: {len(shared):,} of the groups, such as {printable(some)!r}, have "
            "training and test images, so the test accuracy would be too high. Move each group to "
            "one side, training or test."
        )
