"""What a model says of itself: class names, and how a picture becomes its input.

A card is a pair of members: of a zip archive in a `.keras` file, which is one, beside what Keras
reads; behind the flatbuffer of a `.tflite` file, where runtimes do not look; files in the
`assets.extra` of a SavedModel; metadata of an `.onnx` file, which its runtime reads.
"""

import json
import re
import zipfile
import zlib
from pathlib import Path

CARD, LABELS = "card.json", "labels.txt"

DAMAGED = (
    "its class names and pre-processing cannot be read; the file is cut off or damaged. Copy or "
    "export it anew."
)

# A member's own header, which is there even where the archive's index is cut off.
_MEMBER = re.compile(rb"PK\x03\x04.{26}(card\.json|labels\.txt)", re.DOTALL)


def members(model, labels=None, facts=None):
    """The card's members, a dict from their names to their text; see `write_card`."""
    facts = {"image_shape": list(model.input_shape[1:]), "pixels": [0, 255], **(facts or {})}
    if not labels:
        labels, facts["named"] = map(str, range(model.output_shape[-1])), False
    return {LABELS: "\n".join(labels) + "\n", CARD: json.dumps(facts)}


def from_members(found):
    """The card's facts and, under `labels`, the class names, of the members that were found.

    Raises:
        ValueError: one of the two alone, or no card in the member of that name.
    """
    if not {CARD, LABELS} & set(found):
        return {}
    try:
        return {**json.loads(found[CARD]), "labels": found[LABELS].splitlines()}
    except (KeyError, ValueError, TypeError):
        raise ValueError(DAMAGED) from None


def write_card(path, model, labels=None, facts=None):
    """Adds a card to a model's file that has none.

    Args:
        path: a `.keras` or `.tflite` file, or the folder of a SavedModel.
        model: the `keras.Model` in it.
        labels: class names in the order of the logits. Defaults to the classes' numbers.
        facts: a dict that JSON can hold, beside the shape and the range of the pixels. `crop` and
            `interpolation` are those of `images.read_image`.
    """
    card = members(model, labels, facts)
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
    """The card of a model's file: its facts and its `labels`; empty without a card.

    That of an `.onnx` file is read by its runtime, in `inference`.

    Raises:
        ValueError: the card is damaged. One line.
    """
    path = Path(path)
    try:
        if path.is_dir():
            extra = path / "assets.extra"
            texts = {name: (extra / name).read_text() for name in (CARD, LABELS)}
        else:
            with zipfile.ZipFile(path) as archive:
                texts = {name: archive.read(name).decode() for name in (CARD, LABELS)}
        found = from_members(texts)
    # What zipfile raises of a damaged archive, and KeyError where one has no such members.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, KeyError, ValueError, OSError):
        found = {}
    if not found and _has_members(path):
        raise ValueError(f"{path}: {DAMAGED}")
    return found


def _has_members(path):
    """Whether a card was written there, whatever has become of it."""
    if path.is_dir():
        return (path / "assets.extra" / CARD).exists()
    return path.is_file() and _MEMBER.search(path.read_bytes()) is not None
