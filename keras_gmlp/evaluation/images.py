"""Evaluates image classifiers of any format on a folder of images or a data set.

Each model reads the images a batch at a time, cut to size as its card says. Classes are matched by
name.
"""

import csv
import heapq
import operator
from pathlib import Path

import numpy as np

from keras_gmlp.data.images.table import refuse_several
from keras_gmlp.evaluation.scores import Predictions, first_columns, rank_classes, score
from keras_gmlp.inference.opening import require_numbers
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import first_of, printable
from keras_gmlp.utils.files import atomic_write, write_json
from keras_gmlp.utils.progress import ProgressBar

WORST = 36  # errors in the gallery

NAMED = 10  # classes that a message lists


def evaluate(classifiers, images):
    """Classifies labelled images with one or more models.

    Images of a class that a model does not know are left out for all models.

    Args:
        classifiers: A list of `Classifier`.
        images: `data.labelled.LabelledImages`.

    Returns:
        For each classifier a pair: its `Predictions`, and its worst errors, a list of pairs of an
        index and the uint8 image. They are the wrong predictions with the highest probability, at
        most `WORST`.

    Raises:
        ValueError: If no class is known to all models, one gives several labels, an image cannot be
            read, or a logit is NaN. One line.
        ImportError: If scikit-learn is not installed. One line.
    """
    require("sklearn", "evaluation", "demo")  # which `report` imports, after the work
    refuse_several(images.name, images.label_rows)
    if several := [c.path for c in classifiers if c.thresholds is not None]:
        raise ValueError(f"{several[0]}: gives several labels for an image; expected one label.")
    known = set(images.labels).intersection(*(classifier.labels for classifier in classifiers))
    if not known:
        raise ValueError(no_common_class(classifiers, images))
    return [_evaluate(classifier, images, known) for classifier in classifiers]


def report(models, results, images):
    """Scores the predictions of models on the same images.

    Args:
        models: Name of each model.
        results: `Predictions` of each model.
        images: The `LabelledImages`.

    Returns:
        A dict that JSON can hold: `data` and `split` of the images; `images`, their number with
        those that were left out; `unknown_classes`, which were left out; `missing_classes` of the
        first model, which have no images; `models`, a dict for each model: `model`, its name,
        `agreement`, the share of images for which it predicts the class that the first model
        predicts, and what `analysis.scores.score` returns.
    """
    first, *_ = results
    present = {first.classes[index] for index in np.unique(first.labels)}
    known = set(images.labels).intersection(*(result.classes for result in results))
    expected = _predicted_names(first)
    rows = [
        {
            "model": model,
            "agreement": round(float(np.mean(_predicted_names(result) == expected)), 6),
            **score(result),
        }
        for model, result in zip(models, results, strict=True)
    ]
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

    Predictions of a calibrated model have `known` as well: 0 for an image that it rejects.

    Args:
        path: Path of the CSV file.
        result: The `Predictions`.
        name: Head of the first column.
    """
    known = [] if result.known is None else [result.known]
    with (
        atomic_write(path) as temporary,
        # File names that are no UTF-8 keep their bytes.
        open(temporary, "w", encoding="utf-8", errors="surrogateescape", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        head = (name, "label", "prediction", "probability", "correct", "known")
        writer.writerow(head[: 5 + len(known)])
        columns = result.names, result.labels, result.predictions, result.probabilities, *known
        for sample, label, prediction, probability, *rest in zip(*columns, strict=True):
            names = result.classes[label], result.classes[prediction]
            flags = map(int, (label == prediction, *rest))
            writer.writerow((sample, *names, f"{probability:.6f}", *flags))


def write_report(directory, scores, result, errors):
    """Writes report.json and, of one model, predictions.csv and three pictures into a folder.

    The pictures are confusion.png, errors.png and reliability.png. Each file is complete or absent.

    Args:
        directory: The folder, created if necessary.
        scores: What `report` returns.
        result, errors: What `evaluate` returns for the model.
    """
    from keras_gmlp.evaluation import plots

    directory, names = Path(directory), result.classes
    write_json(directory / "report.json", scores)
    write_predictions(directory / "predictions.csv", result)
    draw_scores(directory, result)
    answers = [
        (names[result.labels[i]], names[result.predictions[i]], result.probabilities[i])
        for i, _ in errors
    ]
    wrong = np.count_nonzero(~result.correct)
    title = f"most confident mistakes ({wrong:,} of {len(result.labels):,} images)"
    plots.draw_gallery([image for _, image in errors], answers, directory / "errors.png", title)


def draw_scores(directory, result, samples="images"):
    """Draws confusion.png and reliability.png of `Predictions` into a folder."""
    from keras_gmlp.evaluation import plots

    # A model of many classes may meet few of them.
    used, both = np.unique([result.labels, result.predictions], return_inverse=True)
    labels, predictions = both.reshape(2, -1)
    names = [result.classes[i] for i in used]
    plots.draw_confusion(labels, predictions, names, directory / "confusion.png", samples)
    path = directory / "reliability.png"
    plots.draw_reliability(result.probabilities, result.correct, path)


def _evaluate(classifier, images, known):
    columns = first_columns(classifier.labels)
    # The column of each class of the data, -1 to leave it out; of equal names the first column.
    true = np.array([columns[label] if label in known else -1 for label in images.labels])
    merged = np.array([columns[label] for label in classifier.labels])
    parts, worst, done, kept = [], [], 0, 0
    with ProgressBar(f"evaluating {printable(classifier.path.name)}", len(images)) as progress:
        for pixels, classes in images.batches(classifier):
            places = done + np.flatnonzero(true[classes] >= 0)
            chosen, labels = pixels[places - done], true[classes][places - done]
            done += len(pixels)
            if len(places):
                logits = require_numbers(classifier.logits(chosen), classifier.path)
                part = _predict(logits.astype("float64"), labels, merged, classifier.confidence)
                parts.append((places, labels, *part))
                worst = _worst(worst, kept, chosen, labels, *part[:2])
                kept += len(places)
            progress.show(done)
    if not parts:
        raise ValueError(
            f"{printable(images.name)}: of the {len(images):,} images in --split {images.split}, "
            "none has a class that all models know; give another --split."
        )
    places, *arrays = map(np.concatenate, zip(*parts, strict=True))
    names = tuple(images.names[place] for place in places)
    errors = [(index, image) for _, index, image in worst]
    return Predictions(names, tuple(classifier.labels), *arrays), errors


def _predict(logits, labels, merged, confidence):
    """Returns the arrays of `Predictions`, from the predictions on."""
    known = confidence.is_known(logits)
    known = () if known is None else (known,)
    return *rank_classes(logits, labels, merged, confidence.temperature).values(), *known


def _worst(worst, start, images, labels, predictions, probabilities):
    """Returns the worst errors so far, triples (probability, index, image), the worst first."""
    wrong = np.flatnonzero(predictions != labels)
    new = [(probabilities[i], start + i, images[i].copy()) for i in wrong]
    return heapq.nlargest(WORST, worst + new, key=operator.itemgetter(0))


def _predicted_names(result):
    return np.array(result.classes)[result.predictions]


def no_common_class(classifiers, images):
    """Returns the message that no class of the images is known to all classifiers."""
    for classifier in classifiers:
        if not set(classifier.labels) & set(images.labels):
            nameless = "" if classifier.named else "The file has no class names. "
            return (
                f"{printable(images.name)}: {printable(classifier.path)} knows none of its "
                f"classes; received {_first(images.labels)}; expected {_first(classifier.labels)}. "
                f"{nameless}Name the folders as the model names its classes."
            )
    return f"{printable(images.name)}: no class is known to all models; evaluate them one by one."


def _first(labels):
    return first_of([printable(label) for label in labels], NAMED)
