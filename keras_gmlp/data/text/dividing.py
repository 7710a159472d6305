"""Dividing texts into those for training and those that are held out."""

import numpy as np


def divide(texts, labels, share, seed):
    """Holds out a share of the texts of each class; equal texts stay together.

    Args:
        texts: List of strings or of pairs.
        labels: Class indices.
        share: Share to hold out, in (0, 1). At least one text of a class is held out, and one kept.
        seed: Seed of the choice.

    Returns:
        The places of the texts that are kept and of those that are held out, in order.

    Raises:
        ValueError: If `share` is outside (0, 1).
    """
    check_share(share)
    places = {}
    for place, text in enumerate(texts):
        places.setdefault(text, []).append(place)
    groups = list(places.values())
    chosen = _choose([labels[group[0]] for group in groups], share, seed)
    cut = {place for member in chosen for place in groups[member]}
    return [place for place in range(len(texts)) if place not in cut], sorted(cut)


def divide_whole(texts, labels, share, seed):
    """Holds out whole texts, and leaves their parts out of the texts for training.

    A text is whole if no other contains its words in a row. Arguments and errors are those of
    `divide`.

    Returns:
        The places of the texts that are kept and of those that are held out, in order; those of
        parts of held-out texts are in neither.
    """
    check_share(share)
    words = [tuple(text.lower().split()) for text in texts]
    known = set(words)
    lengths = sorted({len(text) for text in known})
    inside = {part for text in known for part in _parts(text, lengths) if part in known}
    last = {text: place for place, text in enumerate(words)}  # one place for equal texts
    whole = [place for text, place in last.items() if text not in inside]
    chosen = _choose([labels[place] for place in whole], share, seed)
    cut = sorted(whole[member] for member in chosen)
    lost = {part for place in cut for part in (words[place], *_parts(words[place], lengths))}
    return [place for place, text in enumerate(words) if text not in lost], cut


def check_share(share):
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1; received {share}.")


def _choose(labels, share, seed):
    """Returns the places of a share of each class."""
    labels, random, chosen = np.asarray(labels), np.random.default_rng(seed), []
    for label in np.unique(labels):
        members = random.permutation(np.flatnonzero(labels == label))
        size = min(max(round(share * len(members)), 1), len(members) - 1)
        chosen.extend(members[:size])
    return chosen


def _parts(words, lengths):
    """Yields the words in a row of these lengths, without the whole."""
    for length in lengths:
        if length >= len(words):
            return
        for start in range(len(words) - length + 1):
            yield words[start : start + length]
