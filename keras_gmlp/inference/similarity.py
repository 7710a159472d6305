"""Finds similar images by the vectors before a classifier's head.

A `.tflite` model requires neither Keras nor TensorFlow.
"""

import os
from functools import partial
from pathlib import Path

import numpy as np

from keras_gmlp.inference.opening import FEATURES_FILE, FEATURES_SIGNATURE
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.progress import map_in_threads
from keras_gmlp.utils.shipped import find_shipped

TOGETHER = 64  # images that a model takes at a time


def find_features(source):
    """Returns the file whose features represent a run.

    Args:
        source: The folder of a run, the name of an included model, or another source of a model.

    Returns:
        The path of the folder's model_features.tflite, which requires no Keras, or else of its
        model.keras; any other source as it is.
    """
    folder = Path(find_shipped(source))
    files = [folder / FEATURES_FILE, folder / "model.keras"]
    return next((path for path in files if path.is_file()), source)


def make_embedder(classifier):
    """Returns the function from images to the vectors before a classifier's head."""
    if classifier.model is not None:
        from keras_gmlp.models.structure import features

        return partial(features(classifier.model).predict, batch_size=TOGETHER, verbose=0)
    interpreter = classifier.interpreter
    if interpreter is None or FEATURES_SIGNATURE not in interpreter.get_signature_list():
        raise ValueError(
            f"{classifier.path}: has no features; expected a .keras file, or a .tflite file that "
            "apps/export.py RUN --formats features writes."
        )
    run = interpreter.get_signature_runner(FEATURES_SIGNATURE)

    def embed(images):
        images = np.asarray(images, "float32")[:, None]  # the file takes one at a time
        return np.concatenate([run(image=image)["features"] for image in images])

    return embed


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

    query_vector, *vectors = embed_files(embed, read, [query, *paths])
    if not np.isfinite([query_vector, *vectors]).all():
        raise ValueError(
            f"{classifier.path}: its features are NaN or infinite; the file is damaged or its "
            "training diverged. Copy or train the model again."
        )
    readable = [i for i, path in enumerate(paths) if path not in errors]
    for path in paths:
        if path in errors:
            report(errors[path])
    nearest = find_nearest(query_vector, np.array(vectors)[readable], top)
    return [(paths[readable[i]], similarity) for i, similarity in nearest.items()]


def embed_files(embed, read, paths):
    """Computes the vectors of image files, with a progress bar."""
    rows, chunk = [], []
    for number, image in enumerate(map_in_threads(read, paths, "reading features"), 1):
        chunk.append(image)
        if len(chunk) == TOGETHER or number == len(paths):
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
