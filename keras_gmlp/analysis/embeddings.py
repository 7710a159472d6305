"""Vectors of image files, and the nearest of them."""

import numpy as np

from keras_gmlp.utils.progress import map_in_threads

TOGETHER = 64  # images that a model takes at a time


def embed_files(embed, read, paths):
    """Computes the vectors of image files, with a progress bar.

    Args:
        embed: Function from images `(batch, height, width, channels)` to vectors
            `(batch, features)`.
        read: Function from a path to an image.
        paths: A list of paths, at least one.

    Returns:
        A float32 array `(files, features)`.
    """
    rows, chunk = [], []
    for number, image in enumerate(map_in_threads(read, paths, "reading features"), 1):
        chunk.append(image)
        if len(chunk) == TOGETHER or number == len(paths):
            rows.append(embed(np.array(chunk)))
            chunk = []
    return np.concatenate(rows)


def find_nearest(query, vectors, top):
    """Finds the vectors that are most similar to another by the cosine of their angle.

    Args:
        query: Array `(features,)`.
        vectors: Array `(vectors, features)`.
        top: Number of vectors to find.

    Returns:
        A dict from the index of a vector to its similarity in [-1, 1], the most similar first; of
        equal ones, the first in the array. A vector of zeros has the similarity 0.
    """
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    similarities = vectors @ query / np.maximum(lengths, np.finfo("float32").tiny)
    similarities = similarities.clip(-1, 1)  # rounding leaves the interval
    order = np.argsort(-similarities, kind="stable")[:top]
    return {int(index): float(similarities[index]) for index in order}
