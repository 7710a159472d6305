"""Plots of a model: filters, attention, class maps, confusion, mistakes, reliability."""

import numpy as np

from keras_gmlp.analysis.confidence import Confidence
from keras_gmlp.analysis.explanation import class_maps, has_exact_maps
from keras_gmlp.analysis.scores import bin_probabilities, calibration_error
from keras_gmlp.analysis.tokens import (
    attention_maps,
    confusion,
    filters_make_tokens,
    spatial_filters,
)
from keras_gmlp.models.folding import to_dense
from keras_gmlp.utils import plotting


def draw_spatial_filters(model, path, tokens=None):
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
    dense = to_dense(model)
    filters = spatial_filters(dense)
    rows, width = next(iter(filters.values())).shape[1:]
    count = min(map(len, filters.values()))
    if tokens and not all(0 <= token < count for token in tokens):
        raise ValueError(f"tokens must be in [0, {count}); received {list(tokens)}.")
    columns = len(tokens) if tokens else min(8, count)
    figure, grid = _figure(len(filters), columns, "weights over the image's tokens")
    for axes, (name, block) in zip(grid, filters.items(), strict=True):
        makes_tokens = filters_make_tokens(dense.get_layer(name))
        chosen = tokens or _choose_filters(len(block), rows, width, columns, makes_tokens)
        limit = np.abs(block[chosen]).max() or 1.0
        for i, (ax, index) in enumerate(zip(axes, chosen, strict=True)):
            picture = ax.imshow(block[index], cmap="RdBu", vmin=-limit, vmax=limit)
            if makes_tokens:
                y, x = divmod(index % (rows * width), width)
                ax.add_patch(_square(x, y))
            if not i:
                ax.set_ylabel(name)
        figure.colorbar(picture, ax=list(axes), shrink=0.8, pad=0.01)
    plotting.save(figure, path)


def draw_attention(model, image, path, title=""):
    """Draws the attention of each block over the image; brighter pixels get more.

    Args:
        model: An aMLP or a ViT; see `tokens.attention_maps`.
        image: uint8 array `(height, width, channels)` of the model's input size.
        path: Path of the PNG file.
        title: Title of the figure.

    Raises:
        NotApplicableError: If the model has no attention.
    """
    maps = attention_maps(model, image)
    columns = min(4, 1 + len(maps))
    rows = -(-(1 + len(maps)) // columns)
    figure, grid = _figure(rows, columns, title, size=2.4)
    cells = list(grid.flat)
    _draw_image(cells[0], image)
    for ax, (name, attention) in zip(cells[1:], maps.items(), strict=False):
        shown = _lay_over(ax, image, attention * attention.size, cmap="inferno", vmin=0)
        ax.set_title(name, fontsize=9)
        figure.colorbar(shown, ax=ax, shrink=0.8, label="attention relative to uniform")
    for ax in cells[1 + len(maps) :]:
        ax.set_axis_off()
    plotting.save(figure, path)


def draw_class_maps(model, image, classes, captions, path, title=""):
    """Draws an image and, laid over it, the parts that speak for classes, in blue, or against them.

    Args:
        model: An image classifier; see `explanation.class_maps`.
        image: uint8 array `(height, width, channels)` of the model's input size.
        classes: Indices of the classes to draw.
        captions: A text for each of these.
        path: Path of the PNG file.
        title: Title of the figure.

    Raises:
        NotApplicableError: If the model has no head.
    """
    maps = class_maps(model, image, classes)
    limit = np.abs(maps).max() or 1.0
    figure, grid = _figure(1, 1 + len(maps), title, size=2.4)
    first, *others = grid.flat
    _draw_image(first, image)
    for ax, text, values in zip(others, captions, maps, strict=True):
        shown = _lay_over(ax, image, values, cmap="RdBu", vmin=-limit, vmax=limit)
        ax.set_title(text, fontsize=9, parse_math=False)
    kind = "exact" if has_exact_maps(model) else "by the gradient"
    figure.colorbar(shown, ax=others, shrink=0.8, label=f"part of the logit, {kind}")
    plotting.save(figure, path)


def _draw_image(ax, image):
    ax.imshow(image.squeeze(), cmap="gray" if image.shape[-1] == 1 else None)
    ax.set_title("the image", fontsize=9)


def _lay_over(ax, image, values, **colours):
    """Draws values on a grid over the image in grey; returns what a colour bar takes."""
    height, width = image.shape[:2]
    ax.imshow(image.mean(axis=-1), cmap="gray", vmin=0, vmax=255)
    extent = (-0.5, width - 0.5, height - 0.5, -0.5)
    return ax.imshow(values, alpha=0.6, extent=extent, **colours)


def draw_confusion(labels, predictions, names, path, samples="images"):
    """Draws the confusion matrix, in percent of the true class.

    Args:
        labels, predictions: Class indices, `(samples,)`.
        names: Class names.
        path: Path of the PNG file.
        samples: What was classified, for the title.
    """
    counts = confusion(labels, predictions, len(names))
    shares = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    legible = len(names) <= 50
    size = 2.5 + 0.5 * min(len(names), 20)
    figure, ((axes,),) = plotting.figure((size + 1, size))
    shown = axes.imshow(shares, cmap="Blues", vmin=0, vmax=100)
    if legible:
        axes.set_xticks(range(len(names)), names, rotation=45 if len(names) <= 20 else 90)
        axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="predicted class", ylabel="true class")
    if len(names) <= 20:
        for (row, column), share in np.ndenumerate(shares):
            colour = "white" if share > 50 else "black"
            text = f"{share:.1f}" if share else ""
            axes.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
    accuracy = 100 * np.mean(np.asarray(labels) == predictions)
    axes.set_title(f"{len(labels):,} {samples}, {accuracy:.2f} % correct", fontsize=10)
    figure.colorbar(shown, ax=axes, label="% of the class", shrink=0.8)
    plotting.save(figure, path)


def draw_mistakes(images, labels, logits, names, path, count=24):
    """Draws the misclassified images with the highest confidence.

    Args:
        images: uint8 array `(samples, height, width, channels)`.
        labels: Class indices, `(samples,)`.
        logits: Array `(samples, classes)`.
        names: Class names.
        path: Path of the PNG file.
        count: Maximum number of images.
    """
    confidence = Confidence().probabilities(logits).max(axis=-1)
    predicted = logits.argmax(axis=-1)
    wrong = np.flatnonzero(predicted != labels)
    worst = wrong[np.argsort(-confidence[wrong], kind="stable")][:count]
    answers = [(names[labels[i]], names[predicted[i]], confidence[i]) for i in worst]
    title = f"most confident mistakes ({len(wrong):,} of {len(labels):,} images)"
    draw_gallery(images[worst], answers, path, title)


def draw_gallery(images, answers, path, title):
    """Draws images in rows of eight, with their true and predicted classes.

    Args:
        images: List of uint8 images `(height, width, channels)`.
        answers: For each image the true class, the predicted class and its probability.
        path: Path of the PNG file.
        title: Title of the figure.
    """
    columns = min(8, max(4, len(images)))  # fewer would cut off the title
    rows = max(1, -(-len(images) // columns))
    figure, grid = _figure(rows, columns, title, size=1.7)
    for ax in grid.flat:
        ax.set_axis_off()
    for ax, image, (true, predicted, probability) in zip(grid.flat, images, answers, strict=False):
        ax.imshow(image.squeeze(), cmap="gray" if image.shape[-1] == 1 else None)
        ax.set_title(f"{true}\n→ {predicted} {100 * probability:.0f} %", fontsize=8)
    plotting.save(figure, path)


def draw_reliability(
    probabilities, correct, path, predicted="predicted class", share="share that is right"
):
    """Draws the accuracy of predictions over their probability, and how many have which.

    Args:
        probabilities: Probabilities of the predictions, `(samples,)`.
        correct: Whether the predictions are right, `(samples,)`.
        path: Path of the PNG file.
        predicted: What has the probability.
        share: What `correct` is, for the axis.
    """
    counts, _, accuracies = bin_probabilities(probabilities, correct)
    error = calibration_error(probabilities, correct)
    centres = (np.arange(len(counts)) + 0.5) / len(counts)
    figure, ((top,), (bottom,)) = plotting.figure((4.5, 5.5), 2, 1)
    top.plot([0, 1], [0, 1], color="grey", linestyle="--", label="perfectly calibrated")
    top.bar(centres, accuracies, 1 / len(counts), edgecolor="white", label="this model")
    top.set(xlim=(0, 1), ylim=(0, 1), ylabel=share)
    top.set_title(f"expected calibration error {100 * error:.2f} %", fontsize=10)
    top.legend(fontsize=8)
    bottom.bar(centres, counts, 1 / len(counts), edgecolor="white")
    bottom.set(xlim=(0, 1), xlabel=f"probability of the {predicted}", ylabel="predictions")
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


def _square(x, y):
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor="black", linewidth=1.2)


def _figure(rows, columns, title, size=1.3):
    figure, grid = plotting.figure((size * columns + 1, size * rows + 0.6), rows, columns)
    figure.suptitle(title, fontsize=10)
    for ax in grid.flat:
        ax.set_xticks([])
        ax.set_yticks([])
    return figure, grid
