"""Data to check exported files with."""

import itertools
from pathlib import Path

import numpy as np

from keras_gmlp.data.datasets import load_recorded
from keras_gmlp.data.text.corpus import PreparedCorpus
from keras_gmlp.data.text.files import read_lines
from keras_gmlp.data.text.sentences import load_text
from keras_gmlp.data.text.squad import Question, load_squad
from keras_gmlp.data.text.squad_features import span_features
from keras_gmlp.inference import images as inference
from keras_gmlp.inference.text import MASKS, question_length
from keras_gmlp.inference.text_opening import open_text_model
from keras_gmlp.models.saved import model_path
from keras_gmlp.utils.card import read_card
from keras_gmlp.utils.files import read_json

CHECKED = 1000  # texts, at most

EVERY = 7  # words from one mask to the next in the check of a masked language model


def load_check_data(directory, name=None, data_dir=None):
    """Returns the data that `export_run` checks files with: a run's own, or others by name."""
    path, recipe = model_path(directory), read_json(Path(directory) / "recipe.json", {})
    card = read_card(path)
    if card.get("task"):
        source = open_text_model(path)
        columns = {} if name else recipe.get("columns")
        if name is None and source.task != "masked_lm":
            name = recipe.get("data")
        if not name:
            raise ValueError(
                f"{directory}: give --data FILE, a text to check the files with, or --no-check."
            )
        return load_check_texts(source, name, columns, data_dir)
    name = name or recipe.get("data") or card.get("data")
    if not name:
        raise ValueError(
            f"{path}: the data set for the checks is unknown; give --data or --no-check."
        )
    shape = recipe.get("image_shape") or inference.load(path).image_shape
    return load_recorded(recipe, shape, name, data_dir, card.get("fit", "crop"))


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
    """Returns a model's inputs for texts, a dict of int32 arrays; see `export_run`."""
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
