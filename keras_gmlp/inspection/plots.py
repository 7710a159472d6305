"""Plots of data sets."""

from pathlib import Path

from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.utils import plotting
from keras_gmlp.utils.errors import printable, shortened

SIDE = 96  # of a picture, in pixels
COLUMNS = 8
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
        names = (_title(Path(file).name) for file in (found.other, found.path))
        titles = (
            f"{name}\n{note}" for name, note in zip(names, (found.finding, found.note), strict=True)
        )
        cells += zip((found.other, found.path), titles, strict=True)
    cells += [(None, "")] * (-len(cells) % COLUMNS)
    cells += [(found.path, f"{_title(found.label)}\n→ {_title(found.other)}") for found in suspects]
    if not cells:
        return None
    return _draw_cells(cells, path, "duplicates in pairs, labels with the suggested class")


def draw_similar(query, pairs, path):
    """Draws an image and those that are similar to it, with their similarity."""
    cells = [(query, f"{_title(Path(query).name)}\nthe query")]
    cells += [(file, f"{_title(Path(file).name)}\n{similarity:.3f}") for file, similarity in pairs]
    return _draw_cells(cells, path, "images by similarity")


def _draw_cells(cells, path, title):
    """Draws image files with their titles, in rows; without a file a cell stays empty."""
    columns = min(COLUMNS, len(cells))
    rows = -(-len(cells) // columns)
    figure, grid = plotting.figure((1.7 * columns, 1.9 * rows + 0.4), rows, columns)
    figure.suptitle(title, fontsize=10)
    for ax in grid.flat:
        ax.set_axis_off()
    for ax, (file, text) in zip(grid.flat, cells, strict=False):
        if file is not None:
            ax.imshow(read_image(file, (SIDE, SIDE, 3)))
            ax.set_title(text, fontsize=7, parse_math=False)
    return plotting.save(figure, path)


def _title(name):
    return shortened(printable(name), 24)
