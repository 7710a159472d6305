"""Pictures that show the same: equal pixels, or scaled, compressed, cropped, brightened copies."""

import collections
import hashlib

import numpy as np

from keras_gmlp.data.images.read_image import read_pixels
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.progress import map_in_threads

NEIGHBOURS = 20  # pictures that each picture is compared with
COPY = 0.33  # largest difference of a copy
STANDS_OUT = 0.45  # largest difference of a copy, relative to that of the usual neighbour
SAME = 0.05  # difference up to which pictures are copies, whatever their neighbours are
APART = 0.8  # largest distance of the coarse contents of copies; colours differ more
FLAT = 2.0  # standard deviation of the grey levels below which a picture shows nothing

# What is cut off at both ends of a side, as shares.
CUTS = ((0, 0), (0, 0.05), (0.05, 0), (0.025, 0.025), (0, 0.025), (0.025, 0))


def find_equal_pixels(paths, thumbnails):
    """Returns groups of pictures with equal thumbnails and equal pixels, lists of indices."""
    alike = collections.defaultdict(list)
    for index, thumbnail in enumerate(thumbnails):
        alike[thumbnail.tobytes()].append(index)
    candidates = [index for group in alike.values() if len(group) > 1 for index in group]

    def digest(index):
        pixels = read_pixels(paths[index])
        return pixels.shape, hashlib.sha256(pixels).digest()

    digests = map_in_threads(digest, candidates, "comparing equal pictures")
    same = collections.defaultdict(list)
    for index, digest in zip(candidates, digests, strict=True):
        same[digest].append(index)
    return [sorted(group) for group in same.values() if len(group) > 1]


def find_near_duplicates(thumbnails: np.ndarray) -> dict[tuple[int, int], float]:
    """Finds pictures that are copies of others, though not to the pixel.

    Compares each picture with its 20 nearest neighbours by coarse content. The difference of two
    pictures is `sqrt(1 - r**2)` for the correlation r of their grey levels, the largest over cuts
    of up to 5 % from one of them; brightness and contrast do not change it. A copy differs less
    than half as much as the usual neighbour of both pictures, and has similar colours. Leaves out
    pictures of one grey level.

    Args:
        thumbnails: uint8 array `(pictures, side, side, 3)`, with a side of 32 pixels or so.

    Returns:
        A dict from pairs of indices, the smaller one first, to the difference of the pictures in
        [0, 1].

    Raises:
        ImportError: If scikit-learn is not installed.
    """
    require("sklearn", "The search for near duplicates", "demo")
    from sklearn.neighbors import NearestNeighbors

    grey = thumbnails.mean(axis=-1, dtype="float32")
    shown = np.flatnonzero(grey.std(axis=(1, 2)) >= FLAT)
    if len(shown) < 2:
        return {}
    content = _coarse_content(thumbnails[shown])
    count = min(NEIGHBOURS + 1, len(shown))
    search = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(content)
    distances, nearest = search.kneighbors(content)
    differences = _differences(grey[shown], nearest)
    # A small set has few neighbours; the missing ones count as different.
    others = np.pad(differences, ((0, 0), (0, NEIGHBOURS + 1 - count)), constant_values=1.0)
    usual = np.median(others, axis=1)
    found = {}
    for row, column in np.argwhere((differences <= COPY) & (distances <= APART)):
        other, difference = nearest[row, column], float(differences[row, column])
        if difference <= max(SAME, STANDS_OUT * min(usual[row], usual[other])):
            found[tuple(sorted((int(shown[row]), int(shown[other]))))] = difference
    return found


def _coarse_content(thumbnails):
    """Returns unit vectors of the lowest frequencies, without the brightness."""
    from scipy.fft import dctn  # scikit-learn requires SciPy

    red, green, blue = np.moveaxis(thumbnails.astype("float32"), -1, 0)
    parts = [((red + green + blue) / 3, 6), (red - green, 2), (blue - green, 2)]
    frequencies = [
        dctn(channel, axes=(1, 2), norm="ortho")[:, :most, :most].reshape(len(channel), -1)
        for channel, most in parts
    ]
    vectors = np.concatenate(frequencies, axis=1)[:, 1:]
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)


def _differences(grey, nearest):
    """Returns the differences of all pictures and their neighbours, 1 for a picture and itself."""
    grey = grey - grey.mean(axis=(1, 2), keepdims=True)
    grey /= np.sqrt((grey**2).sum(axis=(1, 2), keepdims=True))
    side = grey.shape[1]
    cuts = np.stack([_cut(side, before, after) for before, after in CUTS])

    def measure(picture):
        cut = cuts[:, None] @ picture @ cuts.transpose(0, 2, 1)
        return np.maximum(cut.std(axis=(-2, -1)) * len(picture), 1e-6)

    deviations = np.array(list(map_in_threads(measure, grey, "cutting pictures")))

    def compare(row):
        others = nearest[row]
        r = np.maximum(
            _correlation(grey[row], grey[others], deviations[others], cuts),
            _correlation(grey[others], grey[row], deviations[row], cuts),
        )
        return np.where(others == row, 1.0, np.sqrt(1 - np.clip(r, 0, 1) ** 2))

    return np.array(list(map_in_threads(compare, range(len(grey)), "comparing pictures")))


def _cut(side, before, after):
    """Returns a matrix `(side, side)` that cuts shares off a side and scales the rest up again."""
    pixels = np.arange(side)
    centres = before * side + (pixels + 0.5) * (1 - before - after) - 0.5
    return np.stack([np.interp(centres, pixels, unit) for unit in np.eye(side)], 1).astype(
        "float32"
    )


def _correlation(wholes, parents, deviations, cuts):
    """Returns the largest correlation of pictures with the cuts of others; shapes broadcast."""
    # The sum of whole * (rows @ parent @ columns) in two halves: 36 cuts cost as much as twelve.
    rows = cuts.transpose(0, 2, 1) @ wholes[..., None, :, :]
    columns = parents[..., None, :, :] @ cuts.transpose(0, 2, 1)
    pixels = (len(cuts), cuts[0].size)
    products = rows.reshape(*rows.shape[:-3], *pixels) @ np.swapaxes(
        columns.reshape(*columns.shape[:-3], *pixels), -1, -2
    )
    return (products / deviations).max(axis=(-2, -1))
