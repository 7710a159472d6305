"""Random resized crop: torchvision's windows, and Pillow's pixels on every path."""

import math

import numpy as np
import pytest
from pictures import encode, photo
from PIL import Image

from keras_gmlp.data.batches.host import make_windows
from keras_gmlp.data.images.resized_crop import DRAWS, crop_and_resize, draw_windows
from keras_gmlp.data.images.samples import from_files, from_pixels

SCALE = (0.08, 1.0)


def reference_window(draws, height, width, scale):
    """The loop of torchvision's `RandomResizedCrop.get_params`, with given draws."""
    low, high = math.log(3 / 4), math.log(4 / 3)
    for share, aspect in zip(draws[:10], draws[10:20], strict=True):
        target = height * width * (scale[0] + (scale[1] - scale[0]) * share)
        aspect = math.exp(low + (high - low) * aspect)
        w, h = round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))
        if 0 < w <= width and 0 < h <= height:
            return int(draws[20] * (height - h + 1)), int(draws[21] * (width - w + 1)), h, w
    w, h = width, height
    if width / height < 3 / 4:
        h = round(width / (3 / 4))
    elif width / height > 4 / 3:
        w = round(height * (4 / 3))
    return (height - h) // 2, (width - w) // 2, h, w


SIZES = [(375, 500), (500, 375), (32, 32), (2, 3), (40, 400), (300, 20)]


@pytest.mark.parametrize("scale", [SCALE, (0.5, 0.5), (1, 1)])
def test_windows_are_those_of_torchvision(scale):
    draws = np.random.default_rng(0).uniform(size=(300, DRAWS))
    for size in SIZES:
        expected = [reference_window(row, *size, scale) for row in draws]
        np.testing.assert_array_equal(draw_windows(draws, *size, scale, np), expected)


@pytest.fixture(scope="module")
def images():
    return np.stack([np.asarray(photo(24, 20 + n).resize((20, 24))) for n in range(6)])


@pytest.mark.parametrize("kind", ["arrays", "files", "jpeg", "turned", "grey"])
def test_all_samples_read_windows(tmp_path, images, kind):
    labels, shape = np.arange(6) % 3, (24, 20, 3)
    content = [encode(image) for image in images]
    if kind == "jpeg":
        content = [encode(image, "JPEG", quality=100, subsampling=0) for image in images]
    elif kind == "turned":
        exif = Image.Exif()
        exif[0x0112] = 3
        content = [
            encode(image[::-1, ::-1], "JPEG", exif=exif, quality=100, subsampling=0)
            for image in images
        ]
    paths = [tmp_path / str(number) for number in range(6)]
    for path, data in zip(paths, content, strict=True):
        path.write_bytes(data)
    samples = {
        "arrays": lambda: from_pixels(images, labels),
        "grey": lambda: from_files(list(zip(paths, labels, strict=True)), (24, 20, 1)),
    }.get(kind, lambda: from_files(list(zip(paths, labels, strict=True)), shape))()
    draws = np.random.default_rng(3).uniform(size=(6, DRAWS)).astype("float32")
    found = samples.read(np.arange(5, -1, -1), make_windows(draws, SCALE))
    for pixels, number, row in zip(found, range(5, -1, -1), draws, strict=True):
        top, left, height, width = map(int, draw_windows(row, *shape[:2], SCALE, np))
        part = Image.fromarray(images[number]).crop((left, top, left + width, top + height))
        expected = np.asarray(part.resize((20, 24), Image.BILINEAR)).astype(int)
        if kind == "grey":
            expected = expected @ [[0.299], [0.587], [0.114]]
        assert pixels.shape == expected.shape
        assert np.abs(pixels - expected).max() <= {"jpeg": 4, "turned": 4, "grey": 1.5}.get(kind, 1)


def test_device_crops_as_the_pipeline(images):
    jax = pytest.importorskip("jax")
    draws = np.random.default_rng(4).uniform(size=(6, DRAWS)).astype("float32")
    crop = jax.jit(jax.vmap(lambda image, row: crop_and_resize(image, row, SCALE)))
    found = crop(images, draws)
    samples = from_pixels(images, np.arange(6))
    expected = samples.read(slice(None), make_windows(draws, SCALE))
    np.testing.assert_allclose(found, expected, atol=1)
