"""Scores models of any format on labelled images, or on texts; the task of texts scores them."""

import dataclasses
import heapq
import operator
from pathlib import Path

import numpy as np

from keras_gmlp.data.text.labelled_texts import TextSource
from keras_gmlp.evaluation.label_scores import LabelScorer
from keras_gmlp.evaluation.labelled import LabelledImages
from keras_gmlp.models.saved import require_numbers
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.tasks.scores import (
    ClassScorer,
    Predictions,  # noqa: F401 (this and the next are names of this package)
    calibration_error,  # noqa: F401
    match_classes,
)
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.files import write_json
from keras_gmlp.utils.progress import ProgressBar
from keras_gmlp.utils.tables import write_table

WORST = 36  # errors in the gallery


def evaluate(models, data, split=None, limit=None):
    """Scores models on the same images, or texts.

    Classes are matched by name. Images, or texts, of a class that a model does not know are left
    out for all models. If the images or a model have any number of labels, the labels that some do
    not know are left out instead, and images of one label each count as having that one. Warns if
    the run of a text model after the first was trained on the texts.

    Args:
        models: A list of `Classifier`, or of `TextModel` of one task.
        data: For images, `evaluation.LabelledImages`, which name the split. For classifiers of
            texts, labelled texts as `load_text` takes them; for language models, a text file; or a
            `data.text.labelled_texts.TextSource`, which says how they are divided.
        split: `"test"`, `"train"`, `"validation"` or `"all"` of labelled texts. Defaults to their
            test texts, or all if none are marked.
        limit: Number of texts or windows of text, drawn with a fixed seed. Defaults to all.

    Returns:
        A dict that JSON can hold, and the predictions of the first model: `Predictions` or
        `LabelPredictions`, `None` of a language model. The dict has `data` and `split`;
        `unknown_classes` of the data, which were left out; and `models`, a dict for each model:
        `model`, its path, what `Predictions.score` returns and `agreement`, the share of samples
        for which it says what the first model says. Of images also `images`, their number with
        those that were left out, and `missing_classes` of the first model, which have no images; of
        texts `task`.

    Raises:
        ValueError: If no class is known to all models, the models have several tasks or only some
            give several labels, the data do not fit the models or cannot be read, or a logit is
            NaN. One line.
        ImportError: If scikit-learn is not installed, for classifiers. One line.
    """
    if not isinstance(data, LabelledImages):
        entries, results = _score_texts(models, data, split, limit)
    elif split or limit:
        raise ValueError("split and limit are for texts; LabelledImages takes the split.")
    else:
        entries, results = _score_images(models, data)
    first, rows = results[0][1], []
    for model, (scores, found) in zip(models, results, strict=True):
        agreement = {}
        if found is not None:
            agreement["agreement"] = round(float(np.mean(found.given == first.given)), 6)
        rows.append({"model": str(model.path), **agreement, **scores})
    return {**entries, "models": rows}, first


def _score_texts(models, source, split, limit):
    """Returns entries of the report, and for each model its scores and predictions."""
    task = find_task(models[0].task)
    for model in models:
        model.require(task.method)
    source = source if isinstance(source, TextSource) else TextSource(source)
    samples, entries = task.load_samples(models, source, split, limit)
    entries = {"data": str(source.name), "split": split, "task": task.name, **entries}
    return entries, [task.score(model, samples) for model in models]


def _score_images(models, images):
    """Returns for images what `_score_texts` does."""
    require("sklearn", "evaluation", "demo")  # which `score` imports, after the work
    rows = images.label_rows
    single = [m.path for m in models if find_task(m.task).method != "find_labels"]
    several = len(single) < len(models)
    if single and (several or rows is not None):
        raise ValueError(
            f"{printable(single[0])}: gives one label for an image, but the images or another "
            "model have several."
        )
    known, found = match_classes(models, images.labels, images.name), []
    for model in models:
        if several:
            scorer = LabelScorer(model, images.labels, rows, known)
        else:
            scorer = ClassScorer(model.labels, images.labels, known, model.confidence)
        found.append(_predict(model, images, scorer))
    results = [(result.score(), result) for result in found]
    present = {row["label"] for row in results[0][0]["classes"]}
    entries = {
        "data": images.name,
        "split": images.split,
        "images": len(images),
        "unknown_classes": [label for label in images.labels if label not in known],
        "missing_classes": [label for label in found[0].classes if label not in present],
    }
    return entries, results


def _predict(classifier, images, scorer):
    """Returns the predictions of a classifier, with its worst errors."""
    names, parts, worst = [], [], []
    job = f"evaluating {printable(classifier.path.name)}"
    for logits, pixels, indices, places in read_logits(classifier, images, scorer.used, job):
        parts.append(scorer.read(logits, indices))
        severities = scorer.collect(names=(), **parts[-1]).severities
        wrong = np.flatnonzero(severities)
        worst += [(severities[i], len(names) + i, pixels[i].copy()) for i in wrong]
        worst = heapq.nlargest(WORST, worst, key=operator.itemgetter(0))
        names += [images.names[place] for place in places]
    arrays = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    result = scorer.collect(names=tuple(names), **arrays)
    return dataclasses.replace(result, errors=[(index, image) for _, index, image in worst])


def read_logits(classifier, images, used, job):
    """Yields logits of images of used classes, and their pixels, class indices and places.

    Args:
        classifier: A `Classifier`.
        images: `LabelledImages`.
        used: Whether each class is used, `(classes,)`.
        job: Name of the work, for the progress bar.
    """
    done, found = 0, False
    with ProgressBar(job, len(images)) as progress:
        for pixels, indices in images.batches(classifier):
            chosen = np.flatnonzero(used[indices])
            if len(chosen):
                kept, found = pixels[chosen], True
                logits = require_numbers(classifier.logits(kept), classifier.path)
                yield logits, kept, indices[chosen], done + chosen
            done += len(pixels)
            progress.show(done)
    if not found:
        raise ValueError(
            f"{printable(images.name)}: of the {done:,} images in --split {images.split}, none has "
            "a class that all models know; give another --split."
        )


def write_report(directory, report, result):
    """Writes report.json and, of a classifier, predictions.csv and pictures into a folder.

    The table has the columns path or text, label, prediction, probability and correct (1 or 0); of
    a calibrated model `known` as well, 0 for a sample that it rejects. That of any number of labels
    has path, labels, predictions, correct and the probability of each label. The pictures are
    reliability.png, of one label each confusion.png, and of images errors.png.

    Args:
        directory: The folder, created if necessary. Each file is complete or absent.
        report, result: What `evaluate` returns.
    """
    directory = Path(directory)
    write_json(directory / "report.json", report)
    if result is None:
        return
    from keras_gmlp.evaluation import plots

    is_text = result.errors is None
    write_table(directory / "predictions.csv", result.table("text" if is_text else "path"))
    plots.draw_predictions(result, directory, "texts" if is_text else "images")
