"""Means over seeds and their spread, as tables print them."""

import math
import statistics


def format_mean(values, digits):
    """Returns the mean with the standard deviation, as `"12.3 ± 0.4"`; one value stands alone.

    Args:
        values: A list of numbers, at least one.
        digits: Decimal places.

    Example:
        >>> format_mean([1.0, 2.0, 3.0], 1)
        '2.0 ± 1.0'
    """
    spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{spread}"


def format_difference(values, digits):
    """Returns the mean of differences with its standard error; one value stands alone.

    Args:
        values: The difference of each seed, a list of numbers. Of none the text is empty.
        digits: Decimal places.

    Example:
        >>> format_difference([1.0, 3.0], 2)
        '+2.00 ± 1.00'
    """
    if not values:
        return ""
    error = ""
    if len(values) > 1:
        error = f" ± {statistics.stdev(values) / math.sqrt(len(values)):.{digits}f}"
    return f"{statistics.mean(values):+.{digits}f}{error}"


def note_single(number, total):
    """Returns a note on the runs that predict one class alone; empty for none.

    Args:
        number: How many there are.
        total: Number of runs.

    Example:
        >>> note_single(2, 5)
        '2 of 5 predict one class'
    """
    if not number:
        return ""
    return f"{number} of {total} predict{'s' * (number == 1)} one class"
