"""Changes entries in the cards of model files, and nothing else in the files."""

import json
import zipfile
from pathlib import Path

from keras_gmlp.models.saved import damaged_error
from keras_gmlp.utils.card import CARD, from_members, read_card
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import naming_errors
from keras_gmlp.utils.files import atomic_write
from keras_gmlp.utils.sources import FORMATS


def find_models(directory):
    """Returns the paths of the models in the folder of a run: model.keras and its exports."""
    directory = Path(directory)
    paths = {*directory.glob("model*.keras"), *directory.glob("model*.tflite")}
    paths |= {path for each in FORMATS.values() if (path := directory / each.path).exists()}
    return sorted(paths, key=lambda path: (path.suffix != ".keras", path.name))


def read_any_card(path):
    """Reads the card of a model file in any format; see `card.read_card`."""
    path = Path(path)
    if path.suffix == ".onnx":
        with naming_errors(path):
            card = from_members({p.key: p.value for p in _read_onnx(path).metadata_props})
    else:
        card = read_card(path)
    if not card:
        raise ValueError(f"{path}: has no card; export it again, or move it to another folder.")
    return card


def update_card(path, entries):
    """Replaces entries in the card of a model file."""
    path = Path(path)
    card = {name: value for name, value in read_any_card(path).items() if name != "labels"}
    text = json.dumps({**card, **entries})
    with atomic_write(path / "assets.extra" / CARD if path.is_dir() else path) as temporary:
        if path.is_dir():
            temporary.write_text(text, "utf-8", newline="\n")
        elif path.suffix == ".onnx":
            model = _read_onnx(path)
            for prop in model.metadata_props:
                if prop.key == CARD:
                    prop.value = text
            temporary.write_bytes(model.SerializeToString())
        else:
            copy_archive(path, temporary, CARD, text)


def copy_archive(source, target, name, content):
    """Copies what comes before a zip archive, and the archive with other content of a member."""
    with zipfile.ZipFile(source) as archive:
        members = archive.infolist()
        start = min(member.header_offset for member in members)
        with open(source, "rb") as file:
            Path(target).write_bytes(file.read(start))
        with zipfile.ZipFile(target, "a") as copy:
            for member in members:
                copy.writestr(member, content if member.filename == name else archive.read(member))


def _read_onnx(path):
    onnx = require("onnx", f"{path}: its card", "onnx")
    try:
        return onnx.load(path)
    except Exception as error:  # protobuf's errors have many classes
        raise damaged_error(path, error) from None
