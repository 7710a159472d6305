"""The SavedModel's signature for image files, against how Python reads them."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from check_layer import to_numpy
from PIL import Image
from random_models import random_model

from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.export.saved_model import read, write_saved_model
from keras_gmlp.export.writing import ExportOptions, export

SIZES = [(16, 16), (40, 31), (9, 50), (5, 7)]


def photo(size, mode="RGB"):
    """Smooth shapes in many colours, as in a photo."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (4, 4, len(mode)), "uint8").squeeze()
    return Image.fromarray(coarse, mode).resize(size, Image.Resampling.BICUBIC)


@pytest.mark.parametrize(
    "preparation",
    [
        *({}, {"crop": 0.875}, {"interpolation": "bilinear"}, {"interpolation": "lanczos"}),
        *({"fit": "stretch"}, {"fit": "pad"}),
    ],
)
@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_pixels_are_pythons_within_two_levels(tmp_path, preparation, suffix):
    for size in SIZES:
        path = tmp_path / f"photo.{suffix}"
        photo(size).save(path)
        expected = read_image(path, (16, 12, 3), **preparation).astype("float32")
        found = read(tf.io.read_file(str(path)), (16, 12, 3), preparation)
        assert np.abs(found - expected).max() <= 2
        assert np.abs(found - expected).mean() < 0.5


def test_grey_and_transparency(tmp_path):
    for channels in (1, 3):
        for mode in ("L", "RGBA", "LA"):
            path = tmp_path / "photo.png"
            photo((40, 31), mode).save(path)
            expected = read_image(path, (16, 16, channels)).astype("float32")
            found = read(tf.io.read_file(str(path)), (16, 16, channels), {})
            assert np.abs(found - expected).max() <= 2


def difference(path):
    found = read(tf.io.read_file(str(path)), (16, 12, 3), {})
    return np.abs(found - read_image(path, (16, 12, 3)).astype("float32")).max()


@pytest.mark.parametrize(("suffix", "endian"), [("jpg", "<"), ("png", ">")])
def test_exif_orientation(tmp_path, suffix, endian):
    path, exif = tmp_path / f"phone.{suffix}", Image.Exif()
    exif[0x110] = "model of the phone"
    for orientation in range(10):  # 0 and 9 mean nothing
        exif.endian, exif[0x112] = endian, orientation
        photo((40, 31)).save(path, exif=exif)
        assert difference(path) <= 2


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_png_of_few_bits(tmp_path, bits):
    path, picture = tmp_path / "palette.png", photo((40, 31)).quantize(2**bits)
    picture.save(path, bits=bits)
    assert difference(path) <= 2
    picture.save(path, bits=bits, transparency=1)
    assert difference(path) <= 2
    if bits == 1:
        photo((40, 31)).convert("1").save(path)
        assert difference(path) <= 2


def test_only_jpeg_and_png_are_decoded(tmp_path):
    photo((40, 31)).quantize(200).save(tmp_path / "palette.bmp")  # else in wrong colours
    with pytest.raises(tf.errors.InvalidArgumentError):
        difference(tmp_path / "palette.bmp")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    model = random_model("gmlp", depth=1)
    path = tmp_path_factory.mktemp("serving")
    return model, export(model, path, ["saved_model"], list("abcde"))["saved_model"]


def test_files_of_any_size_in_one_batch(exported, tmp_path):
    model, path = exported
    for index, size in enumerate(SIZES):
        photo(size).save(tmp_path / f"{index}.png")
    paths = [tmp_path / f"{index}.png" for index in range(len(SIZES))]
    expected = to_numpy(model(np.stack([read_image(p, (16, 16, 3)) for p in paths])))
    loaded = tf.saved_model.load(str(path))
    assert {*loaded.signatures} == {"serving_default", "uint8", "encoded"}
    serve = loaded.signatures["encoded"]
    answer = serve(image=tf.constant([p.read_bytes() for p in paths]))
    np.testing.assert_allclose(answer["logits"], expected, atol=0.1)  # two levels of 256
    np.testing.assert_allclose(answer["probabilities"], tf.nn.softmax(answer["logits"]), atol=1e-6)
    assert [[name.decode() for name in row] for row in answer["classes"].numpy()] == [
        list("abcde")
    ] * len(SIZES)
    with pytest.raises(tf.errors.InvalidArgumentError):
        serve(image=tf.constant([b"no image"]))


def test_several_labels_have_probabilities_of_their_own_and_nearest_pixels_no_files(tmp_path):
    image = keras.Input((4, 4, 3))
    model = keras.Model(image, keras.layers.Dense(5)(keras.layers.Flatten()(image)))
    card = {"thresholds": [0.5] * 5, "interpolation": "nearest"}
    write_saved_model(model, tmp_path / "saved_model", ExportOptions(card=card))
    signatures = tf.saved_model.load(str(tmp_path / "saved_model")).signatures
    assert {*signatures} == {"serving_default", "uint8"}
    answer = signatures["serving_default"](image=tf.random.uniform((2, 4, 4, 3), 0, 1, seed=0))
    np.testing.assert_allclose(answer["probabilities"], tf.sigmoid(answer["logits"]), atol=1e-6)


def test_crop_is_counted_in_whole_numbers_as_in_python(tmp_path):
    """In float32 the long side comes out a pixel short of 512 here."""
    path = tmp_path / "photo.png"
    photo((110, 220)).save(path)
    expected = read_image(path, (224, 224, 3), crop=0.875).astype("float32")
    found = read(tf.io.read_file(str(path)), (224, 224, 3), {"crop": 0.875})
    assert np.abs(found - expected).max() <= 1
