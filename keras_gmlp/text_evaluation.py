"""Evaluates text models of any format: classifiers, models for questions, language models.

A `.tflite` model requires no Keras. Classes are matched by name.
"""

import csv
import tempfile
from pathlib import Path

import numpy as np

from keras_gmlp.analysis.scores import Predictions, score
from keras_gmlp.data.text.corpus import PreparedCorpus, build_corpus
from keras_gmlp.data.text.masking import validation_set
from keras_gmlp.data.text.sentences import load_text
from keras_gmlp.data.text.squad import load_squad
from keras_gmlp.data.text.squad_answers import (
    best_answers,
    best_threshold,
    score_answer,
    squad_scores,
)
from keras_gmlp.data.text.squad_features import span_features
from keras_gmlp.evaluation import write_predictions
from keras_gmlp.text_inference import MASKS, question_length
from keras_gmlp.utils.errors import first_of, printable
from keras_gmlp.utils.files import atomic_write, write_json
from keras_gmlp.utils.optional import require
from keras_gmlp.utils.progress import ProgressBar

BATCH = 32  # texts from one state of the progress bar to the next

# The scores of each task that rows of a table compare.
COMPARED = {
    "text_classification": ("accuracy", "balanced_accuracy", "matthews_correlation"),
    "question_answering": ("exact_match", "f1"),
    "masked_lm": ("perplexity", "accuracy"),
}


def evaluate_texts(models, name, split="test", columns=None, data_dir=None, limit=None, **options):
    """Scores text models of one task on the same data.

    Args:
        models: A list of `text_inference.TextModel`.
        name: For classifiers, labelled texts as `load_text` takes them; for models for questions, a
            set or file as `load_squad` takes it, such as `"squad/v2.0"`; for language models, a
            text file or the folder of a prepared corpus, whose validation text is taken.
        split: `"test"` or `"train"`; not for language models.
        columns: Further arguments of `load_text` or `load_squad`, a dict.
        data_dir: Folder of TensorFlow Datasets.
        limit: Number of texts, questions or windows of text, the first ones. Defaults to all.
        **options: `threshold` of `Prediction.answer`, for models for questions. Defaults to 0 if
            some questions have no answer, and to an answer to each otherwise.

    Returns:
        For each model a pair: its scores, a dict that JSON can hold, and its predictions:
        `Predictions` of a classifier, rows of a table of answers, `None` of a language model.

    Raises:
        ValueError: If the models have several tasks, the data do not fit the models or cannot be
            read, or a logit is NaN. One line.
    """
    task = models[0].task
    for model in models:
        model.require(_method(task))
    if task == "text_classification":
        require("sklearn", "evaluation", "demo")  # which `score` imports, after the work
        data = load_text(name, data_dir=data_dir, **(columns or {}))
        texts = getattr(data, split)
        texts = texts if limit is None else texts.take(limit)
        _require_some(texts, name, split)
        evaluate = _evaluate_classifier, data, texts
    elif task == "question_answering":
        data = load_squad(name, data_dir=data_dir, **(columns or {}))
        questions = getattr(data, split)[:limit]
        _require_some(questions, name, split)
        threshold = options.get("threshold")
        if threshold is None and data.unanswerable:
            threshold = 0.0
        evaluate = _evaluate_answers, questions, threshold
    else:
        evaluate = _evaluate_masks, name, limit
    function, *arguments = evaluate
    return [function(model, *arguments) for model in models]


def write_text_report(directory, report, predictions):
    """Writes report.json and, of one model, predictions.csv and pictures into a folder.

    The pictures are confusion.png and reliability.png, of a classifier. Each file is complete or
    absent.

    Args:
        directory: The folder, created if necessary.
        report: What report.json holds.
        predictions: The predictions of the model, as `evaluate_texts` returns them.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    write_json(directory / "report.json", report)
    if predictions is None:
        return
    path = directory / "predictions.csv"
    if isinstance(predictions, Predictions):
        from keras_gmlp.analysis import plots

        write_predictions(path, predictions, "text")
        answers = predictions.labels, predictions.predictions
        plots.draw_confusion(*answers, predictions.classes, directory / "confusion.png")
        right = predictions.probabilities, predictions.correct
        plots.draw_reliability(*right, directory / "reliability.png")
        return
    with (
        atomic_write(path) as temporary,
        open(temporary, "w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, predictions[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(predictions)


def _method(task):
    from keras_gmlp.text_inference import TASKS

    return TASKS[task][1]


def _require_some(samples, name, split):
    if not len(samples):
        raise ValueError(f"{name}: no samples in the split {split}; expected some.")


def _run(model, job, **inputs):
    """Returns a model's logits, with a progress bar."""
    total, parts = len(inputs["token_ids"]), []
    with ProgressBar(f"{job} {printable(Path(model.path).name)}", total) as progress:
        for start in range(0, total, BATCH):
            part = {name: array[start : start + BATCH] for name, array in inputs.items()}
            parts.append(model.run(**part))
            progress.show(min(start + BATCH, total))
    return np.concatenate(parts)


def _evaluate_classifier(model, data, texts):
    columns = {label: place for place, label in enumerate(model.labels)}
    known = np.array([columns.get(label, -1) for label in data.labels])
    if (known < 0).all():
        raise ValueError(
            f"{printable(data.name)}: {printable(str(model.path))} knows none of its classes; "
            f"received {first_of([*map(printable, data.labels)], 10)}; expected "
            f"{first_of([*map(printable, model.labels)], 10)}."
        )
    if model.pairs not in (None, texts.pairs):
        received, takes = ("pairs", "single texts") if texts.pairs else ("single texts", "pairs")
        raise ValueError(f"{data.name} has {received}; {model.path} classifies {takes}.")
    places = np.flatnonzero(known[texts.labels] >= 0)
    labels = known[texts.labels][places]
    chosen = [texts.texts[place] for place in places]
    if not chosen:
        raise ValueError(f"{data.name}: no text has a class that {model.path} knows.")
    encoded = model.tokenizer.encode_batch(chosen, model.length)
    token_ids = np.stack([encoding.ids for encoding in encoded])
    logits = _run(model, "classifying with", token_ids=token_ids).astype("float64")
    logits -= logits.max(axis=-1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    of_labels = np.take_along_axis(logs, labels[:, None], axis=-1)
    names = tuple(text if isinstance(text, str) else "\t".join(text) for text in chosen)
    result = Predictions(
        names=names,
        classes=tuple(model.labels),
        labels=labels,
        predictions=logs.argmax(axis=-1),
        probabilities=np.exp(logs.max(axis=-1)),
        log_likelihoods=of_labels[:, 0],
        ranks=np.count_nonzero(logs > of_labels, axis=-1),
    )
    return {**score(result, "texts"), "matthews_correlation": _correlation(result)}, result


def _correlation(result):
    from sklearn.metrics import matthews_corrcoef

    return round(float(matthews_corrcoef(result.labels, result.predictions)), 6)


def _evaluate_answers(model, questions, threshold):
    most = question_length(model.length)
    windows = questions, model.tokenizer, model.length, model.length // 2, most
    features = span_features(*windows)
    logits = _run(model, "answering with", token_ids=features.token_ids)
    found = best_answers(questions, features, logits[:, 0], logits[:, 1])
    answers = [prediction.answer(threshold) for prediction in found]
    scores = {"questions": len(questions), **_rounded(squad_scores(questions, answers))}
    if threshold is not None:
        best = best_threshold(questions, found)
        chosen = squad_scores(questions, [prediction.answer(best) for prediction in found])
        scores["threshold"] = threshold
        scores["best_threshold"], scores["best_f1"] = round(best, 4), round(chosen["f1"], 4)
    rows = []
    for question, prediction, answer in zip(questions, found, answers, strict=True):
        exact, f1 = score_answer(question, answer)
        row = {"id": question.id, "question": question.question, "answer": answer}
        difference = round(float(prediction.difference), 4)
        rows.append({**row, "exact_match": int(exact), "f1": round(f1, 4), "null": difference})
    return scores, rows


def _evaluate_masks(model, name, limit):
    with tempfile.TemporaryDirectory() as folder:
        corpus = _open_corpus(model, Path(name), folder)
        inputs, targets, weights = validation_set(corpus, model.length)
        inputs = {key: array[:limit] for key, array in inputs.items()}
        targets, weights = targets[:limit], weights[:limit] > 0
        total, right, tokens = 0.0, 0, int(weights.sum())
        # A file of 8 places in a window takes the masks of one in several calls.
        places = range(0, targets.shape[1], MASKS)
        with ProgressBar(f"reading with {printable(Path(model.path).name)}", len(targets)) as bar:
            for start in range(0, len(targets), BATCH):
                rows = slice(start, start + BATCH)
                for place in places:
                    part = rows, slice(place, place + MASKS)
                    asked = inputs["mask_positions"][part]
                    asked = np.pad(asked, ((0, 0), (0, MASKS - asked.shape[1])))
                    ids = inputs["token_ids"][rows]
                    logits = model.run(token_ids=ids, mask_positions=asked)
                    used = weights[part]
                    chosen = logits[:, : used.shape[1]][used].astype("float64")
                    wanted = targets[part][used]
                    chosen -= chosen.max(axis=-1, keepdims=True)
                    logs = chosen - np.log(np.exp(chosen).sum(axis=-1, keepdims=True))
                    total -= logs[np.arange(len(wanted)), wanted].sum()
                    right += int((logs.argmax(axis=-1) == wanted).sum())
                bar.show(min(start + BATCH, len(targets)))
    scores = {"perplexity": float(np.exp(total / tokens)), "accuracy": right / tokens}
    return {"windows": len(targets), "masked_tokens": tokens, **_rounded(scores, 6)}, None


def _open_corpus(model, path, folder):
    if path.is_file():
        return build_corpus([path], model.tokenizer, folder)
    prepared = PreparedCorpus.open(path)
    if prepared.tokenizer.hash != model.tokenizer.hash:
        raise ValueError(
            f"{path} was prepared with another tokenizer than that of {model.path}; give the text "
            "file instead. Perplexities compare only for one tokenizer."
        )
    if prepared.valid is None:
        raise ValueError(f"{path} has no text for validation; prepare it with --valid FILE.")
    return prepared.valid


def _rounded(scores, digits=4):
    return {name: round(value, digits) for name, value in scores.items()}
