"""Evaluates text models of any format; the task of the models loads the samples and scores them."""

from pathlib import Path

from keras_gmlp.data.text.chosen_splits import TextSource
from keras_gmlp.evaluation.images import write_predictions
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.tasks.scores import Predictions
from keras_gmlp.utils.files import write_json


def evaluate_texts(models, source, split=None, limit=None):
    """Scores text models of one task on the same data.

    Texts of a class that a model does not know are left out for all models. Warns if a run of a
    model after the first was trained on the texts.

    Args:
        models: A list of `inference.TextModel`.
        source: For classifiers, labelled texts as `load_text` takes them; for language models, a
            text file or the folder of a prepared corpus, whose validation text is taken. Or a
            `data.text.chosen_splits.TextSource`, which says how they are divided.
        split: `"test"`, `"train"`, `"validation"` or `"all"` of labelled texts. Defaults to their
            test texts, or all if none are marked.
        limit: Number of texts or windows of text, drawn with a fixed seed. Defaults to all.

    Returns:
        A dict that JSON can hold: `data`, `split`, `task`, `unknown_classes` of the data, which
        were left out, and `models`, a dict of scores for each model; and the predictions of the
        first model: `Predictions` of a classifier, `None` of a language model.

    Raises:
        ValueError: If there is no model, the models have several tasks, the data do not fit the
            models or cannot be read, or a logit is NaN. One line.
        ImportError: If scikit-learn is not installed, for classifiers. One line.
    """
    if not models:
        raise ValueError("expected at least one model; received none.")
    task = find_task(models[0].task)
    for model in models:
        model.require(task.method)
    source = source if isinstance(source, TextSource) else TextSource(source)
    samples, entries = task.load_samples(models, source, split, limit)
    rows, predictions = [], []
    for model in models:
        scores, found = task.score(model, samples)
        rows.append({"model": str(model.path), **scores})
        predictions.append(found)
    report = {
        "data": str(source.name),
        "split": split,
        "task": task.name,
        **entries,
        "models": rows,
    }
    return report, predictions[0]


def write_text_report(directory, report, predictions):
    """Writes report.json and, of one model, predictions.csv and pictures into a folder."""
    directory = Path(directory)
    write_json(directory / "report.json", report)
    if isinstance(predictions, Predictions):
        from keras_gmlp.evaluation import plots

        write_predictions(directory / "predictions.csv", predictions, "text")
        plots.draw_predictions(predictions, directory, "texts")
