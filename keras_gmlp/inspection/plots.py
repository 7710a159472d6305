"""Plots of data sets."""

from pathlib import Path

from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.utils import plotting
from keras_gmlp.utils.errors import printable, shortened

SIDE = 96  # of a picture, in pixels
PAIRS = 12  # most pairs that are drawn
SUSPECTS = 24  # most labels that are drawn


def draw_findings(findings, path):
    """Draws duplicates in pairs, and pictures with their given and their suggested class."""
    pairs = [found for found in findings if found.finding.endswith("duplicate")]
    # Those that spoil a test accuracy or a label come first.
    pairs = sorted(pairs, key=lambda found: -len(found.note))[:PAIRS]
    suspects = [found for found in findings if found.finding == "label"][:SUSPECTS]
    cells = []
    for found in pairs:
        for file, note in ((found.other, found.finding), (found.path, found.note)):
            cells.append((file, f"{_title(Path(file).name)}\n{note}"))
    cells += [(None, "")] * (-len(cells) % 8)  # labels begin in a row of their own
    cells += [(found.path, f"{_title(found.label)}\n→ {_title(found.other)}") for found in suspects]
    if not cells:
        return None
    return _draw_files(cells, path, "duplicates in pairs, labels with the suggested class")


def draw_similar(query, pairs, path):
    """Draws an image and those that are similar to it, with their similarity."""
    cells = [(query, f"{_title(Path(query).name)}\nthe query")]
    cells += [(file, f"{_title(Path(file).name)}\n{similarity:.3f}") for file, similarity in pairs]
    return _draw_files(cells, path, "images by similarity")


def _draw_files(cells, path, title):
    """Draws image files with their titles, in rows; without a file a cell stays empty."""
    shape = (SIDE, SIDE, 3)
    pictures = [(file and read_image(file, shape), text) for file, text in cells]
    return plotting.draw_pictures(pictures, path, title)


def _title(name):
    return shortened(printable(name), 24)
