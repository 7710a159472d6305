import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from keras_gmlp.data.images.views import Views, cut_views


def windows(*rows):
    return np.array(rows, "float32")


IMAGES = np.random.default_rng(0).integers(0, 256, (2, 8, 6, 3)).astype("uint8")
WHOLE = windows([0, 0, 1, 1, 0], [0, 0, 1, 1, 1])


def test_the_whole_image_stays_and_the_second_is_mirrored():
    for module in (np, tf):
        views = np.asarray(cut_views(IMAGES, WHOLE, (8, 6), module))
        np.testing.assert_allclose(views[0], IMAGES[0], atol=1e-4)
        np.testing.assert_allclose(views[1], IMAGES[1, :, ::-1], atol=1e-4)


def test_a_quarter_by_hand():
    image = np.arange(16, dtype="float32").reshape(1, 4, 4, 1)
    view = cut_views(image, windows([0.25, 0.5, 0.5, 0.5, 0]), (2, 2))
    np.testing.assert_allclose(view[0, ..., 0], [[6, 7], [10, 11]], atol=1e-5)
    # Twice as large: the centres of the new pixels are a quarter of a pixel off the old ones.
    view = cut_views(image, windows([0.25, 0.25, 0.5, 0.5, 0]), (4, 4))
    np.testing.assert_allclose(view[0, 0, :, 0], [3.75, 4.25, 4.75, 5.25], atol=1e-5)


@pytest.mark.parametrize("size", [(16, 12), (4, 3), (5, 7)])
def test_pixels_are_those_of_pillow(size):
    box = 1, 2, 5, 7  # left, top, right, bottom
    window = windows([2 / 8, 1 / 6, 5 / 8, 4 / 6, 0])
    for module in (np, tf):
        view = np.asarray(cut_views(IMAGES[:1], window, size, module))[0]
        # Pillow looks beyond the box for no pixel, and here the border lies in the image.
        inner = Image.fromarray(IMAGES[0]).resize(size[::-1], Image.Resampling.BILINEAR, box=box)
        middle = slice(size[0] // 3, -size[0] // 3), slice(size[1] // 3, -size[1] // 3)
        np.testing.assert_allclose(view[middle], np.asarray(inner)[middle], atol=1.0)


def test_windows_of_the_whole_image():
    rows = Views(scale=(1, 1), aspect=(1, 1), flip=False).draw(0, 3)
    np.testing.assert_array_equal(rows, [[0, 0, 1, 1, 0]] * 3)


def test_draws_are_fixed_in_range_and_for_any_number_of_samples():
    views = Views(count=2, scale=(0.25, 0.5), seed=3)
    first = views.draw(0, 5000)
    np.testing.assert_array_equal(first[:10], views.draw(0, 10))
    assert not np.array_equal(first, views.draw(1, 5000))
    assert not np.array_equal(first, Views(count=2, scale=(0.25, 0.5), seed=4).draw(0, 5000))
    top, left, height, width, mirrored = first.T
    area = height * width
    assert area.min() >= 0.25 - 1e-6
    assert area.max() <= 0.5 + 1e-6
    np.testing.assert_allclose(area.mean(), 0.375, atol=0.005)
    assert ((top >= 0) & (top + height <= 1 + 1e-6)).all()
    assert ((left >= 0) & (left + width <= 1 + 1e-6)).all()
    assert set(mirrored) == {0, 1}
    np.testing.assert_allclose(mirrored.mean(), 0.5, atol=0.03)
    assert not Views(flip=False).draw(0, 50)[:, 4].any()


def test_wrong_settings():
    for arguments, message in (
        ({"count": 0}, "views must be an integer of at least 1; received 0"),
        ({"count": 2.0}, "views must be an integer"),
        ({"scale": (0.5, 0.2)}, r"scale must be .* received \(0.5, 0.2\)"),
        ({"scale": (0, 1)}, "scale must be"),
        ({"aspect": (2, 1)}, "aspect must be"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
    ):
        with pytest.raises(ValueError, match=message):
            Views(**arguments)
