"""The page computes the pixels of keras_gmlp.data.images.read_image: decoding and resampling."""

import numpy as np
import pytest
from pictures import encode
from PIL import Image, ImageCms, ImageDraw
from web_page import as_text, call

from keras_gmlp.data.images.read_image import INTERPOLATIONS, read_image, read_views

RANDOM = np.random.default_rng(0)
READ = """
  const [file, shape, preparation] = given;
  return Array.from(prepare.prepare(await read(file), shape, preparation).data);"""
READ_VIEWS = """
  const views = prepare.prepareViews(await read(given[0]), given[1], {}, given[2]);
  return views.map(({ data }) => Array.from(data));"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    (folder / "none.tflite").touch()
    return folder


@pytest.fixture
def page(opened):
    return opened


def noise(width, height, channels=3):
    pixels = RANDOM.integers(0, 256, (height, width, channels), dtype="uint8")
    return Image.fromarray(pixels[..., 0] if channels == 1 else pixels)


def photo(width, height):
    """A soft texture with some grain, like a photograph."""
    soft = np.asarray(noise(16, 12).resize((width, height), Image.Resampling.BICUBIC), int)
    grain = RANDOM.normal(0, 4, soft.shape)
    return Image.fromarray((soft + grain).clip(0, 255).astype("uint8"))


def drawing(width, height):
    """Coloured lines on white."""
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    for _ in range(60):
        line = RANDOM.integers(0, (width, height), (2, 2)).ravel().tolist()
        colour = tuple(RANDOM.integers(0, 256, 3).tolist())
        draw.line(line, fill=colour, width=int(RANDOM.integers(1, 4)))
    return image


def difference(page, data, shape=(32, 32, 3), **preparation):
    """Returns the page's pixels minus Python's, absolute, in levels of 256."""
    found = call(page, READ, [as_text(data), shape, preparation])
    return np.abs(np.reshape(found, shape).astype(int) - read_image(data, shape, **preparation))


@pytest.mark.parametrize("shape", [(32, 32, 3), (24, 40, 1)])
@pytest.mark.parametrize("size", [(1, 1), (3, 500), (640, 481)])
def test_parts_of_a_png(page, size, shape):
    parts = [(0.5, 0.5, 0.5), (0.5, 1, 0), (0.3, 0.1, 0.9), (1, 1, 1)]
    file = encode(noise(*size))
    found = call(page, READ_VIEWS, [as_text(file), shape, parts])
    expected = read_views(file, shape, parts)
    np.testing.assert_array_equal(np.reshape(found, expected.shape), expected)


def test_png_of_any_mode(page):
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("XYZ")).tobytes()
    for image, options in (
        (noise(50, 40, 1), {}),  # grey
        (noise(50, 40, 2), {}),  # grey and alpha
        (noise(50, 40, 4), {}),  # alpha
        (noise(50, 40).quantize(32), {}),  # a palette
        (noise(50, 40, 1).convert("1"), {}),
        (noise(50, 40), {"icc_profile": profile}),  # which is ignored
    ):
        assert difference(page, encode(image, **options)).max() == 0
    deep = Image.fromarray(RANDOM.integers(0, 65536, (40, 50), dtype="uint16"))
    assert difference(page, encode(deep)).max() <= 2  # the browser rounds 16 bits


def test_every_level_at_every_transparency(page):
    level, alpha = np.meshgrid(np.arange(256), np.arange(256))
    image = Image.fromarray(np.stack([level, level[::-1], 255 - level, alpha], -1).astype("uint8"))
    assert difference(page, encode(image), (256, 256, 3)).max() == 0


@pytest.mark.parametrize("orientation", range(1, 9))
def test_upright_by_exif(page, orientation):
    image, tag = photo(120, 80), Image.Exif()
    tag[0x0112] = orientation
    assert difference(page, encode(image, exif=tag)).max() == 0
    jpeg = encode(image, "JPEG", quality=95, exif=tag)
    assert difference(page, jpeg).max() <= 1


@pytest.mark.parametrize("size", [(100, 80), (448, 304), (501, 333), (1024, 768)])
@pytest.mark.parametrize(("picture", "most", "mean"), [(photo, 2, 0.3), (drawing, 20, 2)])
def test_jpeg(page, size, picture, most, mean):
    """The decoders differ, and Python decodes large files at a fraction of their size."""
    found = difference(page, encode(picture(*size), "JPEG", quality=85))
    assert found.max() <= most
    assert found.mean() < mean


def test_other_formats(page):
    for kind in ("GIF", "BMP", "WEBP"):
        assert difference(page, encode(photo(90, 70), kind)).max() <= 4


SHAPES, SIZES = [(24, 40, 1), (15, 8, 3)], [(100, 50), (33, 31), (1, 1), (3, 500)]


@pytest.mark.parametrize(
    ("preparation", "shapes", "sizes"),
    [
        ({}, [(32, 32, 3), (24, 40, 1)], [*SIZES, (32, 32), (640, 481), (5000, 20)]),
        ({"fit": "stretch"}, SHAPES, SIZES),
        ({"fit": "pad"}, SHAPES, SIZES),
        # Of published weights.
        *(
            ({"crop": crop}, [(30, 27, 3)], [(81, 133), (640, 481), (9, 7)])
            for crop in (0.875, 1.0)
        ),
    ],
)
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_fits_and_crops(page, preparation, shapes, sizes, interpolation):
    for shape in shapes:
        for size in sizes:
            options = {**preparation, "interpolation": interpolation}
            assert difference(page, encode(noise(*size)), shape, **options).max() == 0
