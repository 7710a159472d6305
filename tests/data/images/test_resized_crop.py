"""Random resized crop: torchvision's windows, and Pillow's pixels on every path."""

import io
import math

import numpy as np
import pytest
import tensorflow as tf
from pictures import encode, photo
from PIL import Image

from keras_gmlp.data.batches.host import make_jpeg_reader, make_reader
from keras_gmlp.data.images.resized_crop import DRAWS, crop_jpeg, draw_window, is_upright_jpeg
from keras_gmlp.data.images.samples import from_arrays, from_files

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
    draws = np.random.default_rng(0).uniform(size=(300 * len(SIZES), DRAWS))
    sizes = np.repeat(np.float32(SIZES), 300, axis=0)
    pairs = list(zip(draws, sizes.tolist(), strict=True))
    expected = np.array([reference_window(row, *size, scale) for row, size in pairs])
    found = [draw_window(row, *size, scale, np) for row, size in pairs]
    np.testing.assert_array_equal(found, expected)
    in_tensorflow = tf.data.Dataset.from_tensor_slices((draws.astype("float32"), sizes)).map(
        lambda row, size: tf.stack(draw_window(row, size[0], size[1], scale, tf))
    )
    differ = (np.array(list(in_tensorflow)) != expected).any(axis=1)  # rounds in float32
    assert differ.reshape(len(SIZES), 300).mean(axis=1).max() < 0.02


def expected_pixels(image, draws, size):
    """Pillow's pixels of the window, which are those of torchvision's transform."""
    window = draw_window(draws, image.height, image.width, SCALE, np)
    top, left, height, width = map(int, window)
    part = image.crop((left, top, left + width, top + height))
    return np.asarray(part.resize(size[::-1], Image.BILINEAR)).astype(int)


@pytest.mark.parametrize(("size", "mean"), [((90, 120), 1), ((375, 500), 4), ((1200, 1600), 4)])
def test_jpegs_give_the_pixels_of_pillow(size, mean):  # larger ones are decoded at a fraction
    jpeg = encode(photo(*size), "JPEG", quality=95)
    whole = Image.open(io.BytesIO(jpeg))
    draws = np.random.default_rng(2).uniform(size=(8, DRAWS)).astype("float32")
    for row in draws:
        found = crop_jpeg(tf.constant(jpeg), tf.constant(row), SCALE, (64, 80, 3)).numpy()
        assert found.shape == (64, 80, 3)
        assert found.dtype == np.uint8
        expected = expected_pixels(whole, row, (64, 80))
        assert np.abs(found - expected).mean() < mean
        assert np.abs(found - expected).max() < 20


def test_jpegs_with_an_orientation_are_left_to_pillow():
    def turned(orientation, order=b"MM"):
        exif = Image.Exif()
        exif.endian = {b"MM": ">", b"II": "<"}[order]
        exif[0x0112] = orientation
        return encode(photo(30, 40), "JPEG", exif=exif)

    whole = encode(photo(30, 40), "JPEG")
    assert is_upright_jpeg(whole)
    assert is_upright_jpeg(turned(1))
    for other in (turned(6), turned(3, b"II"), whole[:-9], encode(photo(30, 40)), b"", b"\xff"):
        assert not is_upright_jpeg(other)


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
        "arrays": lambda: from_arrays(images, labels),
        "grey": lambda: from_arrays(images, labels).convert(1),
    }.get(kind, lambda: from_files(list(zip(paths, labels, strict=True)), shape))()
    draws = np.random.default_rng(3).uniform(size=(6, DRAWS)).astype("float32")
    found, found_labels = make_reader(samples, SCALE)(tf.range(5, -1, -1), tf.constant(draws))
    if kind in ("files", "jpeg", "turned"):
        read = make_jpeg_reader(samples, SCALE)
        one_by_one = [read(tf.constant(5 - n), tf.constant(row)) for n, row in enumerate(draws)]
        found, found_labels = map(tf.stack, zip(*one_by_one, strict=True))
    for pixels, number, row in zip(found.numpy(), range(5, -1, -1), draws, strict=True):
        expected = expected_pixels(Image.fromarray(images[number]), row, shape[:2])
        if kind == "grey":
            expected = expected @ [[0.299], [0.587], [0.114]]
        assert pixels.shape == expected.shape
        assert np.abs(pixels - expected).max() <= {"jpeg": 4, "turned": 4, "grey": 1.5}.get(kind, 1)
    np.testing.assert_array_equal(found_labels, labels[::-1])


def test_device_crops_as_the_pipeline(images):
    jax = pytest.importorskip("jax")
    from keras_gmlp.data.batches.device_augmentation import crop_and_resize

    draws = np.random.default_rng(4).uniform(size=(6, DRAWS)).astype("float32")
    crop = jax.jit(jax.vmap(lambda image, row: crop_and_resize(image, row, SCALE)))
    found = crop(images, draws)
    samples = from_arrays(images, np.arange(6))
    expected, _ = make_reader(samples, SCALE)(tf.range(6), tf.constant(draws))
    np.testing.assert_allclose(found, expected, atol=1)
