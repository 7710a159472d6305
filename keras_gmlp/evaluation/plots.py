"""Plots of predictions: confusion, errors, reliability."""

import numpy as np

from keras_gmlp.tasks.label_scores import LabelPredictions
from keras_gmlp.tasks.scores import bin_probabilities, calibration_error
from keras_gmlp.utils import plotting


def draw_predictions(result, directory, samples):
    """Draws reliability.png, of images errors.png, and of one label each confusion.png."""
    if result.errors is not None:
        described = [(image, *result.describe(index)) for index, image in result.errors]
        pictures = [
            (image, f"{true}\n→ {guess} {100 * share:.0f} %")
            for image, true, guess, share in described
        ]
        wrong, total = np.count_nonzero(~result.correct), len(result.names)
        title = f"most confident mistakes ({wrong:,} of {total:,} images are wrong)"
        plotting.draw_pictures(pictures, directory / "errors.png", title)
    path = directory / "reliability.png"
    if isinstance(result, LabelPredictions):
        values = map(np.ravel, (result.probabilities, result.truth))
        draw_reliability(*values, path, "label", "share that applies")
        return
    draw_reliability(result.probabilities, result.correct, path)
    # A model of many classes may meet few of them.
    used, both = np.unique([result.labels, result.predictions], return_inverse=True)
    names = [result.classes[i] for i in used]
    draw_confusion(*both.reshape(2, -1), names, directory / "confusion.png", samples)


def draw_confusion(labels, predictions, names, path, samples="images"):
    """Draws the confusion matrix, in percent of the true class."""
    counts = np.zeros((len(names), len(names)), int)
    np.add.at(counts, (labels, predictions), 1)
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


def draw_reliability(
    probabilities, correct, path, predicted="predicted class", share="share that is right"
):
    """Draws the accuracy of predictions over their probability, and how many have which."""
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
