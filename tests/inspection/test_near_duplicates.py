"""Planted copies of pictures."""

import numpy as np
import pytest
from pictures import compress, crop, digit, scene, thumbnails
from PIL import Image, ImageEnhance
from sklearn.datasets import load_digits

from keras_gmlp.inspection.near_duplicates import find_equal_pixels, find_near_duplicates

SIDE = 32

COPIES = {
    "smaller": lambda image: image.resize([round(0.7 * side) for side in image.size]),
    "larger": lambda image: image.resize([2 * side for side in image.size]),
    "compressed": compress,
    "cropped": crop,
    "brighter": lambda image: ImageEnhance.Brightness(image).enhance(1.25),
    "darker": lambda image: ImageEnhance.Brightness(image).enhance(0.7),
    "cropped and compressed": lambda image: compress(crop(image)),
}


def make_set(kind):
    rng = np.random.default_rng(0)
    if kind == "scenes":
        return [scene(rng) for _ in range(200)]
    # Enlarged: a crop of 5 % would leave 8 pixels as they are.
    return [digit(pixels).resize((SIDE, SIDE)) for pixels in load_digits().images[:600]]


@pytest.mark.parametrize("kind", ["scenes", "digits"])
def test_planted_copies_are_found(kind):
    images = make_set(kind)
    count, planted = len(images), set()
    rng = np.random.default_rng(1)
    for copy in COPIES.values():
        for index in rng.choice(count, 8, replace=False):
            planted.add((int(index), len(images)))
            images.append(copy(images[index]))
    source = dict(sorted((copy, whole) for whole, copy in planted))
    found = find_near_duplicates(thumbnails(images))
    assert len(planted & set(found)) >= 0.95 * len(planted)
    right = sum(source.get(one, one) == source.get(other, other) for one, other in found)
    assert right >= 0.9 * len(found)
    assert all(one < other and 0 <= score < 0.4 for (one, other), score in found.items())


def test_flat_dark_and_other_pictures_are_no_copies():
    rng = np.random.default_rng(0)
    levels = rng.uniform(5, 250, (60, 1, 1, 1))
    flat = np.clip(rng.normal(levels, 1.5, (60, SIDE, SIDE, 3)), 0, 255).astype("uint8")
    dark = np.clip(rng.normal(6, 4, (60, SIDE, SIDE, 3)), 0, 255).astype("uint8")
    one, two = scene(rng), scene(rng)
    other = Image.fromarray(np.asarray(one)[..., ::-1].copy())  # its colours
    for images in (
        flat,
        dark,
        flat[:1],
        flat[:0],
        thumbnails([one, two]),
        thumbnails([one, other]),
    ):
        assert find_near_duplicates(images) == {}
    assert set(find_near_duplicates(thumbnails([one, crop(one)]))) == {(0, 1)}


def test_same_pixels_in_other_files(tmp_path):
    image = scene(np.random.default_rng(0))
    other = np.array(image)
    other[0, 0] ^= 1
    image.save(tmp_path / "a.png")
    image.save(tmp_path / "b.bmp")
    Image.fromarray(other).save(tmp_path / "c.png")
    paths = [tmp_path / name for name in ("a.png", "c.png", "b.bmp")]
    assert find_equal_pixels(paths, np.zeros((3, SIDE, SIDE, 3), "uint8")) == [[0, 2]]
