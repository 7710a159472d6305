"""Groups of images, such as those of one patient or one burst, which stay in one split."""

import os
import re

from keras_gmlp.data.dividing import divide
from keras_gmlp.utils.errors import printable


def find_groups(paths, pattern):
    """Finds the group of each image in its path.

    Args:
        paths: Paths as bytes.
        pattern: Regular expression, such as `r"patient(\\d+)"`; the group is what its parentheses
            match, or all that it matches.

    Returns:
        A list of groups, strings or tuples of strings.

    Raises:
        ValueError: If the pattern is no regular expression or finds nothing in a path. One line.
    """
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(
            f"groups {pattern!r}: not a regular expression ({error}); expected one such as "
            r"'patient(\d+)', which finds the group in the path of an image."
        ) from None
    groups = []
    for path in map(os.fsdecode, paths):
        match = expression.search(path)
        if match is None:
            raise ValueError(
                f"{printable(path)}: groups {pattern!r} finds nothing in this path; expected a "
                "regular expression that finds the group of every image."
            )
        groups.append(match.groups() or match.group())
    return groups


def divide_groups(groups, labels, share, seed=0):
    """Holds out a share of the groups; those of images of the same classes give their share.

    Arguments and results are those of `dividing.divide`.
    """
    classes = {}
    for group, label in zip(groups, labels, strict=True):
        classes.setdefault(group, set()).add(int(label))
    numbers = {}
    strata = [numbers.setdefault(frozenset(classes[group]), len(numbers)) for group in groups]
    return divide(groups, strata, share, seed)


def check_apart(name, train, test):
    """Checks that no group has training and test images.

    Args:
        name: Name of the data set, for the error.
        train, test: Groups of the images, as `find_groups` returns them.

    Raises:
        ValueError: If one has both. One line.
    """
    shared = sorted(set(train) & set(test), key=str)
    if shared:
        some = shared[0] if isinstance(shared[0], str) else "".join(filter(None, shared[0]))
        raise ValueError(
            f"{printable(name)}: {len(shared):,} of the groups, such as {printable(some)!r}, have "
            "training and test images, so the test accuracy would be too high. Move each group to "
            "one side, training or test."
        )
