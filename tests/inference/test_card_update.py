"""Changed cards: the entry is new, everything else stays."""

import zipfile
from types import SimpleNamespace

import pytest

from keras_gmlp.inference.card_update import read_cards, update_card
from keras_gmlp.utils.card import members, read_card, require_undamaged, write_card

LABELS = ["cat", "Käfer"]
MODEL = SimpleNamespace(input_shape=(None, 8, 8, 3), output_shape=(None, 2))
ENTRIES = {"temperature": 1.25, "energy_threshold": -3.0}


def keras_file(folder):
    with zipfile.ZipFile(folder / "model.keras", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", 50 * "{}")
        archive.writestr("model.weights.h5", bytes(999))
    return folder / "model.keras"


def tflite_file(folder):
    (folder / "model.tflite").write_bytes(b"\x1c\x00\x00\x00TFL3" + 100 * b"weights ")
    return folder / "model.tflite"


def saved_model(folder):
    (folder / "saved_model").mkdir()
    (folder / "saved_model" / "saved_model.pb").write_bytes(b"graph")
    return folder / "saved_model"


def onnx_file(folder):
    onnx = pytest.importorskip("onnx")
    model = onnx.helper.make_model(onnx.helper.make_graph([], "empty", [], []))
    onnx.helper.set_model_props(model, {**members(MODEL, LABELS), "author": "someone"})
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def contents(path):
    """Returns what a file holds except card.json: by member, in order, with their headers."""
    if path.is_dir():
        return {p: p.read_bytes() for p in path.rglob("*") if p.is_file() and p.name != "card.json"}
    if path.suffix == ".onnx":
        import onnx

        properties = onnx.load(path).metadata_props
        return {prop.key: prop.value for prop in properties if prop.key != "card.json"}
    with zipfile.ZipFile(path) as archive:
        rows = [info for info in archive.infolist() if info.filename != "card.json"]
        start = min(info.header_offset for info in rows)
        kept = {i.filename: (i.date_time, i.compress_type, archive.read(i)) for i in rows}
    return {"front": path.read_bytes()[:start], **kept}


@pytest.mark.parametrize("write_model", [keras_file, tflite_file, saved_model, onnx_file])
def test_only_the_entries_change(write_model, tmp_path):
    path = write_model(tmp_path)
    if path.suffix != ".onnx":
        write_card(path, MODEL, LABELS, {"preset": "p"})
    card, others = read_card(path), contents(path)
    update_card(path, ENTRIES)
    assert read_card(path) == {**card, **ENTRIES}
    assert list(contents(path).items()) == list(others.items())
    if path.is_file():
        once = path.read_bytes()
        update_card(path, ENTRIES)
        assert path.read_bytes() == once
    if path.suffix == ".tflite":
        assert require_undamaged(path)
    update_card(path, {"temperature": 2.0})
    assert read_cards(tmp_path) == {path: {**card, **ENTRIES, "temperature": 2.0}}
    assert [p.name for p in tmp_path.iterdir()] == [path.name]  # no temporary file


def test_file_without_a_card_is_refused(tmp_path):
    tflite_file(tmp_path)
    with pytest.raises(ValueError, match="no card"):
        read_cards(tmp_path)
