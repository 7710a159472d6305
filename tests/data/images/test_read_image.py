import numpy as np
import pytest
from pictures import encode, photo, png_header
from PIL import Image, ImageOps, JpegImagePlugin
from refused import refused

from keras_gmlp.data.images.find_images import find_images
from keras_gmlp.data.images.read_image import read_image, read_views
from keras_gmlp.utils.environment import is_installed
from keras_gmlp.utils.errors import DataWarning

RED, BLUE, GREEN, WHITE = (255, 0, 0), (0, 0, 255), (0, 128, 0), (255, 255, 255)
TRANSPOSE = Image.Transpose
# From the upright picture to what a camera stores under each EXIF orientation.
STORED = {
    1: None,
    2: TRANSPOSE.FLIP_LEFT_RIGHT,
    3: TRANSPOSE.ROTATE_180,
    4: TRANSPOSE.FLIP_TOP_BOTTOM,
    5: TRANSPOSE.TRANSPOSE,
    6: TRANSPOSE.ROTATE_90,
    7: TRANSPOSE.TRANSVERSE,
    8: TRANSPOSE.ROTATE_270,
}


def save(image, path, **options):
    image.save(path, **options)
    return path


def halves(size=(64, 32)):
    image = Image.new("RGB", size, RED)
    image.paste(BLUE, (size[0] // 2, 0, *size))
    return image


def exif(orientation):
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags


def near(pixels, colour, tolerance=0):
    return np.abs(pixels.astype(int) - np.array(colour)).max() <= tolerance


def test_formats(tmp_path):
    tolerances = {"jpg": 4, "webp": 4, "avif": 8}
    for suffix in ("png", "bmp", "gif", "tif", "ppm", *tolerances):
        pixels = read_image(save(halves(), tmp_path / f"a.{suffix}"), (32, 64, 3))
        assert (pixels.shape, pixels.dtype) == ((32, 64, 3), np.uint8)
        assert near(pixels[:, :31], RED, tolerances.get(suffix, 0)), suffix
        assert near(pixels[:, 33:], BLUE, tolerances.get(suffix, 0)), suffix


def test_every_source_gives_the_pixels_of_the_file(tmp_path):
    deep = Image.fromarray((np.arange(600, dtype="uint16") * 100).reshape(20, 30))
    for suffix, image, more in (
        ("png", photo(), {"exif": exif(6)}),
        ("png", photo().convert("P"), {"transparency": 3}),
        ("png", photo().convert("LA"), {}),
        ("tif", photo(), {"exif": exif(3)}),
        ("png", deep, {}),
        ("jpg", photo(), {"exif": exif(8)}),
    ):
        path = save(image, tmp_path / f"a.{suffix}", **more)
        content = path.read_bytes()
        expected = read_image(path, (8, 12, 3), fit="pad")
        with Image.open(path) as opened, open(path, "rb") as file:
            size = opened.size
            for source in (str(path), content, memoryview(content), file, opened, opened):
                np.testing.assert_array_equal(read_image(source, (8, 12, 3), fit="pad"), expected)
            assert suffix == "tif" or opened.size == size  # Pillow itself turns a TIFF
            assert not file.closed


def test_arrays_are_read_as_files_are(tmp_path):
    for mode, channels in (("L", 3), ("L", 1), ("RGB", 3), ("RGBA", 3)):
        array = np.asarray(photo(30, 20).convert(mode))[:, ::-1]  # not contiguous, read-only
        path = save(Image.fromarray(array), tmp_path / "a.png")
        array = array[..., None] if channels == 1 else array
        expected = read_image(path, (7, 9, channels))
        np.testing.assert_array_equal(read_image(array, (7, 9, channels)), expected)


def test_sources_that_are_no_images():
    for source, reason in (
        (b"", "not an image"),
        (b"no image at all, but some bytes", "not an image"),
        (np.zeros((400, 300, 3)), "float64"),
        (np.zeros((4, 4, 5), "uint8"), "data type"),
    ):
        with refused(reason, "the image"):
            read_image(source, (8, 8, 3))


@pytest.mark.parametrize(
    ("shape", "part", "box"),
    [
        ((8, 8, 3), (0.5, 0, 0), (0, 0, 20, 20)),
        ((8, 8, 3), (0.5, 1, 0.5), (40, 10, 60, 30)),
        ((8, 16, 1), (0.5, 0.5, 1), (15, 25, 45, 40)),  # at most 60 by 30
        ((16, 8, 3), (1, 0.5, 0), (20, 0, 40, 40)),
    ],
)
def test_parts_by_hand(tmp_path, shape, part, box):
    path = save(photo(40, 60), tmp_path / "a.png")
    whole, found = read_views(path, shape, [part])
    np.testing.assert_array_equal(whole, read_image(path, shape))
    expected = read_image(photo(40, 60).crop(box), shape)
    inner = (slice(2, -2), slice(2, -2))  # the edges of a part also read the pixels around it
    np.testing.assert_array_equal(found[inner], expected[inner])


def test_parts_of_a_reduced_jpeg(tmp_path):
    cells = np.random.default_rng(0).integers(0, 256, (65, 80), dtype="uint8")
    image = Image.fromarray(cells).resize((1280, 1040), Image.Resampling.BICUBIC)
    jpeg = save(image, tmp_path / "a.jpg", quality=95)
    png = save(image, tmp_path / "a.png")
    parts = [(0.5, 0.5, 0.5), (0.5, 1, 1)]
    difference = read_views(jpeg, (32, 32, 3), parts).astype(int)
    difference -= read_views(png, (32, 32, 3), parts)
    assert np.abs(difference).mean(axis=(1, 2, 3)).max() < 1  # 2 if it were reduced to a half more


def test_thin_picture_that_scaling_would_blow_up(tmp_path):
    path = save(Image.new("L", (1, 50_000)), tmp_path / "thin.png")
    with pytest.raises(ValueError, match=r"thin\.png: 1 by 50000 is too thin"):
        read_image(path, (224, 224, 3), crop=0.875)
    assert read_image(path, (224, 224, 3)).shape == (224, 224, 3)


def test_crops_around_the_centre_and_scales_antialiased():
    for size, border in (((300, 100), (75, 0)), ((100, 300), (0, 75))):
        image = ImageOps.expand(Image.new("RGB", size, GREEN), border, RED)
        assert near(read_image(image, (10, 10, 3)), GREEN)
    board = np.indices((256, 256)).sum(axis=0) % 2 * 255
    assert near(read_image(board.astype("uint8"), (8, 8, 1)), 127.5, 3)


def palette(transparency):
    image = Image.new("P", (4, 4), 1)
    image.putpalette([*GREEN, *RED])
    return transparent(image, transparency)


def transparent(image, key):
    image.info["transparency"] = key
    return image


MODES = {
    "palette, another colour transparent": (lambda: palette(0), "png", RED),
    "palette, transparent": (lambda: palette(1), "png", WHITE),
    "palette, half transparent": (lambda: palette(b"\xff\x80"), "png", (255, 127, 127)),
    "colour key": (lambda: transparent(Image.new("RGB", (4, 4), RED), RED), "png", WHITE),
    "grey": (lambda: Image.new("L", (4, 4), 70), "png", (70, 70, 70)),
    "grey, alpha": (lambda: Image.new("LA", (4, 4), (0, 51)), "png", (204, 204, 204)),
    "alpha": (lambda: Image.new("RGBA", (4, 4), (255, 0, 0, 128)), "png", (255, 127, 127)),
    "alpha, hidden colour": (lambda: Image.new("RGBA", (4, 4), (9, 9, 9, 0)), "webp", WHITE),
    "1 bit": (lambda: Image.new("1", (4, 4), 1), "png", WHITE),
    "CMYK": (lambda: Image.new("CMYK", (4, 4), (0, 255, 255, 0)), "tif", RED),
    "CMYK JPEG": (lambda: Image.new("CMYK", (4, 4), (255, 255, 0, 0)), "jpg", BLUE),
    "grey JPEG": (lambda: Image.new("L", (4, 4), 70), "jpg", (70, 70, 70)),
    "YCbCr": (lambda: Image.new("YCbCr", (4, 4), (76, 85, 255)), "tif", RED),
}


def test_modes(tmp_path):
    for mode, (make, suffix, colour) in MODES.items():
        path = save(make(), tmp_path / f"a.{suffix}")
        assert near(read_image(path, (8, 8, 3)), colour, 2), mode
        assert near(read_image(path, (8, 8, 1)), np.dot(colour, (0.299, 0.587, 0.114)), 2), mode


def test_16_and_32_bits(tmp_path):
    for suffix in ("png", "tif", "pgm"):
        for stored, expected in ((0, 0), (255, 1), (25700, 100), (65535, 255)):
            image = Image.fromarray(np.full((4, 4), stored, "uint16"))
            pixels = read_image(save(image, tmp_path / f"a.{suffix}"), (4, 4, 1))
            np.testing.assert_array_equal(pixels, expected)
    for dtype in ("float32", "int32"):  # have no white
        path = save(Image.fromarray(np.ones((2, 2), dtype)), tmp_path / "a.tif")
        with refused("32 bits", path):
            read_image(path, (2, 2, 1))


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_parts_of_a_conversion_change_no_pixel(monkeypatch, dtype):
    most, shape = (256, (7, 20, 4)) if dtype == "uint8" else (65536, (7, 20))
    values = np.random.default_rng(0).integers(0, most, shape)
    image = Image.fromarray(values.astype(dtype))
    whole = read_image(image, (7, 20, 3))
    monkeypatch.setattr("keras_gmlp.data.images.read_image.TOGETHER", 50)
    np.testing.assert_array_equal(read_image(image, (7, 20, 3)), whole)


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "tif"])
def test_exif_turns_upright(tmp_path, suffix):
    upright = halves(size=(160, 80))
    upright.paste(GREEN, (0, 40, 80, 80))
    for orientation, turn in STORED.items():
        image = upright if turn is None else upright.transpose(turn)
        path = save(image, tmp_path / f"{orientation}.{suffix}", exif=exif(orientation))
        pixels = read_image(path, (8, 16, 3))
        assert near(pixels[:3, :7], RED, 6), orientation
        assert near(pixels[5:, :7], GREEN, 6), orientation
        assert near(pixels[:, 9:], BLUE, 6), orientation


JPEGS = [
    *(((1280, 1040), 8, mode, {}) for mode in ("RGB", "L", "CMYK")),
    *(((1280, 1040), 8, "RGB", options) for options in ({"progressive": True}, {"exif": exif(6)})),
    *(((636, 516), 4, mode, {}) for mode in ("RGB", "CMYK")),
    *((size, 1, "RGB", {}) for size in ((635, 520), (1600, 80))),
]


@pytest.mark.parametrize(("size", "scale", "mode", "options"), JPEGS)
def test_reduced_jpeg_decoding(tmp_path, monkeypatch, size, scale, mode, options):
    path = save(photo(*size[::-1]).convert(mode), tmp_path / "a.jpg", quality=95, **options)
    decoded = []
    load = JpegImagePlugin.JpegImageFile.load
    monkeypatch.setattr(
        JpegImagePlugin.JpegImageFile, "load", lambda self: decoded.append(self.size) or load(self)
    )
    reduced = []
    for channels in (1, 3):
        decoded.clear()
        reduced.append(read_image(path, (32, 32, channels)).astype(int))
        assert decoded[0] == (size[0] // scale, size[1] // scale)
    monkeypatch.setattr(JpegImagePlugin.JpegImageFile, "draft", lambda *_: None)
    for found in reduced:
        full = read_image(path, found.shape).astype(int)
        assert full.std() > 30
        assert np.abs(found - full).mean() < 0.5
        assert np.abs(found - full).max() <= 4


def test_first_frame_of_an_animation(tmp_path):
    frames = {"save_all": True, "append_images": [Image.new("RGB", (8, 8), BLUE)]}
    for suffix in ("gif", "webp", "png"):
        path = save(Image.new("RGB", (8, 8), RED), tmp_path / f"a.{suffix}", **frames)
        assert near(read_image(path, (8, 8, 3)), RED, 4), suffix


def test_bad_files(tmp_path):
    whole = {kind: encode(photo(), kind) for kind in ("PNG", "JPEG", "WebP", "GIF", "BMP", "TIFF")}
    for content, reason in (
        (b"not an image\n" * 9, "not an image"),
        (encode(photo(), "EPS"), "not an image"),
        *((content[: len(content) // 2], "damaged|not an image") for content in whole.values()),
        (whole["PNG"][:-60], "damaged"),
        (png_header(9, 9), "damaged"),
        (png_header(10_001, 10_000), "more than 100,000,000 pixels"),
        (png_header(0, 9), "not an image|damaged"),
    ):
        path = tmp_path / "a.png"
        path.write_bytes(content)
        with refused(reason, path):
            read_image(path, (8, 8, 3))


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data:UserWarning")
def test_broken_exif_is_ignored(tmp_path):
    broken = b"Exif\x00\x00II*\x00\x08\x00\x00\x00\x09\x00\x12\x01"
    path = save(halves(), tmp_path / "a.jpg", exif=broken)
    assert near(read_image(path, (32, 64, 3))[:, :31], RED, 4)


@pytest.mark.skipif(is_installed("pillow_heif"), reason="reads HEIC")
def test_heic_pictures_without_their_suffix(tmp_path):
    save(halves(), tmp_path / "a.png")
    for name in ("b.jpg", "c"):
        (tmp_path / name).write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0")
    with refused("a HEIC picture; pip install pillow-heif reads", tmp_path / "b.jpg"):
        read_image(tmp_path / "b.jpg", (8, 8, 3))
    with pytest.warns(DataWarning, match=r"left out.*: 1 \(c\)"):
        assert find_images(tmp_path) == [tmp_path / "a.png", tmp_path / "b.jpg"]


def test_files_and_images_that_are_not_there(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.png").symlink_to("unmounted/a.png")
    (tmp_path / "b.png").symlink_to("b.png")
    # They are not left out.
    assert find_images(tmp_path) == [tmp_path / name for name in ("a.png", "b.png")]
    for name, reason in (
        ("a.png", "[Nn]o such file"),
        ("b.png", "no such file|symbolic links"),
        ("empty", "director|folder"),
    ):
        for call, arguments in ((read_image, [(8, 8, 3)]), (find_images, [])):
            with refused(reason, tmp_path / name):
                call(tmp_path / name, *arguments)
