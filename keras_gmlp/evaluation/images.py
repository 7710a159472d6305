"""Evaluates image classifiers of any format on a folder of images, a table or a data set."""

import heapq
import operator
from pathlib import Path

import numpy as np

from keras_gmlp.evaluation.label_scores import LabelPredictions, LabelScorer
from keras_gmlp.models.saved import require_numbers
from keras_gmlp.tasks.scores import (
    ClassScorer,
    Predictions,  # noqa: F401 (this and the next two are names of this package)
    calibration_error,  # noqa: F401
    match_classes,
    score,  # noqa: F401
)
from keras_gmlp.utils.csv_tables import write_table
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.files import write_json
from keras_gmlp.utils.progress import ProgressBar

WORST = 36  # errors in the gallery


def evaluate(classifiers, images):
    """Classifies labelled images with one or more models.

    Classes are matched by name. Images of a class that a model does not know are left out for all
    models. If the images or a model have any number of labels, the labels that some do not know are
    left out instead, and images of one label each count as having that one.

    Args:
        classifiers: A list of `Classifier`.
        images: `evaluation.LabelledImages`.

    Returns:
        For each classifier a pair: its `Predictions` (or `LabelPredictions`), and its worst errors,
        a list of pairs of an index and the uint8 image. They are the wrong predictions with the
        highest probability (or the largest error of a label), at most `WORST`.

    Raises:
        ValueError: If no class is known to all models, only some models give several labels, an
            image cannot be read, or a logit is NaN. One line.
        ImportError: If scikit-learn is not installed. One line.
    """
    require("sklearn", "evaluation", "demo")  # which `report` imports, after the work
    rows, single = images.label_rows, [c.path for c in classifiers if c.thresholds is None]
    several = len(single) < len(classifiers)
    if single and (several or rows is not None):
        reason = "the images have several. Evaluate it on images of one label each."
        if rows is None:
            reason = "another model gives several. Evaluate them one by one."
        raise ValueError(f"{printable(single[0])}: gives one label for an image, but {reason}")
    known, results = match_classes(classifiers, images.labels, images.name), []
    for model in classifiers:
        if several:
            scorer = LabelScorer(model, images.labels, rows, known)
        else:
            scorer = ClassScorer(model.labels, images.labels, known, model.confidence)
        results.append(_evaluate(model, images, scorer))
    return results


def report(models, results, images):
    """Scores the predictions of models on the same images.

    Args:
        models: Name of each model.
        results: `Predictions` of each model, as `evaluate` returns them.
        images: The `LabelledImages`.

    Returns:
        A dict that JSON can hold: `data` and `split` of the images; `images`, their number with
        those that were left out; `unknown_classes`, which were left out; `missing_classes` of the
        first model, which have no images; `models`, a dict for each model: `model`, its name,
        `agreement`, the share of images for which it predicts the class that the first model
        predicts, and what `evaluation.score` returns.
    """
    first, *_ = results
    known = set(images.labels).intersection(*(result.classes for result in results))
    rows, given = [], first.given
    for model, result in zip(models, results, strict=True):
        agreement = round(float(np.mean(result.given == given)), 6)
        rows.append({"model": model, "agreement": agreement, **result.score()})
    present = {row["label"] for row in rows[0]["classes"]}
    return {
        "data": images.name,
        "split": images.split,
        "images": len(images),
        "unknown_classes": [label for label in images.labels if label not in known],
        "missing_classes": [label for label in first.classes if label not in present],
        "models": rows,
    }


def write_predictions(path, result, name="path"):
    """Writes predictions as a CSV file: path, label, prediction, probability, correct (1 or 0).

    Predictions of a calibrated model have `known` as well: 0 for an image that it rejects. Those of
    any number of labels have the columns path, labels, predictions, correct and the probability of
    each label.

    Args:
        path: Path of the CSV file.
        result: The `Predictions`.
        name: Head of the first column.
    """
    write_table(path, result.table(name))


def write_report(directory, scores, result, errors):
    """Writes report.json and, of one model, predictions.csv and pictures into a folder.

    The pictures are errors.png, reliability.png and, of one label for each image, confusion.png.
    Each file is complete or absent.

    Args:
        directory: The folder, created if necessary.
        scores: What `report` returns.
        result, errors: What `evaluate` returns for the model.
    """
    from keras_gmlp.evaluation import plots

    directory = Path(directory)
    write_json(directory / "report.json", scores)
    write_predictions(directory / "predictions.csv", result)
    plots.draw_predictions(result, directory)
    wrong, total = np.count_nonzero(~result.correct), len(result.names)
    title = f"most confident mistakes ({wrong:,} of {total:,} images)"
    if isinstance(result, LabelPredictions):
        title = f"largest errors of a label ({wrong:,} of {total:,} images are wrong)"
    answers = [result.describe(index) for index, _ in errors]
    plots.draw_gallery([image for _, image in errors], answers, directory / "errors.png", title)


def _evaluate(classifier, images, scorer):
    """Returns the predictions of a classifier, and its worst errors; see `evaluate`."""
    names, parts, worst = [], [], []
    job = f"evaluating {printable(classifier.path.name)}"
    batches = images.batches(classifier)
    found = read_logits(classifier, batches, len(images), scorer.used, job)
    for logits, pixels, indices, places in found:
        parts.append(scorer.read(logits, indices))
        severities = scorer.collect(names=(), **parts[-1]).severities
        wrong = np.flatnonzero(severities)
        worst += [(severities[i], len(names) + i, pixels[i].copy()) for i in wrong]
        worst = heapq.nlargest(WORST, worst, key=operator.itemgetter(0))
        names += [images.names[place] for place in places]
    if not parts:
        raise ValueError(no_known_class(images))
    arrays = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    errors = [(index, image) for _, index, image in worst]
    return scorer.collect(names=tuple(names), **arrays), errors


def read_logits(classifier, batches, total, used, job):
    """Yields logits of images of used classes, and their pixels, class indices and places."""
    done = 0
    with ProgressBar(job, total) as progress:
        for pixels, indices in batches:
            chosen = np.flatnonzero(used[indices])
            if len(chosen):
                kept = pixels[chosen]
                logits = require_numbers(classifier.logits(kept), classifier.path)
                yield logits, kept, indices[chosen], done + chosen
            done += len(pixels)
            progress.show(done)


def no_known_class(images):
    """Returns the message that the chosen images are of other classes than models know."""
    return (
        f"{printable(images.name)}: of the {len(images):,} images in --split {images.split}, none "
        "has a class that all models know; give another --split."
    )
