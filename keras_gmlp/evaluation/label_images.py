"""Evaluates classifiers that give any number of labels; `evaluation` has those that give one.

Labels are matched by name. Images of a data set with one label each count as having that one.
"""

import csv
import heapq
import operator
from pathlib import Path

import numpy as np

from keras_gmlp.evaluation.images import WORST, no_common_class
from keras_gmlp.evaluation.label_scores import LabelPredictions, score_labels
from keras_gmlp.inference.opening import require_numbers
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.files import atomic_write, write_json
from keras_gmlp.utils.progress import ProgressBar


def evaluate_labels(classifiers, images):
    """Finds the labels of images with one or more models."""
    require("sklearn", "evaluation", "demo")  # which `score_labels` imports, after the work
    if single := [c.path for c in classifiers if c.thresholds is None]:
        reason = (
            "another model gives several. Evaluate them one by one."
            if images.label_rows is None
            else "the images have several. Evaluate it on images of one label each."
        )
        raise ValueError(f"{printable(single[0])}: gives one label for an image, but {reason}")
    known = set(images.labels).intersection(*(classifier.labels for classifier in classifiers))
    if not known:
        raise ValueError(no_common_class(classifiers, images))
    labels = tuple(label for label in images.labels if label in known)
    return [_evaluate(classifier, images, labels) for classifier in classifiers]


def report_labels(models, results, images):
    """Scores the predictions of models on the same images."""
    first, *_ = results
    present = first.truth.any(axis=0)
    return {
        "data": images.name,
        "split": images.split,
        "images": len(images),
        "unknown_classes": [label for label in images.labels if label not in first.labels],
        "missing_classes": [*first.list_labels(~present), *first.left_out],
        "models": [
            {
                "model": model,
                "agreement": round(float(np.mean(result.given == first.given)), 6),
                **score_labels(result),
            }
            for model, result in zip(models, results, strict=True)
        ],
    }


def write_labels(path, result):
    """Writes predictions as a CSV file: path, labels, predictions, correct (1 or 0)."""
    with (
        atomic_write(path) as temporary,
        # File names that are no UTF-8 keep their bytes.
        open(temporary, "w", encoding="utf-8", errors="surrogateescape", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        shares = (f"probability {label}" for label in result.labels)
        writer.writerow(("path", "labels", "predictions", "correct", *shares))
        columns = result.names, result.truth, result.given, result.probabilities
        for name, true, given, probabilities in zip(*columns, strict=True):
            texts = ("|".join(result.list_labels(row)) for row in (true, given))
            shares = (f"{probability:.6f}" for probability in probabilities)
            writer.writerow((name, *texts, int((true == given).all()), *shares))


def write_label_report(directory, scores, result, errors):
    """Writes report.json and, of one model, predictions.csv and two pictures into a folder."""
    from keras_gmlp.evaluation import plots

    directory = Path(directory)
    write_json(directory / "report.json", scores)
    write_labels(directory / "predictions.csv", result)
    answers = [
        (
            ", ".join(result.list_labels(result.truth[image])) or "no label",
            *_answer(result, image, label),
        )
        for image, label, _ in errors
    ]
    wrong = np.count_nonzero((result.given != result.truth).any(axis=1))
    title = f"largest errors of a label ({wrong:,} of {len(result.truth):,} images are wrong)"
    plots.draw_gallery([image for *_, image in errors], answers, directory / "errors.png", title)
    path = directory / "reliability.png"
    probabilities, truth = result.probabilities.ravel(), result.truth.ravel()
    plots.draw_reliability(probabilities, truth, path, "label", "share that applies")


def _answer(result, image, label):
    """Returns what the model says about a label of an image, and its probability."""
    name, probability = result.labels[label], result.probabilities[image, label]
    return (name, probability) if result.given[image, label] else (f"not {name}", 1 - probability)


def _evaluate(classifier, images, labels):
    columns = [classifier.labels.index(label) for label in labels]
    own = [images.labels.index(label) for label in labels]
    rows = images.label_rows
    rows = (np.eye(len(images.labels)) if rows is None else rows)[:, own].astype(bool)
    thresholds = np.array(classifier.thresholds)[columns]
    parts, worst, done = [], [], 0
    with ProgressBar(f"evaluating {printable(classifier.path.name)}", len(images)) as progress:
        for pixels, indices in images.batches(classifier):
            logits = require_numbers(classifier.logits(pixels), classifier.path)
            probabilities, truth = classifier.probabilities(logits)[:, columns], rows[indices]
            parts.append((truth, probabilities))
            worst = _worst(worst, done, pixels, truth, probabilities, thresholds)
            done += len(pixels)
            progress.show(done)
    truth, probabilities = map(np.concatenate, zip(*parts, strict=True))
    errors = [(index, label, image) for _, index, label, image in worst]
    left_out = tuple(label for label in classifier.labels if label not in labels)
    return LabelPredictions(
        images.names, labels, truth, probabilities, thresholds, left_out
    ), errors


def _worst(worst, start, images, truth, probabilities, thresholds):
    """Returns the worst errors so far, the worst first: difference, image, label and pixels."""
    differences = np.abs(probabilities - truth) * ((probabilities >= thresholds) != truth)
    labels = differences.argmax(axis=1)
    new = [
        (differences[i, label], start + i, label, images[i].copy())
        for i, label in enumerate(labels)
        if differences[i, label] > 0
    ]
    return heapq.nlargest(WORST, worst + new, key=operator.itemgetter(0))
