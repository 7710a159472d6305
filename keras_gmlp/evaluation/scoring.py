"""Scores models of any format on labelled images, or on texts, as their task says."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_gmlp.data.text.labelled_texts import TextSource
from keras_gmlp.evaluation.labelled import LabelledImages
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.files import write_json
from keras_gmlp.utils.tables import write_table


def evaluate(
    models: Sequence, data: str | Path, split: str | None = None, limit: int | None = None
) -> tuple:
    """Scores models on the same images, or texts.

    Classes are matched by name. Images, or texts, of a class that a model does not know are left
    out for all models. If the samples or a model have any number of labels, the labels that some do
    not know are left out instead, and samples of one label each count as having that one. Warns if
    the run of a text model after the first was trained on the texts.

    Args:
        models: A list of `Classifier`, or of `TextModel` of one task.
        data: For images, a folder, a table or a set by name, as `data.load` takes it; for
            classifiers of texts, labelled texts as `load_text` takes them; for language models, a
            text file.
        split: `"test"`, `"train"`, `"validation"` or `"all"` of labelled samples. Defaults to the
            test samples, of texts to all if none are marked.
        limit: Number of texts or windows of text, drawn with a fixed seed. Defaults to all.

    Returns:
        A dict that JSON can hold, and the predictions of the first model, `None` of a language
        model. The dict has `data`, `split` and `task`; of classifiers `unknown_classes` of the
        data, which were left out, and `missing_classes` of the first model, which have no samples;
        of images also `images`, their number with those that were left out; and `models`, a dict
        for each model: `model`, its path, `agreement`, the share of samples for which it says what
        the first model says, and its scores. Shares are in [0, 1]. Those of one label each are
        `accuracy`, `top5_accuracy` with more than five classes, `balanced_accuracy` (mean recall of
        the classes), `calibration_error` (Guo et al., 2017), `log_likelihood` (mean, in nats),
        `rejected` (what a calibrated model takes for none of its classes; the other scores count
        it), `classes` and `confusion`, the pairs of classes that occur.

    Raises:
        ValueError: If no class is known to all models, the models have several tasks or only some
            give several labels, the data do not fit the models or cannot be read, or a logit is
            NaN. One line.
        ImportError: If scikit-learn is not installed, for classifiers. One line.
    """
    task = find_task(models[0].task)
    for model in models:
        own = find_task(model.task)
        if own is not task:
            raise ValueError(f"{printable(model.path)} is {own.kind}; expected {task.kind}.")
    if task.domain == "images" and not isinstance(data, LabelledImages):
        data, split = LabelledImages(data, split or "test"), None
    elif not isinstance(data, LabelledImages | TextSource):
        data = TextSource(data)
    samples, entries = task.load_samples(models, data, split, limit)
    results = [task.score(model, samples) for model in models]
    first, rows = results[0][1], []
    for model, (scores, found) in zip(models, results, strict=True):
        agreement = {}
        if found is not None:
            agreement["agreement"] = round(float(np.mean(found.given == first.given)), 6)
        rows.append({"model": str(model.path), **agreement, **scores})
    entries = {"data": str(data.name), "split": split, "task": task.name, **entries}
    if first is not None:
        present = {row["label"] for row in rows[0]["classes"]}
        entries["missing_classes"] = [label for label in first.classes if label not in present]
    return {**entries, "models": rows}, first


def write_report(directory, report, result):
    """Writes report.json and, of a classifier, predictions.csv and pictures into a folder."""
    directory = Path(directory)
    write_json(directory / "report.json", report)
    if result is None:
        return
    from keras_gmlp.evaluation import plots

    is_text = result.errors is None
    write_table(directory / "predictions.csv", result.table("text" if is_text else "path"))
    plots.draw_predictions(result, directory, "texts" if is_text else "images")
