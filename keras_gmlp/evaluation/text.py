"""Evaluates text models of any format: classifiers, models for questions, language models.

Models of one task are scored on the same data. Classes are matched by name.
"""

import csv
import math
import tempfile
from pathlib import Path

import numpy as np

from keras_gmlp.data.text.chosen_splits import choose_questions, choose_texts
from keras_gmlp.data.text.corpus import PreparedCorpus, build_corpus
from keras_gmlp.data.text.masking import validation_set
from keras_gmlp.data.text.squad import missing_file
from keras_gmlp.data.text.squad_answers import (
    best_answers,
    best_threshold,
    score_answer,
    squad_scores,
)
from keras_gmlp.data.text.squad_features import STRIDE, span_features
from keras_gmlp.evaluation.images import match_classes, write_predictions
from keras_gmlp.evaluation.scores import ClassScorer, Predictions, rank_classes
from keras_gmlp.tasks.masked_lm import MASKS
from keras_gmlp.tasks.question_answering import question_length
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.files import atomic_write, write_json
from keras_gmlp.utils.progress import ProgressBar

BATCH = 32  # texts from one state of the progress bar to the next

# The scores of each task that rows of a table compare.
COMPARED = {
    "text_classification": ("accuracy", "balanced_accuracy", "matthews_correlation"),
    "question_answering": ("exact_match", "f1"),
    "masked_lm": ("perplexity", "accuracy"),
}


def evaluate_texts(
    models,
    name,
    split=None,
    *,
    columns=None,
    held_out=0.0,
    data_dir=None,
    limit=None,
    threshold=None,
):
    """Scores text models of one task on the same data.

    Texts of a class that a model does not know are left out for all models.

    Args:
        models: A list of `text_inference.TextModel`.
        name: For classifiers, labelled texts as `load_text` takes them; for models for questions, a
            set or file as `load_squad` takes it, such as `"squad/v2.0"`; for language models, a
            text file or the folder of a prepared corpus, whose validation text is taken.
        split, columns, held_out, data_dir: See `data.text.chosen_splits.choose_texts`. Language
            models take none of them.
        limit: Number of texts, questions or windows of text, drawn with a fixed seed. Defaults to
            all.
        threshold: For models for questions, see `Prediction.answer`. Defaults to 0 if some
            questions have no answer, and to an answer to each otherwise.

    Returns:
        A dict that JSON can hold: `data`, `split`, `task`, `unknown_classes` of the data, which
        were left out, and `models`, a dict of scores for each model; and the predictions of the
        first model: `Predictions` of a classifier, rows of a table of answers, `None` of a
        language model.

    Raises:
        ValueError: If there is no model, the models have several tasks, the data do not fit the
            models or cannot be read, or a logit is NaN. One line.
        ImportError: If scikit-learn is not installed, for classifiers. One line.
    """
    if not models:
        raise ValueError("expected at least one model; received none.")
    task = models[0].task
    for model in models:
        model.require(find_task(task).method)
    report = {"data": str(name), "split": split, "task": task}
    chosen = {"columns": columns, "held_out": held_out, "data_dir": data_dir}
    if task == "text_classification":
        require("sklearn", "evaluation", "demo")  # which `score` imports, after the work
        texts, labels, report["split"] = choose_texts(name, split, **chosen)
        texts = texts.take(draw_places(len(texts), limit))
        known = match_classes(models, labels, str(name), fix="")
        report["unknown_classes"] = [label for label in labels if label not in known]
        results = [_evaluate_classifier(model, texts, labels, known, name) for model in models]
    elif task == "question_answering":
        questions, report["split"] = choose_questions(name, split, **chosen)
        unanswerable = any(not question.answers for question in questions)
        if not any(question.answers for question in questions):
            raise ValueError(f"{name}: no question has a known answer; expected some.")
        questions = [questions[place] for place in draw_places(len(questions), limit)]
        if threshold is None and unanswerable:
            threshold = 0.0
        results = [_evaluate_answers(model, questions, threshold) for model in models]
    else:
        if split is not None or columns or held_out:
            raise ValueError("a language model takes a whole text; leave split and columns out.")
        report["split"] = "all"
        results = _evaluate_language_models(models, name, limit)
    report["models"] = [
        {"model": str(model.path), **scores}
        for model, (scores, _) in zip(models, results, strict=True)
    ]
    return report, results[0][1]


def write_text_report(directory, report, predictions):
    """Writes report.json and, of one model, predictions.csv and pictures into a folder."""
    from keras_gmlp.evaluation import plots

    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    write_json(directory / "report.json", report)
    if isinstance(predictions, Predictions):
        write_predictions(directory / "predictions.csv", predictions, "text")
        plots.draw_predictions(predictions, directory, "texts")
    elif predictions is not None:
        with (
            atomic_write(directory / "predictions.csv") as temporary,
            open(temporary, "w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.DictWriter(file, predictions[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(predictions)


def draw_places(total, limit):
    """Returns the places of all samples, or of a few that are drawn with a fixed seed, in order."""
    if limit is None or limit >= total:
        return range(total)
    return sorted(np.random.default_rng(0).permutation(total)[:limit].tolist())


def run_model(model, job, **inputs):
    """Returns a model's logits, with a progress bar."""
    total, parts = len(inputs["token_ids"]), []
    with ProgressBar(f"{job} {printable(Path(model.path).name)}", total) as progress:
        for start in range(0, total, BATCH):
            part = {name: array[start : start + BATCH] for name, array in inputs.items()}
            parts.append(model.run(**part))
            progress.show(min(start + BATCH, total))
    return np.concatenate(parts)


def _evaluate_classifier(model, texts, labels, known, name):
    """Returns the scores of a classifier on the texts of known classes, and its predictions."""
    if model.pairs not in (None, texts.pairs):
        received, takes = ("pairs", "single texts") if texts.pairs else ("single texts", "pairs")
        raise ValueError(f"{name} has {received}; {model.path} classifies {takes}.")
    scorer = ClassScorer(model.labels, labels, known)
    places = np.flatnonzero(scorer.used[texts.labels])
    if not len(places):
        raise ValueError(f"{name}: none of the {len(texts):,} texts has a class that models know.")
    texts = texts.take(places)
    whole = model.tokenizer.encode_batch(texts.texts)
    encoded = model.tokenizer.encode_batch(texts.texts, model.length)
    token_ids = np.stack([encoding.ids for encoding in encoded])
    logits = run_model(model, "classifying with", token_ids=token_ids)
    names = (text if isinstance(text, str) else "\t".join(text) for text in texts.texts)
    result = scorer.collect(names=tuple(names), **scorer.read(logits, texts.labels))
    scores = result.score("texts")
    scores["matthews_correlation"] = _correlate(result)
    scores["cut"] = sum(len(encoding) > model.length for encoding in whole)
    return scores, result


def _correlate(result):
    """Returns the Matthews correlation; 0 if one class alone is present or predicted."""
    from sklearn.metrics import matthews_corrcoef

    if len(np.unique(result.labels)) < 2 or len(np.unique(result.predictions)) < 2:
        return 0.0
    return round(float(matthews_corrcoef(result.labels, result.predictions)), 6)


def _evaluate_answers(model, questions, threshold):
    """Returns the scores of a model for questions, and the rows of a table of its answers."""
    most = question_length(model.length)
    stride = min(STRIDE, model.length // 2)
    features = span_features(questions, model.tokenizer, model.length, stride, most)
    logits = run_model(model, "answering with", token_ids=features.token_ids)
    found = best_answers(questions, features, logits[:, 0], logits[:, 1])
    answers = [prediction.answer(threshold) for prediction in found]
    scores = {"questions": len(questions), **_round(squad_scores(questions, answers))}
    if threshold is not None:
        best = best_threshold(questions, found)
        chosen = squad_scores(questions, [prediction.answer(best) for prediction in found])
        scores |= {"threshold": threshold, "best_threshold": best}
        scores["best_f1"] = round(chosen["f1"], 4)
    encoded = model.tokenizer.encode_batch([question.question for question in questions])
    scores["cut"] = sum(len(encoding) - 2 > most for encoding in encoded)
    rows = []
    for question, prediction, answer in zip(questions, found, answers, strict=True):
        exact, f1 = score_answer(question, answer)
        row = {"id": question.id, "question": question.question, "answer": answer}
        row |= {"exact_match": int(exact), "f1": round(f1, 4)}
        rows.append({**row, "difference": round(float(prediction.difference), 4)})
    return scores, rows


def _evaluate_language_models(models, name, limit):
    """Returns the scores of language models on the same masked windows, and `None` for each."""
    first = models[0]
    for model in models:
        if model.tokenizer.hash != first.tokenizer.hash:
            raise ValueError(
                f"{model.path} has another tokenizer than {first.path}, so their perplexities do "
                "not compare; evaluate them one by one."
            )
    with tempfile.TemporaryDirectory() as folder:
        corpus = _open_corpus(first, Path(name).expanduser(), folder)
        inputs, targets, weights = validation_set(corpus, min(model.length for model in models))
    rows = draw_places(len(targets), limit)
    inputs = {key: array[rows] for key, array in inputs.items()}
    targets, used = targets[rows], weights[rows] > 0
    if not used.any():
        raise ValueError(
            f"{name}: no token to mask; the tokenizer of {first.path} knows none of its words. "
            "Give a text in its language."
        )
    return [(_evaluate_masks(model, inputs, targets, used), None) for model in models]


def _evaluate_masks(model, inputs, targets, used):
    """Returns perplexity and accuracy over all masked tokens."""
    token_ids, positions = inputs["token_ids"], inputs["mask_positions"]
    token_ids = np.pad(token_ids, ((0, 0), (0, model.length - token_ids.shape[1])))
    extra = (0, -positions.shape[1] % MASKS)
    positions, targets, used = (np.pad(a, ((0, 0), extra)) for a in (positions, targets, used))
    total, right, calls = 0.0, 0, positions.shape[1] // MASKS
    with ProgressBar(f"reading with {printable(Path(model.path).name)}", len(targets)) as bar:
        for start in range(0, len(targets), BATCH):
            rows = slice(start, start + BATCH)
            for call in range(calls):
                part = rows, slice(MASKS * call, MASKS * (call + 1))
                if not used[part].any():
                    continue
                logits = model.run(token_ids=token_ids[rows], mask_positions=positions[part])
                wanted = targets[part][used[part]]
                found = rank_classes(
                    logits[used[part]].astype("float64"), wanted, np.arange(logits.shape[-1])
                )
                total -= found["log_likelihoods"].sum()
                right += int((found["predictions"] == wanted).sum())
            bar.show(min(start + BATCH, len(targets)))
    tokens = int(used.sum())
    scores = {"windows": len(targets), "masked_tokens": tokens}
    return {
        **scores,
        **_round({"perplexity": math.exp(total / tokens), "accuracy": right / tokens}),
    }


def _open_corpus(model, path, folder):
    """Returns the `Corpus` of a text file, or the validation text of a prepared folder."""
    if not path.exists():
        raise ValueError(
            f"{missing_file(str(path))} A language model is evaluated on a text file or on a "
            "prepared folder."
        )
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


def _round(scores):
    return {name: round(float(value), 6) for name, value in scores.items()}
