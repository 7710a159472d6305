"""The metadata inside a model's file: class names, preprocessing, the arguments that rebuild it.

A card has two members, card.json and labels.txt. A `.keras` file is a zip archive and holds them
next to Keras' own. A `.tflite` file holds a zip archive with them after its flatbuffer, where
runtimes do not look. A SavedModel holds them in `assets.extra`, an `.onnx` file as metadata.
"""

import json
import re
import zipfile
import zlib
from pathlib import Path

CARD, LABELS = "card.json", "labels.txt"

DAMAGED = (
    "its class names and pre-processing cannot be read; the file is cut off or damaged. Copy or "
    "export it again."
)

# The local header of a member: it remains even if the index of the archive is cut off.
_MEMBER = re.compile(rb"PK\x03\x04.{26}(card\.json|labels\.txt)", re.DOTALL)


def members(model, labels=None, metadata=None):
    """Returns the members of a card, a dict of texts by name; see `write_card` for arguments."""
    metadata = {"image_shape": list(model.input_shape[1:]), "pixels": [0, 255], **(metadata or {})}
    if not labels:
        labels, metadata["named"] = map(str, range(model.output_shape[-1])), False
    return {LABELS: "\n".join(labels) + "\n", CARD: json.dumps(metadata)}


def from_members(texts):
    """Parses the members of a card.

    Args:
        texts: a dict of texts by name.

    Returns:
        The metadata and, under `"labels"`, the class names; empty if both members are missing.

    Raises:
        ValueError: If one member is missing or cannot be parsed.
    """
    if not {CARD, LABELS} & set(texts):
        return {}
    try:
        return {**json.loads(texts[CARD]), "labels": texts[LABELS].splitlines()}
    except (KeyError, ValueError, TypeError):
        raise ValueError(DAMAGED) from None


def write_card(path, model, labels=None, metadata=None):
    """Adds a card to a model's file that has none.

    Args:
        path: a `.keras` or `.tflite` file, or the folder of a SavedModel.
        model: the `keras.Model` in it.
        labels: class names in the order of the logits. Defaults to `"0"`, `"1"`, ...
        metadata: Further entries, a dict that JSON can hold. `"crop"` and `"interpolation"` are
            arguments of `data.read_image.read_image`. With `"preset"` and `"arguments"`,
            `keras_gmlp.build(preset, **arguments)` rebuilds the model, before
            folding for a folded one.
    """
    card = members(model, labels, metadata)
    if Path(path).is_dir():
        extra = Path(path) / "assets.extra"
        extra.mkdir(exist_ok=True)
        for name, text in card.items():
            (extra / name).write_text(text)
        return
    with zipfile.ZipFile(path, "a") as archive:
        for name, text in card.items():
            archive.writestr(name, text)


def read_card(path):
    """Reads the card of a model's file.

    Args:
        path: a `.keras` or `.tflite` file, or the folder of a SavedModel. The card of an `.onnx`
            file requires its runtime; see `inference`.

    Returns:
        A dict of the metadata and the `"labels"`; empty if the file has no card.

    Raises:
        ValueError: If the card is damaged. One line.
    """
    path = Path(path)
    try:
        if path.is_dir():
            extra = path / "assets.extra"
            texts = {name: (extra / name).read_text() for name in (CARD, LABELS)}
        else:
            with zipfile.ZipFile(path) as archive:
                texts = {name: archive.read(name).decode() for name in (CARD, LABELS)}
        card = from_members(texts)
    # zipfile's errors for a damaged archive, and KeyError if a member is missing.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, KeyError, ValueError, OSError):
        card = {}
    if not card and _has_members(path):
        raise ValueError(f"{path}: {DAMAGED}")
    return card


def _has_members(path):
    """Whether a card was written to the file, damaged or not."""
    if path.is_dir():
        return (path / "assets.extra" / CARD).exists()
    return path.is_file() and _MEMBER.search(path.read_bytes()) is not None
