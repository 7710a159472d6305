"""The metadata inside a model's file: class names, preprocessing, the arguments that rebuild it.

A card has two members, card.json and labels.txt; that of a text model has tokenizer.json as well. A
`.keras` file is a zip archive and holds them next to Keras' own. A `.tflite` file holds a zip
archive with them after its flatbuffer, where runtimes do not look; its card has a digest of the
flatbuffer, because a runtime does not notice flipped bits and may crash. A SavedModel holds them in
`assets.extra`, an `.onnx` file as metadata.
"""

import hashlib
import json
import re
import zipfile
import zlib
from pathlib import Path

from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import first_line, naming_errors
from keras_gmlp.utils.files import hash_file
from keras_gmlp.utils.labels import check_labels

CARD, LABELS, TOKENIZER = "card.json", "labels.txt", "tokenizer.json"
DIGEST = "model_sha256"  # the entry of card.json
BOUNDED_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}  # the others unpack whole blocks

# The most bytes of each that are read: a compressed member can take a thousand times its size.
LIMITS = {CARD: 1_000_000, LABELS: 1_000_000, TOKENIZER: 16_000_000}

DAMAGED = (
    "its class names and pre-processing cannot be read; the file is cut off or damaged. Copy or "
    "export it again."
)

# The local header of a member: it remains even if the index of the archive is cut off.
_MEMBER = re.compile(rb"PK\x03\x04.{26}(card\.json|labels\.txt)", re.DOTALL)


def members(model, labels=None, metadata=None):
    """Returns the members of a card, a dict of texts by name; see `write_card` for arguments."""
    check_labels(labels or (), "labels")
    metadata = {"image_shape": list(model.input_shape[1:]), "pixels": [0, 255], **(metadata or {})}
    if not labels:
        labels, metadata["named"] = map(str, range(model.output_shape[-1])), False
    return {LABELS: "\n".join(labels) + "\n", CARD: json.dumps(metadata)}


def from_members(texts):
    """Parses the members of a card."""
    if not {CARD, LABELS} & set(texts):
        return {}
    try:
        # Other ends of lines are in the names of older files.
        labels = texts[LABELS].removesuffix("\n").split("\n") if texts[LABELS] else []
        return {**json.loads(texts[CARD]), "labels": labels}
    except (KeyError, ValueError, TypeError, RecursionError):  # the last for [[[[...
        raise ValueError(DAMAGED) from None


def write_card(path, model, labels=None, metadata=None):
    """Adds a card to a model's file that has none."""
    _append(path, members(model, labels, {**(metadata or {}), **_digest(path)}))


def write_text_card(path, task, tokenizer, labels=(), metadata=None):
    """Adds a card to the file of a text model that has none."""
    check_labels(labels, "labels")
    card = {"task": task, "tokenizer": tokenizer.hash, **(metadata or {}), **_digest(path)}
    lines = "".join(f"{label}\n" for label in labels)
    _append(path, {LABELS: lines, CARD: json.dumps(card), TOKENIZER: tokenizer.text})


def _append(path, texts):
    path = Path(path)
    if path.is_dir():
        extra = path / "assets.extra"
        extra.mkdir(exist_ok=True)
        for name, text in texts.items():
            (extra / name).write_text(text, "utf-8", newline="\n")
    elif path.suffix == ".onnx":
        import onnx

        model = onnx.load(path)
        onnx.helper.set_model_props(model, texts)
        onnx.save(model, path)
    else:
        with zipfile.ZipFile(path, "a") as archive:
            for name, text in texts.items():
                archive.writestr(name, text)


def _digest(path):
    """Returns the entry for a `.tflite` file without a card; a zip archive has checksums."""
    return {DIGEST: hash_file(path)} if Path(path).suffix == ".tflite" else {}


def require_undamaged(path):
    """Checks the model in a `.tflite` file against the digest in its card."""
    card = read_card(path)
    if DIGEST in card:
        with zipfile.ZipFile(path) as archive:
            size = min(member.header_offset for member in archive.infolist())
        with open(path, "rb") as file:
            found = hashlib.sha256(file.read(size)).hexdigest()
        if found != card[DIGEST]:
            raise ValueError(
                f"{path}: the model has the hash {found[:12]}; expected {str(card[DIGEST])[:12]} "
                "as in its card. Copy or export the file again."
            )
    return bool(card)


def read_card(path):
    """Reads the card of a model's file; that of an ONNX file requires the package onnx."""
    path = Path(path)
    if path.suffix == ".onnx":
        with naming_errors(path):
            return from_members(_read_properties(path))
    try:
        texts = _read_members(path, CARD, LABELS)
        card = from_members({name: text.decode() for name, text in texts.items()})
    # zipfile's errors for a damaged archive, and KeyError if a member is missing.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, KeyError, ValueError, OSError):
        card = {}
    if not card:
        content = path.read_bytes() if path.is_file() else b""
        # TFLite Metadata from elsewhere is a whole archive with class names, without a card.
        is_foreign = CARD.encode() not in content and zipfile.is_zipfile(path)
        if (_MEMBER.search(content) and not is_foreign) or (path / "assets.extra" / CARD).exists():
            raise ValueError(f"{path}: {DAMAGED}")
    return card


def read_foreign_labels(path):
    """Returns the class names in the TFLite Metadata of a file without a card, or none."""
    try:
        return _read_members(path, LABELS)[LABELS].decode("utf-8", "replace").splitlines()
    except (KeyError, zipfile.BadZipFile):
        return []


def _read_properties(path):
    """Returns the metadata of an ONNX file, texts by name."""
    return {entry.key: entry.value for entry in read_onnx(path).metadata_props}


def read_onnx(path):
    """Reads an ONNX file."""
    onnx = require("onnx", f"{path}: its card", "onnx")
    try:
        return onnx.load(path)
    except Exception as error:  # protobuf's errors have many classes
        raise ValueError(f"{path}: damaged or of another kind ({first_line(error)}).") from None


def read_tokenizer(path):
    """Reads the tokenizer of a text model's file."""
    card = read_card(path)
    try:
        text = _read_members(Path(path), TOKENIZER)[TOKENIZER]
    except (KeyError, OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError):
        if "tokenizer" in card:
            raise ValueError(
                f"{path}: its tokenizer cannot be read; the file is damaged. Copy or export it "
                "again."
            ) from None
        return None
    found, expected = hashlib.sha256(text).hexdigest(), card.get("tokenizer")
    if found != expected:
        raise ValueError(
            f"{path}: its tokenizer has the hash {found[:12]}; expected {str(expected)[:12]} as in "
            "its card. Copy or export the file again."
        )
    return text.decode()


def _read_members(path, *names):
    """Returns members of a card, bytes by name; `path` is a file or a SavedModel."""
    if path.suffix == ".onnx":
        texts = _read_properties(path)
        return {name: texts[name].encode() for name in names}
    if path.is_dir():
        extra = path / "assets.extra"
        return {name: _read_bounded(open(extra / name, "rb"), name, path) for name in names}
    with zipfile.ZipFile(path) as archive:
        if not {archive.getinfo(name).compress_type for name in names} <= BOUNDED_METHODS:
            raise zipfile.BadZipFile("compressed by a method that unpacks more than asked for")
        return {name: _read_bounded(archive.open(name), name, path) for name in names}


def _read_bounded(file, name, path):
    """Reads and closes a member."""
    with file:
        content = file.read(LIMITS[name] + 1)
    if len(content) > LIMITS[name]:
        raise ValueError(
            f"{path}: its {name} has more than {LIMITS[name]:,} bytes; get the original file."
        )
    return content
