"""Figures for PNG files: one way to set them up, one way to save them."""

import warnings

from keras_gmlp.utils.files import atomic_write

DPI = 110


def figure(size, rows=1, columns=1):
    """Returns a figure on white paper, so that it is readable on a dark page, and its axes."""
    from matplotlib.figure import Figure  # without pyplot: no display, no global state

    result = Figure(figsize=size, layout="constrained", facecolor="white")
    return result, result.subplots(rows, columns, squeeze=False)


def grid(count, columns, title, cell=(1.3, 1.3), ticks=False):
    """Returns a figure with a title, and its first `count` axes, in rows of that many columns."""
    columns = min(columns, count)
    rows = -(-count // columns)
    result, axes = figure((cell[0] * columns + 1, cell[1] * rows + 0.6), rows, columns)
    result.suptitle(title, fontsize=10)
    for number, ax in enumerate(axes.flat):
        if number >= count:
            ax.set_axis_off()
        elif not ticks:
            ax.set(xticks=[], yticks=[])
    return result, axes.ravel()[:count]


def draw_pictures(pictures, path, title):
    """Draws images with a text above each, in rows of eight; `None` leaves a cell empty."""
    columns = min(8, max(4, len(pictures)))  # fewer would cut off the title
    count = columns * max(1, -(-len(pictures) // columns))
    result, cells = grid(count, columns, title, (1.7, 1.9))
    for ax in cells:
        ax.set_axis_off()
    for ax, (image, text) in zip(cells, pictures, strict=False):
        if image is not None:
            draw_image(ax, image, text, fontsize=8)
    return save(result, path)


def draw_image(ax, image, text, fontsize):
    """Draws an image, in grey if it has one channel, and a text above."""
    ax.imshow(image.squeeze(), cmap="gray" if image.shape[-1] == 1 else None)
    ax.set_title(text, fontsize=fontsize, parse_math=False)


def save(figure, path):
    """Writes a figure as a PNG file, complete or not at all, and returns the path."""
    with atomic_write(path) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the font lacks a character of a name
        figure.savefig(temporary, format="png", dpi=DPI)
    return path
