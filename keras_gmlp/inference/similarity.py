"""Finds images and texts by the vectors of a model; a `.tflite` file requires no Keras."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from keras_gmlp.data.text.tokenizer import count_cut, encode_rows
from keras_gmlp.inference.opening import FEATURES_SIGNATURE, open_keras
from keras_gmlp.models.saved import require_numbers
from keras_gmlp.tasks.text_model import TextModel
from keras_gmlp.utils.parsers import open_interpreter
from keras_gmlp.utils.progress import map_in_threads

TOGETHER = 64  # images, or texts, that a model takes at a time


def make_embedder(classifier):
    """Returns the function from images, or token ids of texts, to the vectors of a model."""
    is_text = isinstance(classifier, TextModel)
    if classifier.model is not None:
        from keras_gmlp.models.language_model import text_features
        from keras_gmlp.models.structure import features

        build = text_features if is_text else features
        body = open_keras(build(classifier.model))  # Keras' predict is not for several threads
        (name,) = body.inputs

        def embed(rows):
            starts = range(0, len(rows), TOGETHER)
            return np.concatenate([body.run(**{name: rows[i : i + TOGETHER]}) for i in starts])

        return embed
    interpreter = None
    if Path(classifier.path).suffix.lower() == ".tflite":
        # Of its own: as long as a runner exists, its interpreter runs nothing else.
        interpreter = open_interpreter(classifier.path, min(4, os.cpu_count() or 1))
    if interpreter is None or FEATURES_SIGNATURE not in interpreter.get_signature_list():
        raise ValueError(
            f"{classifier.path}: has no features; expected a .keras file, or a .tflite file that "
            "apps/export.py RUN --formats features writes."
        )
    run, lock = interpreter.get_signature_runner(FEATURES_SIGNATURE), threading.Lock()
    name, dtype = ("token_ids", "int32") if is_text else ("image", "float32")

    def embed(rows):
        rows = np.asarray(rows, dtype)[:, None]  # the file takes one at a time
        with lock:  # threads share the interpreter's tensors
            return np.concatenate([run(**{name: row})["features"] for row in rows])

    return embed


def embed(model: Any, samples: Any, report: Callable | None = None) -> np.ndarray:
    """Returns the vectors of images, which the head of their classifier gets, or of texts.

    The vector of a text is the mean of its encoded tokens. Similar images, and texts that share
    words or topics, have similar vectors; compare them by the cosine. If texts are longer than the
    model, it warns once, with their number.

    Args:
        model: A `Classifier` or a `TextModel`, of a `.keras` file, or of a `.tflite` file that
            `apps/export.py RUN --formats features` wrote.
        samples: Images as `Classifier.read` takes them, or texts, a list; or one path or text.
        report: Function that receives the error of each image that cannot be read, whose vector is
            then 0. Defaults to raising it.

    Returns:
        float32 `(samples, dim)`, or `(dim,)` of one path or text.

    Raises:
        ValueError: If there is no sample, a text is empty, an image cannot be read, the file has no
            features or the vectors are NaN. One line.
    """
    if isinstance(samples, str):
        return embed(model, [samples], report)[0]
    samples, run, is_text = list(samples), make_embedder(model), isinstance(model, TextModel)
    if is_text:
        samples = _encode(model, samples)

    def read(sample):
        try:
            return sample if is_text else model.read(sample)
        except (ValueError, MemoryError) as error:
            if report is None:
                raise
            return error

    rows, vectors, errors = [], [], {}
    job = f"reading {'texts' if is_text else 'images'}"
    for index, row in enumerate(map_in_threads(read, samples, job)):
        if isinstance(row, Exception):
            errors[index], row = row, np.zeros(model.image_shape, "uint8")
        rows.append(row)
        if len(rows) == TOGETHER or index + 1 == len(samples):
            vectors.append(run(np.array(rows)))
            rows = []
    vectors = require_numbers(np.concatenate(vectors), model.path, "features")
    vectors[[*errors]] = 0
    for error in errors.values():
        report(error)
    return vectors


def _encode(model, texts):
    """Returns the token ids of texts `(texts, length)`; warns if some were cut."""
    if not all(map(str.strip, texts)):
        raise ValueError("the text is empty; expected at least a word.")
    if cut := count_cut(model.tokenizer, texts, model.length):
        model.warn(
            f"texts with more than the {model.length} tokens that the model takes: {cut:,}; the "
            "rest of them was cut."
        )
    return encode_rows(model.tokenizer, texts, model.length)


def find_similar(
    model: Any, query: Any, samples: Any, top: int = 15, report: Callable | None = None
) -> list[tuple[int, float]]:
    """Finds the images, or texts, that are most similar to another, by the cosine.

    Args:
        model, samples, report: As for `embed`.
        query: An image or a text. A copy of it is not left out.
        top: Number of images, or texts, to find.

    Returns:
        Pairs `(index, similarity)`, the most similar first. The similarity is in [-1, 1].

    Raises:
        ValueError: As for `embed`, and if the query cannot be read. One line.

    Example:
        >>> import keras_gmlp
        >>> classifier = keras_gmlp.load("saved_models/gmlp_n4_32-cifar10/model.keras")
        >>> find_similar(classifier, "docs/cat.jpg", ["docs/seven.png", "docs/cat.jpg"])[0][0]
        1
    """
    (vector,) = embed(model, [query])
    return find_nearest(vector, embed(model, samples, report), top)


def find_nearest(query, vectors, top):
    """Returns pairs of an index and the cosine, the nearest first; a vector of 0 is none's."""
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    similarities = vectors @ query / np.maximum(lengths, np.finfo("float32").tiny)
    similarities = similarities.clip(-1, 1)  # rounding leaves the interval
    order = np.argsort(-similarities, kind="stable")
    return [(int(i), float(similarities[i])) for i in order if lengths[i]][:top]
