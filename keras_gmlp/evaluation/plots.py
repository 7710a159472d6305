"""Plots of predictions: confusion, mistakes, gallery, reliability."""

import numpy as np

from keras_gmlp.evaluation.label_scores import LabelPredictions
from keras_gmlp.tasks.confidence import Confidence
from keras_gmlp.tasks.scores import bin_probabilities, calibration_error
from keras_gmlp.utils import plotting


def draw_predictions(result, directory, samples="images"):
    """Draws reliability.png and, of one label each, confusion.png into a folder."""
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


def draw_mistakes(images, labels, logits, names, path, count=24):
    """Draws the misclassified images with the highest confidence."""
    confidence = Confidence().probabilities(logits).max(axis=-1)
    predicted = logits.argmax(axis=-1)
    wrong = np.flatnonzero(predicted != labels)
    worst = wrong[np.argsort(-confidence[wrong], kind="stable")][:count]
    predictions = [(names[labels[i]], names[predicted[i]], confidence[i]) for i in worst]
    title = f"most confident mistakes ({len(wrong):,} of {len(labels):,} images)"
    draw_gallery(images[worst], predictions, path, title)


def draw_gallery(images, predictions, path, title):
    """Draws images in rows of eight, with their true and predicted classes."""
    texts = [f"{true}\n→ {guess} {100 * share:.0f} %" for true, guess, share in predictions]
    plotting.draw_pictures(list(zip(images, texts, strict=True)), path, title)


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
