"""Plots of a model: filters, attention, class maps; of a text model, weights by distance."""

from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

from keras_gmlp.analysis.explanation import class_maps, has_exact_maps
from keras_gmlp.analysis.tokens import (
    attention_maps,
    distance_filters,
    filters_make_tokens,
    spatial_filters,
    token_attention,
)
from keras_gmlp.models.folding import to_dense
from keras_gmlp.utils import plotting

COLUMNS = 4


def draw_spatial_filters(
    model: keras.Model, path: str | Path, tokens: Sequence[int] | None = None
) -> None:
    """Draws the spatial weights of each block on the image's token grid (gMLP, figure 3).

    Blue weights are positive, red ones negative, white ones zero; each row has its own scale. If a
    filter computes a token, a square marks the position of that token. Of a gate with heads, each
    picture shows another head.

    Args:
        model: A model with blocks that mix tokens by a matrix; see `tokens.spatial_filters`.
        path: Path of the PNG file.
        tokens: Indices of the filters to draw. Defaults to eight, spread over the image.

    Raises:
        NotApplicableError: If the model has no such block.
        ValueError: If a token does not exist.
    """
    from matplotlib.patches import Rectangle

    dense = to_dense(model)
    filters = spatial_filters(dense)
    rows, width = next(iter(filters.values())).shape[1:]
    count = min(map(len, filters.values()))
    if tokens and not all(0 <= token < count for token in tokens):
        raise ValueError(f"tokens must be in [0, {count}); received {list(tokens)}.")
    columns = len(tokens) if tokens else min(8, count)
    title = "weights over the image's tokens"
    figure, cells = plotting.grid(len(filters) * columns, columns, title)
    for axes, (name, block) in zip(cells.reshape(-1, columns), filters.items(), strict=True):
        makes_tokens = filters_make_tokens(dense.get_layer(name))
        chosen = tokens or _choose_filters(len(block), rows, width, columns, makes_tokens)
        limit = np.abs(block[chosen]).max() or 1.0
        for i, (ax, index) in enumerate(zip(axes, chosen, strict=True)):
            picture = ax.imshow(block[index], cmap="RdBu", vmin=-limit, vmax=limit)
            if makes_tokens:
                y, x = divmod(index % (rows * width), width)
                frame = {"fill": False, "edgecolor": "black", "linewidth": 1.2}
                ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **frame))
            if not i:
                ax.set_ylabel(name)
        figure.colorbar(picture, ax=list(axes), shrink=0.8, pad=0.01)
    plotting.save(figure, path)


def draw_attention(
    model: keras.Model, image: np.ndarray, path: str | Path, title: str = ""
) -> None:
    """Draws the attention of each block over the image; brighter pixels get more.

    Args:
        model: An aMLP or a ViT; see `tokens.attention_maps`.
        image: uint8 array `(height, width, channels)` of the model's input size.
        path: Path of the PNG file.
        title: Title of the figure.

    Raises:
        NotApplicableError: If the model has no attention.
    """
    maps = {name: values * values.size for name, values in attention_maps(model, image).items()}
    colours = {"cmap": "inferno", "vmin": 0, "vmax": max(map(np.max, maps.values()))}
    _draw_maps(image, maps.items(), path, title, colours, "attention relative to uniform")


def draw_class_maps(
    model: keras.Model,
    image: np.ndarray,
    classes: Sequence[int],
    captions: Sequence[str],
    path: str | Path,
    title: str = "",
) -> None:
    """Draws an image and, laid over it, the parts that speak for classes, in blue, or against them.

    Args:
        model: An image classifier; see `explanation.class_maps`.
        classes: Indices of the classes to draw.
        captions: A text for each of these.
        image, path, title: See `draw_attention`.

    Raises:
        NotApplicableError: If the model has no head.
    """
    maps = class_maps(model, image, classes)
    limit = np.abs(maps).max() or 1.0
    colours = {"cmap": "RdBu", "vmin": -limit, "vmax": limit}
    kind = "exact" if has_exact_maps(model) else "by the gradient"
    maps = list(zip(captions, maps, strict=True))
    _draw_maps(image, maps, path, title, colours, f"part of the logit, {kind}")


def draw_distance_filters(model, path, reach=24):
    """Draws the weight that each gate gives to a token by its distance (gMLP, figure 4)."""
    filters = distance_filters(model)
    figure, cells = plotting.grid(
        len(filters), COLUMNS, "spatial weight by relative position", (2.3, 1.7), ticks=True
    )
    for ax, (name, weights) in zip(cells, filters.items(), strict=True):
        middle = weights.shape[-1] // 2
        shown = min(reach, middle)
        distances = np.arange(-shown, shown + 1)
        ax.axhline(0, color="0.8", linewidth=0.8)
        for head in weights:
            ax.plot(distances, head[middle - shown : middle + shown + 1], linewidth=1)
        ax.set_title(name, fontsize=9)
        ax.tick_params(labelsize=7)
    plotting.save(figure, path)


def draw_token_attention(model, tokenizer, text, path):
    """Draws what each block with attention looks at in a text."""
    ids = np.array(tokenizer.encode(text).ids[:40])
    maps = token_attention(model, ids)
    names = [tokenizer.tokens[i] for i in ids]
    size = 1.2 + 0.17 * len(names)
    title = "row: a token; bright: the tokens that it looks at"
    figure, cells = plotting.grid(len(maps), COLUMNS, title, (size, size), ticks=True)
    for ax, (name, scores) in zip(cells, maps.items(), strict=True):
        ax.imshow(scores, cmap="viridis", vmin=0)
        ax.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        ax.set_yticks(range(len(names)), names, fontsize=7)
        ax.set_title(name, fontsize=9)
    plotting.save(figure, path)


def _draw_maps(image, maps, path, title, colours, label):
    """Draws an image, then values on a grid over it in grey, given as pairs of a text and these."""
    height, width = image.shape[:2]
    extent = (-0.5, width - 0.5, height - 0.5, -0.5)
    figure, (first, *others) = plotting.grid(1 + len(maps), COLUMNS, title, cell=(2.4, 2.4))
    plotting.draw_image(first, image, "the image", fontsize=9)
    for ax, (text, values) in zip(others, maps, strict=True):
        ax.imshow(image.mean(axis=-1), cmap="gray", vmin=0, vmax=255)
        shown = ax.imshow(values, alpha=0.6, extent=extent, **colours)
        ax.set_title(text, fontsize=9, parse_math=False)
    figure.colorbar(shown, ax=others, shrink=0.8, label=label)
    plotting.save(figure, path)


def _choose_filters(filters, rows, width, count, over_image):
    """Returns indices spread over the image if each token has a filter, else over the list."""
    if not over_image:
        return np.linspace(0, filters - 1, count).round().astype(int)
    ys = np.linspace(0, rows - 1, count).round().astype(int)
    # Rolled, so that the positions do not form a diagonal.
    xs = np.linspace(0, width - 1, count).round().astype(int)
    tokens = ys * width + np.roll(xs, count // 3)
    heads = np.arange(count) * filters // (rows * width) // count
    return [int(index) for index in heads * rows * width + tokens]
