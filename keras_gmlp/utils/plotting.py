"""Figures for PNG files: one way to set them up, one way to save them."""

import warnings

from keras_gmlp.utils.files import atomic_write

DPI = 110


def figure(size, rows=1, columns=1):
    """Returns a figure on white paper, so that it is readable on a dark page, and its axes."""
    from matplotlib.figure import Figure  # without pyplot: no display, no global state

    result = Figure(figsize=size, layout="constrained", facecolor="white")
    return result, result.subplots(rows, columns, squeeze=False)


def save(figure, path):
    """Writes a figure as a PNG file, complete or not at all, and returns the path."""
    with atomic_write(path) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the font lacks a character of a name
        figure.savefig(temporary, format="png", dpi=DPI)
    return path
