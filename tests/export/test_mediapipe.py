"""The file for MediaPipe and ML Kit, read by readers that share no code with its writer."""

import zipfile

import keras
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from check_layer import to_numpy
from colours import colour_model
from flatbuffers import encode, number_types
from flatbuffers.table import Table
from PIL import Image
from refused import refused

from keras_gmlp.export.writing import export
from keras_gmlp.utils.card import read_card, require_undamaged
from keras_gmlp.weights.loading import load

LABELS = ["Röte", "a green, too", "7"]


@pytest.fixture(scope="module")
def model():
    model = colour_model()
    model.get_layer("head").bias.assign([0, 0, -200])  # the probability of blue is 0
    return model


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    directory = tmp_path_factory.mktemp("mediapipe")
    paths = export(model, directory, ["mediapipe"], LABELS, {"preset": "p"})
    return paths["mediapipe"]


@pytest.fixture(scope="module")
def images():
    tints = np.random.default_rng(1).integers(0, 256, (20, 1, 1, 3), "uint8")
    return np.ascontiguousarray(np.broadcast_to(tints, (20, 8, 8, 3)))


@pytest.fixture(scope="module")
def expected(model, images):
    return to_numpy(keras.ops.softmax(model(images)))


def metadata_of(path):
    model = schema.Model.GetRootAs(path.read_bytes())
    entries = {model.Metadata(i).Name(): model.Metadata(i) for i in range(model.MetadataLength())}
    assert "min_runtime_version" in {name.decode() for name in entries}  # the converter's stay
    return model.Buffers(entries[b"TFLITE_METADATA"].Buffer()).DataAsNumpy().tobytes()


class Fields:
    """A table of a flatbuffer, by the numbers of its fields in the published schema."""

    def __init__(self, content, position=None):
        if position is None:
            position = encode.Get(number_types.UOffsetTFlags.packer_type, content, 0)
        self.table = Table(content, position)

    def _place(self, field):
        place = self.table.Offset(4 + 2 * field)
        return place and place + self.table.Pos

    def byte(self, field):
        return self.table.Get(number_types.Uint8Flags, self._place(field))

    def text(self, field):
        return self.table.String(self._place(field)).decode()

    def floats(self, field):
        place = self._place(field) - self.table.Pos
        return self.table.GetVectorAsNumpy(number_types.Float32Flags, place).tolist()

    def child(self, field):
        return Fields(self.table.Bytes, self.table.Indirect(self._place(field)))

    def only(self, field):
        """The one table in a vector."""
        place = self._place(field) - self.table.Pos
        assert self.table.VectorLen(place) == 1
        return Fields(self.table.Bytes, self.table.Indirect(self.table.Vector(place)))


def test_metadata_by_field_numbers(path):
    content = metadata_of(path)
    assert content[4:8] == b"M001"
    root = Fields(content)
    assert root.text(0) == "colours"
    assert root.text(7) == "1.0.0"  # min_parser_version
    subgraph = root.only(3)
    image, probabilities = subgraph.only(2), subgraph.only(3)
    assert image.text(0) == "image"
    assert image.child(3).byte(0) == 2  # Content.content_properties_type: ImageProperties
    assert image.child(3).child(1).byte(0) == 1  # color_space: RGB
    unit = image.only(4)
    assert unit.byte(0) == 1  # options_type: NormalizationOptions
    assert (unit.child(1).floats(0), unit.child(1).floats(1)) == ([0], [1])  # mean, std
    assert (image.child(5).floats(0), image.child(5).floats(1)) == ([255], [0])  # max, min
    assert probabilities.text(0) == "probabilities"
    assert probabilities.child(3).byte(0) == 1  # FeatureProperties
    assert (probabilities.child(5).floats(0), probabilities.child(5).floats(1)) == ([1], [0])
    file = probabilities.only(6)
    assert (file.text(0), file.byte(2)) == ("labels.txt", 2)  # TENSOR_AXIS_LABELS


def test_one_archive_has_class_names_and_card(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.read("labels.txt").decode().splitlines() == LABELS
        # MediaPipe maps the members into its memory, as they are.
        assert {m.compress_type for m in archive.infolist()} == {zipfile.ZIP_STORED}
    card = read_card(path)
    assert (card["output"], card["preset"]) == ("probabilities", "p")
    assert require_undamaged(path)  # the digest covers the metadata
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(b"M001")] ^= 1
    copy = path.with_name("damaged.tflite")
    copy.write_bytes(damaged)
    with pytest.raises(ValueError, match="hash"):
        require_undamaged(copy)


def test_file_computes_the_softmax_of_the_logits(path, images, expected):
    interpreter = Interpreter(str(path))
    assert interpreter.get_signature_list() == {
        "serving_default": {"inputs": ["image"], "outputs": ["probabilities"]}
    }
    run = interpreter.get_signature_runner()
    assert run.get_input_details()["image"]["dtype"] == np.float32
    found = [run(image=image[None].astype("float32"))["probabilities"] for image in images]
    assert {row.shape for row in found} == {(1, 3)}
    np.testing.assert_allclose(np.sum(found, axis=-1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.concatenate(found), expected, atol=0.01)


def test_classifier_applies_no_second_softmax(path, images, expected, tmp_path):
    Image.fromarray(images[0]).save(tmp_path / "image.png")
    classifier = load(path)
    found = dict(classifier.classify(tmp_path / "image.png"))
    np.testing.assert_allclose([found[label] for label in LABELS], expected[0], atol=0.01)
    logits = classifier.logits(images)
    np.testing.assert_allclose(np.exp(logits).sum(axis=-1), 1, rtol=1e-5)
    assert np.isfinite(logits).all()  # of a probability of 0, too
    assert not expected[:, 2].any()
    assert set(logits.argmax(axis=-1)) == {0, 1}


def test_gray_images_are_refused_before_the_conversion(tmp_path):
    gray = keras.Sequential([keras.Input((16, 16, 1)), keras.layers.Flatten()], name="gray")
    with refused("RGB"):
        export(gray, tmp_path, ["mediapipe"])
    assert not list(tmp_path.iterdir())
