"""Images of another aspect ratio: what each fit keeps, in files, arrays and splits."""

import numpy as np
import pytest
from pictures import write_noise
from PIL import Image

from keras_gmlp import data
from keras_gmlp.data.batches.host import make_windows
from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.data.images.resized_crop import DRAWS
from keras_gmlp.data.images.resizing import FITS
from keras_gmlp.data.images.samples import resize_images

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


@pytest.fixture
def flag(tmp_path):
    """A picture of 40 by 20 pixels: ten columns red, twenty green, ten blue."""
    pixels = np.repeat(np.array([RED, GREEN, GREEN, BLUE], "uint8"), 10, axis=0)
    pixels = np.broadcast_to(pixels, (20, 40, 3))
    Image.fromarray(pixels).save(tmp_path / "flag.png")
    return tmp_path / "flag.png", pixels


def test_what_each_fit_keeps_of_the_sides(flag):
    image = read_image(flag[0], (8, 8, 3), fit="crop")
    assert (image.argmax(-1) == GREEN.index(255)).all()
    image = read_image(flag[0], (20, 20, 3), fit="stretch")
    assert (image[:, 0] == RED).all()
    assert (image[:, -1] == BLUE).all()
    assert (image[:, 8:12] == GREEN).all()
    image = read_image(flag[0], (21, 20, 3), fit="pad")  # ten rows, after five and before six
    assert not image[:5].any()
    assert not image[15:].any()
    assert (image[5:15, 0] == RED).all()
    assert (image[5:15, -1] == BLUE).all()
    grey = read_image(flag[0], (20, 20, 1), fit="pad")
    assert not grey[:5].any()
    assert grey[5:15].all()


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder of pictures of many sizes, larger than they are read."""
    return write_noise(tmp_path_factory.mktemp("photos"), "jpg", 20, 60)


@pytest.mark.parametrize("fit", FITS)
def test_folder_is_read_as_its_files(photos, fit):
    found = data.load(photos, (12, 20), fit=fit)
    assert (found.fit, found.image_shape) == (fit, (12, 20, 3))
    expected = [read_image(path.decode(), (12, 20, 3), fit=fit) for path in found.test.paths]
    np.testing.assert_array_equal(found.test.arrays()[0], expected)
    assert data.hold_out(found, 0.2).fit == fit


@pytest.mark.parametrize("fit", ["stretch", "pad"])
def test_random_windows_are_of_the_fitted_image(photos, fit):
    split = data.load(photos, (12, 20), fit=fit).train
    draws = np.random.default_rng(0).uniform(size=(len(split), DRAWS)).astype("float32")
    streamed = split.read(slice(None), make_windows(draws, (0.3, 1.0)))
    in_memory = split.keep()
    expected = in_memory.read(slice(None), make_windows(draws, (0.3, 1.0)))
    np.testing.assert_array_equal(streamed, expected)


@pytest.mark.parametrize("fit", FITS)
def test_data_set_by_name(fit):
    digits = data.load("digits")
    found = data.load("digits", (8, 16), fit=fit)
    assert found.fit == fit
    expected = resize_images(digits.test.arrays()[0], (8, 16, 1), fit)
    np.testing.assert_array_equal(found.test.arrays()[0], expected)
