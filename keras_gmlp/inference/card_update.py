"""Changes entries in the cards of model files, and nothing else in the files."""

import json
import zipfile
from pathlib import Path

from keras_gmlp.utils.card import CARD, read_card, read_onnx
from keras_gmlp.utils.files import atomic_write
from keras_gmlp.utils.formats import FORMATS


def read_cards(directory):
    """Returns the cards of the models in the folder of a run by path, that of model.keras first."""
    directory = Path(directory)
    paths = {*directory.glob("model*.keras"), *directory.glob("model*.tflite")}
    paths |= {path for each in FORMATS.values() if (path := directory / each.path).exists()}
    paths = sorted(paths, key=lambda path: (path.suffix != ".keras", path.name))
    cards = {path: read_card(path) for path in paths}
    for path, card in cards.items():
        if not card:
            raise ValueError(f"{path}: has no card; export it again, or move it to another folder.")
    return cards


def update_card(path, entries):
    """Replaces entries in the card of a model file."""
    path = Path(path)
    card = {name: value for name, value in read_card(path).items() if name != "labels"}
    text = json.dumps({**card, **entries})
    with atomic_write(path / "assets.extra" / CARD if path.is_dir() else path) as temporary:
        if path.is_dir():
            temporary.write_text(text, "utf-8", newline="\n")
        elif path.suffix == ".onnx":
            model = read_onnx(path)
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
