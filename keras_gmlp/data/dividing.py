"""Dividing samples into those for training and those that are held out."""

import numpy as np


def divide(groups, labels, share, seed):
    """Holds out a share of the samples of each class; a group stays together.

    Args:
        groups: Group of each sample, such as its text: samples of equal ones are a group.
        labels: Class indices. The class of a group is that of its first sample.
        share: Share to hold out, in (0, 1). At least one group of a class is held out, and one
            kept; of a single one none is held out.
        seed: Seed of the choice.

    Returns:
        The places of the samples that are kept and of those that are held out, in order.

    Raises:
        ValueError: If `share` is outside (0, 1).
    """
    check_share(share)
    places = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    members = list(places.values())
    chosen = choose(np.asarray([labels[group[0]] for group in members]), share, seed)
    cut = {place for member in chosen for place in members[member]}
    return [place for place in range(len(groups)) if place not in cut], sorted(cut)


def check_share(share):
    """Raises a `ValueError` if a share is outside (0, 1)."""
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1; received {share}.")


def choose(labels, share, seed):
    """Returns the places of a share of each class."""
    labels, random, chosen = np.asarray(labels), np.random.default_rng(seed), []
    for label in np.unique(labels):
        members = random.permutation(np.flatnonzero(labels == label))
        size = min(max(round(share * len(members)), 1), len(members) - 1)
        chosen.extend(members[:size])
    return chosen
