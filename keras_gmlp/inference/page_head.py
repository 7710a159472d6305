"""Classifiers that the web page learned: a head on the features of a model."""

import dataclasses
import json
from pathlib import Path

import numpy as np

from keras_gmlp.inference.similarity import make_embedder
from keras_gmlp.models.saved import require_numbers
from keras_gmlp.tasks.confidence import Confidence
from keras_gmlp.utils.card import DIGEST, read_card
from keras_gmlp.utils.labels import is_label

KIND = "keras_gmlp.head"  # of the file that apps/web/head.js writes


def add_head(classifier, path):
    """Replaces the classes of a classifier with those that the web page learned."""
    head, weights, bias, parts = _read_head(path)
    found, expected = read_card(classifier.path).get(DIGEST), head[DIGEST]
    if found != expected:
        raise ValueError(
            f"{path}: learned with {head['model']}, whose hash is {expected[:12]}; received "
            f"{classifier.path} with {str(found)[:12]}. Choose that model's file with features."
        )
    embed = make_embedder(classifier)

    def logits(images):
        features = require_numbers(embed(images), classifier.path)
        with np.errstate(over="ignore", invalid="ignore"):  # such logits are an error of one line
            return require_numbers((features @ weights.T + bias).astype("float32"), path)

    return dataclasses.replace(
        classifier,
        logits=logits,
        labels=tuple(head["labels"]),
        task="image_classification",
        model=None,
        named=True,
        confidence=Confidence(),
        parts=parts,
    )


def _read_head(path):
    """Returns the contents of a file, its weights `(classes, features)`, bias and parts."""
    content = Path(path).read_bytes()
    try:
        head = json.loads(content)
        weights, bias = np.array(head["weights"], "float64"), np.array(head["bias"], "float64")
        parts = tuple((float(side), float(x), float(y)) for side, x, y in head["parts"])
        valid = (
            head["kind"] == KIND
            and all(isinstance(head[key], str) for key in ("model", DIGEST))
            and isinstance(head["labels"], list)
            and all(map(is_label, head["labels"]))
            and weights.ndim == 2
            and len(weights) == len(head["labels"]) >= 2
            and bias.shape == (len(weights),)
            and np.isfinite(weights).all()
            and np.isfinite(bias).all()
            and all(part[0] > 0 and all(0 <= n <= 1 for n in part) for part in parts)
        )
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        valid = False
    if not valid:
        raise ValueError(f"{path}: no classifier of the web page, or damaged. Download it again.")
    return head, weights, bias, parts
