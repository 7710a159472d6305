"""What a model file says about itself, in each format, whole and damaged."""

import zipfile
from hashlib import sha256
from types import SimpleNamespace

import pytest
from refused import refused

from keras_gmlp.utils import card
from keras_gmlp.utils.card import from_members, members, read_card, write_card, write_text_card

LABELS = ["cat", "Käfer", "a dog, too"]
METADATA = {"preset": "gmlp_n4_32", "crop": 0.875}
NO_MODEL = SimpleNamespace(input_shape=(None, 8, 8, 3), output_shape=(None, 3))
TOKENIZER = SimpleNamespace(
    text='{"model": "ä"}', hash=sha256('{"model": "ä"}'.encode()).hexdigest()
)


def keras_file(folder):
    with zipfile.ZipFile(folder / "model.keras", "w") as archive:
        archive.writestr("config.json", "{}")
    return folder / "model.keras"


def tflite_file(folder):
    (folder / "model.tflite").write_bytes(b"\x1c\x00\x00\x00TFL3" + 100 * b"weights ")
    return folder / "model.tflite"


def saved_model(folder):
    (folder / "saved_model").mkdir()
    (folder / "saved_model" / "saved_model.pb").write_bytes(b"graph")
    return folder / "saved_model"


@pytest.mark.parametrize(
    ("write_model", "labels"),
    [(keras_file, LABELS), (tflite_file, None), (saved_model, LABELS)],
)
def test_round_trip(write_model, labels, tmp_path):
    path = write_model(tmp_path)
    assert read_card(path) == read_card(tmp_path / "none.tflite") == {}
    write_card(path, NO_MODEL, labels, METADATA)
    found = read_card(path)
    assert found["labels"] == (labels or ["0", "1", "2"])
    assert found.get("named") is (None if labels else False)
    assert found["image_shape"] == [8, 8, 3]
    assert found["pixels"] == [0, 255]
    assert METADATA.items() <= found.items()


def test_only_newlines_separate_class_names():
    """Other ends of lines are in the names of older files."""
    found = from_members({**members(NO_MODEL), "labels.txt": "a\x0cb\nc\u2028\n\x85"})
    assert found["labels"] == ["a\x0cb", "c\u2028", "\x85"]


def test_class_names_that_would_be_lost_are_refused(tmp_path):
    path = tflite_file(tmp_path)
    before = path.read_bytes()
    for name in ("a\nb", "a\u2028", "\x85a", "\udcff", "", 3):
        with refused("cannot hold the class name"):
            write_card(path, NO_MODEL, ["cat", name, "dog"])
    with refused("cannot hold the class name"):
        write_text_card(path, "text_classification", TOKENIZER, ["bad", ""])
    assert path.read_bytes() == before


def test_file_that_is_cut_off_has_its_card_or_none_or_an_error(tmp_path):
    path = tflite_file(tmp_path)
    bare = path.stat().st_size
    write_card(path, NO_MODEL, LABELS, METADATA)
    whole = path.read_bytes()
    name_is_complete = whole.index(card.LABELS.encode()) + len(card.LABELS)
    for length in range(bare, len(whole), 3):
        path.write_bytes(whole[:length])
        if length < name_is_complete:
            assert read_card(path) == {}
        else:
            with refused(f"^{path}: {card.DAMAGED}$"):
                read_card(path)


def test_members_that_are_damaged_or_no_card(tmp_path):
    for found in (
        {"card.json": "{}"},
        {"labels.txt": "a\nb\n"},
        {"card.json": "3", "labels.txt": "a\n"},
        {"card.json": 100_000 * "[", "labels.txt": "a\n"},
    ):
        with refused("damaged"):
            from_members(found)
    assert from_members({}) == from_members({"author": "someone"}) == {}
    assert "author" not in from_members({**members(NO_MODEL, LABELS), "author": "someone"})
    path = saved_model(tmp_path)
    write_card(path, NO_MODEL, LABELS)
    (path / "assets.extra" / "labels.txt").unlink()
    with refused("damaged", path):
        read_card(path)


@pytest.mark.parametrize("name", [card.CARD, card.TOKENIZER])
def test_member_that_is_too_large(name, tmp_path, monkeypatch):
    path = tflite_file(tmp_path)
    write_text_card(path, "text_classification", TOKENIZER, LABELS)
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo(name).file_size
    monkeypatch.setitem(card.LIMITS, name, size - 1)
    with refused("damaged|has more than", path):
        card.read_tokenizer(path)


def test_flipped_bit_in_the_model(tmp_path):
    path = tflite_file(tmp_path)
    size = path.stat().st_size
    assert not card.require_undamaged(path)  # no card yet
    write_card(path, NO_MODEL, LABELS, {card.DIGEST: "of another file"})
    assert card.require_undamaged(path)
    whole = path.read_bytes()
    for place in (0, size // 2, size - 1):
        flipped = bytearray(whole)
        flipped[place] ^= 1
        path.write_bytes(flipped)
        with refused("model has the hash"):
            card.require_undamaged(path)
        assert read_card(path)["labels"] == LABELS


@pytest.mark.parametrize("write_model", [keras_file, tflite_file])
def test_card_of_a_text_model(write_model, tmp_path):
    path = write_model(tmp_path)
    digest = sha256(path.read_bytes()).hexdigest()
    expected = {card.DIGEST: digest} if path.suffix == ".tflite" else {}
    assert card.read_tokenizer(path) is None
    write_text_card(path, "text_classification", TOKENIZER, ["bad", "good"], {"length": 64})
    expected |= {"task": "text_classification", "tokenizer": TOKENIZER.hash}
    assert read_card(path) == {**expected, "length": 64, "labels": ["bad", "good"]}
    assert card.read_tokenizer(path) == TOKENIZER.text
    with zipfile.ZipFile(path) as archive:
        texts = {name: archive.read(name) for name in archive.namelist()}
    for replaced, reason in (
        ({"tokenizer.json": "{}"}, "its tokenizer has the hash"),
        ({"card.json": "{}"}, "its tokenizer has the hash"),
        ({"tokenizer.json": None}, "its tokenizer cannot be read"),
    ):
        path.unlink()
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in {**texts, **replaced}.items():
                if text is not None:
                    archive.writestr(name, text)
        with refused(reason, path):
            card.read_tokenizer(path)
