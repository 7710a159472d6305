"""What a model file says about itself, in each format, whole and damaged."""

import shutil
import tracemalloc
import zipfile
from hashlib import sha256
from types import SimpleNamespace

import keras
import pytest

from keras_gmlp import gMLP
from keras_gmlp.utils import card
from keras_gmlp.utils.card import from_members, members, read_card, write_card, write_text_card
from keras_gmlp.utils.labels import read_labels

LABELS = ["cat", "Käfer", "a dog, too"]
METADATA = {"preset": "gmlp_n4_32", "crop": 0.875}
NO_MODEL = SimpleNamespace(input_shape=(None, 8, 8, 3), output_shape=(None, 3))


@pytest.fixture(scope="module")
def model():
    return gMLP(8, 1, 8, input_shape=(8, 8, 3), patch_size=4, classes=3)


def keras_file(folder, model):
    model.save(folder / "model.keras")
    return folder / "model.keras"


def tflite_file(folder, model):
    (folder / "model.tflite").write_bytes(b"\x1c\x00\x00\x00TFL3" + 100 * b"weights ")
    return folder / "model.tflite"


def saved_model(folder, model):
    (folder / "saved_model").mkdir()
    (folder / "saved_model" / "saved_model.pb").write_bytes(b"graph")
    return folder / "saved_model"


FORMATS = pytest.mark.parametrize("write_model", [keras_file, tflite_file, saved_model])


@FORMATS
def test_round_trip(write_model, model, tmp_path):
    path = write_model(tmp_path, model)
    assert read_card(path).get("labels") is None
    bare = shutil.copytree if path.is_dir() else shutil.copy
    other = bare(path, tmp_path / f"other{path.suffix}")
    write_card(other, model)
    assert (read_card(other)["labels"], read_card(other)["named"]) == (["0", "1", "2"], False)
    write_card(path, model, LABELS, METADATA)
    found = read_card(path)
    assert found["labels"] == LABELS
    assert found["image_shape"] == [8, 8, 3]
    assert found["pixels"] == [0, 255]
    assert METADATA.items() <= found.items()
    assert "named" not in found


def test_only_newlines_separate_class_names(model, tmp_path):
    """Other ends of lines are in the names of older files."""
    found = from_members({**members(model), "labels.txt": "a\x0cb\nc\u2028\n\x85"})
    assert found["labels"] == ["a\x0cb", "c\u2028", "\x85"]
    (tmp_path / "labels.txt").write_text("Käfer\r\na b\n", "utf-8")
    assert read_labels(tmp_path / "labels.txt") == ["Käfer", "a b"]
    (tmp_path / "labels.txt").write_bytes(b"K\xe4fer\n")
    with pytest.raises(ValueError, match=r"labels\.txt: not UTF-8; expected a class name"):
        read_labels(tmp_path / "labels.txt")


@pytest.mark.parametrize("name", ["a\nb", "a\u2028", "\x85a", "a\x0cb", "\udcff", "", 3])
def test_class_names_that_would_be_lost_are_refused(name, model, tmp_path):
    path = tflite_file(tmp_path, model)
    before = path.read_bytes()
    for write in (
        lambda: write_card(path, model, ["cat", name, "dog"]),
        lambda: write_text_card(path, "text_classification", TOKENIZER, ["bad", name]),
    ):
        with pytest.raises(
            ValueError, match=r"cannot hold the class name .*; expected one"
        ) as error:
            write()
        assert "\n" not in str(error.value)
    assert path.read_bytes() == before


def test_model_files_keep_what_their_runtimes_read(model, tmp_path):
    path = tflite_file(tmp_path, model)
    before = path.read_bytes()
    write_card(path, model, LABELS)
    assert path.read_bytes().startswith(before)
    path = keras_file(tmp_path, model)
    write_card(path, model, LABELS)
    assert keras.saving.load_model(path, compile=False).count_params() == model.count_params()


def test_round_trip_in_the_metadata_of_an_onnx_file(model, tmp_path):
    onnx = pytest.importorskip("onnx")
    graph = onnx.helper.make_graph([], "empty", [], [])
    proto = onnx.helper.make_model(graph)
    onnx.helper.set_model_props(proto, members(model, LABELS, METADATA))
    onnx.save(proto, tmp_path / "model.onnx")
    found = onnx.load(tmp_path / "model.onnx").metadata_props
    result = from_members({entry.key: entry.value for entry in found})
    assert result["labels"] == LABELS
    assert METADATA.items() <= result.items()


@FORMATS
def test_missing_card_is_empty(write_model, model, tmp_path):
    path = write_model(tmp_path, model)
    if path.suffix == ".keras":  # as other programs write it
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("config.json", "{}")
    assert read_card(path) == read_card(tmp_path / "none.tflite") == {}


def test_file_that_is_cut_off_has_its_card_or_none_or_an_error(tmp_path):
    path = tflite_file(tmp_path, NO_MODEL)
    bare = path.stat().st_size
    write_card(path, NO_MODEL, LABELS, METADATA)
    whole = path.read_bytes()
    name_is_complete = whole.index(card.LABELS.encode()) + len(card.LABELS)
    for length in range(bare, len(whole)):
        path.write_bytes(whole[:length])
        if length < name_is_complete:
            assert read_card(path) == {}
        else:
            with pytest.raises(ValueError, match="cut off or damaged") as error:
                read_card(path)
            assert str(error.value) == f"{path}: {card.DAMAGED}"


@pytest.mark.parametrize(
    ("name", "text"), [("card.json", "{"), ("card.json", "[1]"), ("labels.txt", None)]
)
def test_damaged_card_of_a_saved_model(name, text, tmp_path):
    path = saved_model(tmp_path, NO_MODEL)
    write_card(path, NO_MODEL, LABELS)
    member = path / "assets.extra" / name
    member.unlink() if text is None else member.write_text(text)
    with pytest.raises(ValueError, match="cut off or damaged") as error:
        read_card(path)
    assert str(error.value) == f"{path}: {card.DAMAGED}"


def test_damaged_members_are_refused():
    for found in (
        {"card.json": "{}"},
        {"labels.txt": "a\nb\n"},
        {"card.json": "{'a': 1}", "labels.txt": "a\n"},
        {"card.json": "3", "labels.txt": "a\n"},
        {"card.json": 100_000 * "[", "labels.txt": "a\n"},
    ):
        with pytest.raises(ValueError, match="cut off or damaged"):
            from_members(found)


@pytest.mark.parametrize("name", [card.CARD, card.LABELS, card.TOKENIZER])
def test_member_that_is_too_large(name, tmp_path, monkeypatch):
    path = tflite_file(tmp_path, NO_MODEL)
    write_text_card(path, "text_classification", TOKENIZER, LABELS)
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo(name).file_size
    monkeypatch.setitem(card.LIMITS, name, size)
    assert card.read_tokenizer(path) == TOKENIZER.text
    monkeypatch.setitem(card.LIMITS, name, size - 1)
    with pytest.raises(ValueError, match=f"its {name} has more than {size - 1} bytes; get the"):
        card.read_tokenizer(path)


def test_member_that_inflates_takes_no_memory(tmp_path):
    path = tflite_file(tmp_path, NO_MODEL)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(card.CARD, bytes(20_000_000))
        archive.writestr(card.LABELS, "a\n")
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"its card\.json has more than 1,000,000 bytes"):
            read_card(path)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_flipped_bit_in_the_model(tmp_path):
    path = tflite_file(tmp_path, NO_MODEL)
    size = path.stat().st_size
    assert not card.require_undamaged(path)  # no card yet
    write_card(path, NO_MODEL, LABELS, {card.DIGEST: "of another file"})
    assert card.require_undamaged(path)
    whole = path.read_bytes()
    for place in (0, size // 2, size - 1):
        flipped = bytearray(whole)
        flipped[place] ^= 1
        path.write_bytes(flipped)
        with pytest.raises(ValueError, match=r"model has the hash .*Copy or export the file again"):
            card.require_undamaged(path)
        assert read_card(path)["labels"] == LABELS


def test_card_without_a_digest_passes(tmp_path):
    path = tflite_file(tmp_path, NO_MODEL)
    with zipfile.ZipFile(path, "a") as archive:  # as version 0.1 writes it
        for name, text in members(NO_MODEL, LABELS).items():
            archive.writestr(name, text)
    assert card.require_undamaged(path)


def test_card_that_is_compressed_without_a_bound(tmp_path):
    path = tflite_file(tmp_path, NO_MODEL)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_LZMA) as archive:
        for name, text in members(NO_MODEL, LABELS).items():
            archive.writestr(name, text)
    with pytest.raises(ValueError, match="cut off or damaged"):
        read_card(path)


def test_members_of_other_programs_are_no_card():
    assert from_members({}) == {}
    assert from_members({"author": "someone"}) == {}
    found = from_members({**members(NO_MODEL, LABELS), "author": "someone"})
    assert found["labels"] == LABELS
    assert "author" not in found


TOKENIZER = SimpleNamespace(
    text='{"model": "ä"}', hash=sha256('{"model": "ä"}'.encode()).hexdigest()
)


@pytest.mark.parametrize("labels", [["bad", "good"], []])
@pytest.mark.parametrize("write_model", [keras_file, tflite_file])
def test_card_of_a_text_model(write_model, labels, model, tmp_path):
    path = write_model(tmp_path, model)
    digest = {card.DIGEST: sha256(path.read_bytes()).hexdigest()}
    assert card.read_tokenizer(path) is None
    write_text_card(path, "text_classification", TOKENIZER, labels, {"length": 64})
    assert read_card(path) == {
        "task": "text_classification",
        "tokenizer": TOKENIZER.hash,
        "length": 64,
        "labels": labels,
        **(digest if path.suffix == ".tflite" else {}),
    }
    assert card.read_tokenizer(path) == TOKENIZER.text


@pytest.mark.parametrize("replace", [{"tokenizer.json": "{}"}, {"card.json": "{}"}])
def test_tokenizer_and_card_that_differ(replace, tmp_path):
    path = tflite_file(tmp_path, NO_MODEL)
    bare = path.read_bytes()
    write_text_card(path, "masked_lm", TOKENIZER)
    with zipfile.ZipFile(path) as archive:
        texts = {name: archive.read(name) for name in archive.namelist()}
    path.write_bytes(bare)
    with zipfile.ZipFile(path, "a") as archive:
        for name, text in {**texts, **replace}.items():
            archive.writestr(name, text)
    with pytest.raises(ValueError, match="its tokenizer has the hash") as error:
        card.read_tokenizer(path)
    assert "\n" not in str(error.value)


def test_tokenizer_that_is_missing_or_not_text(tmp_path):
    path = tflite_file(tmp_path, NO_MODEL)
    write_card(path, NO_MODEL, LABELS, {"task": "masked_lm", "tokenizer": TOKENIZER.hash})
    with pytest.raises(ValueError, match="its tokenizer cannot be read"):
        card.read_tokenizer(path)
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("card.json", f'{{"tokenizer": "{sha256(bytes([255])).hexdigest()}"}}')
        archive.writestr("labels.txt", "")
        archive.writestr("tokenizer.json", bytes([255]))
    with pytest.raises(ValueError, match=f"^{path}: its tokenizer is not UTF-8"):
        card.read_tokenizer(path)
