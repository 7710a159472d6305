"""Exports the run of a text model and compares each file with the model."""

import itertools
import time
from pathlib import Path

import numpy as np

from keras_gmlp.data.text.corpus import PreparedCorpus
from keras_gmlp.data.text.files import read_lines
from keras_gmlp.data.text.sentences import load_text
from keras_gmlp.data.text.squad import Question, load_squad
from keras_gmlp.data.text.squad_features import span_features
from keras_gmlp.export.text import TEXT_FORMATS, export_text
from keras_gmlp.inference.text import MASKS, question_length
from keras_gmlp.inference.text_opening import open_text_model
from keras_gmlp.models.saved import model_path
from keras_gmlp.training.model_card import write_model_card
from keras_gmlp.utils.card import read_card
from keras_gmlp.utils.files import directory_lock, read_json, write_json

OWN = ("task", "tokenizer", "labels", "length")  # entries of a card that each export writes

CHECKED = 1000  # texts, at most

EVERY = 7  # words from one mask to the next in the check of a masked language model


def export_text_run(directory, formats=None, texts=None, truth=None, report=lambda text: None):
    """Exports the `model.keras` in the folder of a run, checks each file and records the result."""
    directory = Path(directory)
    path = model_path(directory)
    if (directory / "recipe.json").exists() and not (directory / "metrics.json").exists():
        raise ValueError(f"{directory}: this run is not complete; finish it with train_text.py.")
    source = open_text_model(path)
    card = {name: value for name, value in read_card(path).items() if name not in OWN}
    arguments = source.tokenizer, source.length
    results = {}
    with directory_lock(directory):
        if texts is not None:
            inputs = check_inputs(source, texts)
            report(f"running the Keras model on {len(texts):,} texts")
            expected = source.run(**inputs)
        for name in TEXT_FORMATS if formats is None else formats:
            report(f"exporting {name}")
            written = export_text(source.model, directory, *arguments, [name], source.labels, card)
            result = None
            if texts is not None:
                result = check_text_export(written[name], inputs, expected, truth)
                results[name] = result
            _record(directory, name, result)
            found = result or {"not checked": ""}
            report(f"{written[name]}: " + ", ".join(f"{k} {v}".strip() for k, v in found.items()))
        write_model_card(directory)
    return results


def load_check_texts(source, name, columns=None, data_dir=None):
    """Returns up to 1,000 texts to check files with, and the class indices of a classifier."""
    if source.task == "masked_lm":
        return list(itertools.islice(_read_plain(source, Path(name)), CHECKED)), None
    load = load_squad if source.task == "question_answering" else load_text
    data = load(name, data_dir=data_dir, **(columns or {}))
    test = data.test
    if source.task == "question_answering":
        return [(q.question, q.context) for q in test[:CHECKED]], None
    if tuple(data.labels) != source.labels or source.pairs not in (None, test.pairs):
        raise ValueError(
            f"{name} has {_kind(test.pairs, data.labels)}; the model classifies "
            f"{_kind(source.pairs, source.labels)}. Check it on its training data."
        )
    part = test.take(CHECKED)
    return part.texts, part.labels


def _kind(pairs, labels):
    return f"{'pairs of ' if pairs else ''}texts as {', '.join(labels[:10])}"


def _read_plain(source, path):
    if not path.is_dir():
        yield from filter(str.strip, read_lines(path))
        return
    prepared = PreparedCorpus.open(path)
    corpus = prepared.valid or prepared.train
    for start, stop in corpus.windows(source.length):
        yield prepared.tokenizer.decode(corpus.tokens[start:stop])


def check_inputs(source, texts):
    """Returns a model's inputs for texts, a dict of int32 arrays; see `export_text_run`."""
    tokenizer, length = source.tokenizer, source.length
    if source.task == "question_answering":
        asked = [Question(*pair) for pair in texts]
        most = question_length(length)
        return {"token_ids": span_features(asked, tokenizer, length, length, most).token_ids}
    ids = np.stack([encoding.ids for encoding in tokenizer.encode_batch(texts, length)])
    if source.task == "text_classification":
        return {"token_ids": ids}
    positions = np.zeros((len(ids), MASKS), "int32")
    for row, places in zip(ids, positions, strict=True):
        (words,) = np.nonzero(row > max(tokenizer.special_ids))
        chosen = words[::EVERY][:MASKS]
        places[: len(chosen)] = chosen
        row[chosen] = tokenizer.mask_id
    return {"token_ids": ids, "mask_positions": positions}


def check_text_export(path, inputs, expected, truth=None):
    """Compares an exported file with the model."""
    opened = open_text_model(path, threads=1)
    found = opened.run(**inputs)
    used = np.ones(expected.shape[:-1], bool)
    if "mask_positions" in inputs:
        used = inputs["mask_positions"] > 0
    difference = np.abs(found - expected)[used].max()
    same = (found.argmax(-1) == expected.argmax(-1))[used]
    result = {
        "max_logit_difference": float(f"{difference:.3g}"),
        "top1_agreement": round(float(same.mean()), 6),
    }
    if truth is not None:
        result["accuracy"] = round(float(np.mean(found.argmax(-1) == truth)), 6)
    result["megabytes"] = round(Path(path).stat().st_size / 1e6, 3)
    result["latency_ms"] = round(1000 * _latency(opened, inputs), 3)
    return result


def _latency(opened, inputs, repeats=50):
    one = {name: array[:1] for name, array in inputs.items()}
    seconds = []
    for _ in range(5 + repeats):
        began = time.perf_counter()
        opened.run(**one)
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds[5:]))


def _record(directory, name, result):
    """Writes the result of a file to metrics.json, or removes that of the file it replaced."""
    metrics = read_json(directory / "metrics.json", {})
    before = metrics.get("exports", {})
    after = {key: value for key, value in {**before, name: result}.items() if value is not None}
    if after != before:
        write_json(directory / "metrics.json", {**metrics, "exports": after})
