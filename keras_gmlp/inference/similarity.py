"""Finds images and texts by the vectors of a model; a `.tflite` file requires no Keras."""

import os
import threading

import numpy as np

from keras_gmlp.data.text.tokenizer import encode_rows
from keras_gmlp.inference.opening import FEATURES_SIGNATURE, open_keras
from keras_gmlp.models.saved import require_finite
from keras_gmlp.tasks.text_model import TextModel
from keras_gmlp.utils.errors import check_text, printable
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
    interpreter = classifier.interpreter
    if interpreter is None or FEATURES_SIGNATURE not in interpreter.get_signature_list():
        raise ValueError(
            f"{classifier.path}: has no features; expected a .keras file, or a .tflite file that "
            "apps/export.py RUN --formats features writes."
        )
    # An interpreter of its own: as long as a runner exists, its interpreter runs nothing else.
    interpreter = open_interpreter(classifier.path, min(4, os.cpu_count() or 1))
    run, lock = interpreter.get_signature_runner(FEATURES_SIGNATURE), threading.Lock()
    name, dtype = ("token_ids", "int32") if is_text else ("image", "float32")

    def embed(rows):
        rows = np.asarray(rows, dtype)[:, None]  # the file takes one at a time
        with lock:  # threads share the interpreter's tensors
            return np.concatenate([run(**{name: row})["features"] for row in rows])

    return embed


def embed_texts(model, texts):
    """Returns the vector of a text: the mean of its encoded tokens.

    Texts that share words or topics have similar vectors; compare them by the cosine. If texts are
    longer than the model, it warns once, with their number.

    Args:
        model: A `TextModel`, as `text.load` opens it: a `.keras` file, or a `.tflite` file that
            `apps/export.py RUN --formats features` wrote.
        texts: A text, or several, in a list for example.

    Returns:
        float32 `(dim,)`, or `(texts, dim)` for a list.

    Raises:
        ValueError: If a text is empty or not a string, there is none, the file has no features or
            the vectors are NaN. One line.
    """
    if isinstance(texts, str):
        return embed_texts(model, [texts])[0]
    texts = list(texts)
    if not texts:
        raise ValueError("received no texts; expected at least one.")
    if not all(check_text(text).strip() for text in texts):
        raise ValueError("the text is empty; expected at least a word.")
    ids, cut = encode_rows(model.tokenizer, texts, model.length)
    if cut:
        model.warn(
            f"texts with more than the {model.length} tokens that the model takes: {cut:,}; the "
            "rest of them was cut."
        )
    vectors = embed_all(make_embedder(model), lambda row: row, ids, "reading texts")
    return require_finite(vectors, model.path, "vectors")


def find_similar_texts(model, query, texts, top=15):
    """Finds the texts that are most similar to another, by the cosine between their vectors.

    Args:
        model: See `embed_texts`.
        query: A text. A copy of it is not left out.
        texts: Texts to compare, at least one.
        top: Number of texts to find.

    Returns:
        Pairs `(index, similarity)`, the most similar first. The similarity is in [-1, 1].

    Raises:
        ValueError: See `embed_texts`.
    """
    texts = [texts] if isinstance(texts, str) else list(texts)
    if not texts:
        raise ValueError("received no texts to compare; expected at least one.")
    query_vector, *vectors = embed_texts(model, [query, *texts])
    return list(find_nearest(query_vector, np.array(vectors), top).items())


def find_similar(classifier, query, paths, top=15, report=lambda error: None):
    """Finds the images that are most similar to another, by the cosine between their features.

    Args:
        classifier: A `Classifier` with features; see `make_embedder`.
        query: An image file. It is left out of the results.
        paths: Image files to compare.
        top: Number of images to find.
        report: Function that receives the error of each file that cannot be read.

    Returns:
        Pairs `(path, similarity)`, the most similar first. The similarity is in [-1, 1].

    Raises:
        ValueError: If the query cannot be read, there is no other image, or the classifier has no
            features or returns NaN.

    Example:
        >>> from keras_gmlp import inference
        >>> classifier = inference.load("saved_models/gmlp_n4_32-cifar10/model.keras")
        >>> find_similar(classifier, "docs/cat.jpg", ["docs/seven.png"])[0][0]
        'docs/seven.png'
    """
    embed = make_embedder(classifier)
    classifier.read(query)
    own, errors = os.path.realpath(query), {}
    paths = [path for path in paths if os.path.realpath(path) != own]
    if not paths:
        raise ValueError(f"{printable(query)}: no other image to compare it with.")

    def read(path):
        try:
            return classifier.read(path)
        except (ValueError, MemoryError) as error:
            errors[path] = error
            return np.zeros(classifier.image_shape, "uint8")

    found = embed_all(embed, read, [query, *paths])
    query_vector, *vectors = require_finite(found, classifier.path, "features")
    readable = [i for i, path in enumerate(paths) if path not in errors]
    for path in paths:
        if path in errors:
            report(errors[path])
    nearest = find_nearest(query_vector, np.array(vectors)[readable], top)
    return [(paths[readable[i]], similarity) for i, similarity in nearest.items()]


def embed_all(embed, read, samples, job="reading features"):
    """Computes the vectors of samples, such as image files, with a progress bar."""
    rows, chunk = [], []
    for number, row in enumerate(map_in_threads(read, samples, job), 1):
        chunk.append(row)
        if len(chunk) == TOGETHER or number == len(samples):
            rows.append(embed(np.array(chunk)))
            chunk = []
    return np.concatenate(rows)


def find_nearest(query, vectors, top):
    """Finds the vectors that are most similar to another by the cosine of their angle."""
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    similarities = vectors @ query / np.maximum(lengths, np.finfo("float32").tiny)
    similarities = similarities.clip(-1, 1)  # rounding leaves the interval
    order = np.argsort(-similarities, kind="stable")[:top]
    return {int(index): float(similarities[index]) for index in order}
