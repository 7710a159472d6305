"""Plots of a trained text model: weights by distance, attention between tokens."""

import numpy as np

from keras_gmlp.analysis.texts import distance_filters, distance_shares, token_attention
from keras_gmlp.utils import plotting

COLUMNS = 4


def draw_distance_filters(model, path, reach=24):
    """Draws the weight that each gate gives to a token by its distance (gMLP, figure 4)."""
    if reach < 1:
        raise ValueError(f"reach must be at least 1; received {reach}.")
    filters, shares = distance_filters(model), distance_shares(model)
    figure, cells = _figure(len(filters), (2.3, 1.7))
    for ax, (name, weights) in zip(cells, filters.items(), strict=True):
        middle = weights.shape[-1] // 2
        shown = min(reach, middle)
        distances = np.arange(-shown, shown + 1)
        ax.axhline(0, color="0.8", linewidth=0.8)
        for head in weights:
            ax.plot(distances, head[middle - shown : middle + shown + 1], linewidth=1)
        share = f", R² {shares[name]:.2f}" if name in shares else ""
        ax.set_title(name + share, fontsize=9)
        ax.tick_params(labelsize=7)
    figure.suptitle("spatial weight by relative position", fontsize=10)
    plotting.save(figure, path)


def draw_token_attention(model, tokenizer, text, path):
    """Draws what each block with attention looks at in a text."""
    ids = tokenizer.encode(text).ids[:40]
    maps = token_attention(model, ids)
    names = [tokenizer.tokens[i] for i in ids]
    size = 1.2 + 0.17 * len(names)
    figure, cells = _figure(len(maps), (size, size))
    for ax, (name, scores) in zip(cells, maps.items(), strict=True):
        ax.imshow(scores, cmap="viridis", vmin=0)
        ax.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        ax.set_yticks(range(len(names)), names, fontsize=7)
        ax.set_title(name, fontsize=9)
    figure.suptitle("row: a token; bright: the tokens that it looks at", fontsize=10)
    plotting.save(figure, path)


def _figure(count, cell):
    """Returns a figure with at least `count` axes, and the first `count` of them."""
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    size = (cell[0] * columns + 0.4, cell[1] * rows + 0.5)
    figure, grid = plotting.figure(size, rows, columns)
    for ax in grid.flat[count:]:
        ax.set_axis_off()
    return figure, grid.flat[:count]
