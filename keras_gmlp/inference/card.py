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

from keras_gmlp.utils.files import hash_file
from keras_gmlp.utils.labels import _split_lines, check_labels

CARD, LABELS, TOKENIZER = "card.json", "labels.txt", "tokenizer.json"

DIGEST = "model_sha256"  # the entry of card.json

BOUNDED_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}  # the others unpack whole blocks

# The most bytes of each that are read: a compressed member can take a thousand times its size.
LIMITS = {CARD: 1_000_000, LABELS: 1_000_000, TOKENIZER: 16_000_000}

TEXT_TASKS = ("masked_lm", "text_classification", "question_answering")

DAMAGED = (
    "its class names and pre-processing cannot be read; the file is cut off or damaged. Copy or "
    "export it again."
)

# The local header of a member: it remains even if the index of the archive is cut off.
_MEMBER = re.compile(rb"PK\x03\x04.{26}(card\.json|labels\.txt)", re.DOTALL)


class TooLargeError(ValueError):
    """Raised for a member that is longer than any card has."""


def members(model, labels=None, metadata=None):
    """Returns the members of a card, a dict of texts by name; see `write_card` for arguments."""
    check_labels(labels or (), "labels")
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
        return {**json.loads(texts[CARD]), "labels": _split_lines(texts[LABELS])}
    except (KeyError, ValueError, TypeError, RecursionError):  # the last for [[[[...
        raise ValueError(DAMAGED) from None


def write_card(path, model, labels=None, metadata=None):
    """Adds a card to a model's file that has none.

    Args:
        path: a `.keras` or `.tflite` file, or the folder of a SavedModel.
        model: the `keras.Model` in it.
        labels: class names in the order of the logits. Defaults to `"0"`, `"1"`, ...
        metadata: Further entries, a dict that JSON can hold. `"crop"`, `"interpolation"` and
            `"fit"` are arguments of `data.read_image.read_image`. With `"preset"` and
            `"arguments"`, `keras_gmlp.build(preset, **arguments)` rebuilds the model, before
            folding for a folded one. With `"output": "probabilities"`, a `.tflite` file computes
            these instead of logits.

    Raises:
        ValueError: If labels.txt cannot hold a class name. One line.
    """
    card = members(model, labels, {**(metadata or {}), **_digest(path)})
    if Path(path).is_dir():
        extra = Path(path) / "assets.extra"
        extra.mkdir(exist_ok=True)
        for name, text in card.items():
            (extra / name).write_text(text, "utf-8", newline="\n")
        return
    _append(path, card)


def write_text_card(path, task, tokenizer, labels=(), metadata=None):
    """Adds a card to the file of a text model that has none.

    Args:
        path: A `.keras` or `.tflite` file.
        task: One of `TEXT_TASKS`.
        tokenizer: The model's `Tokenizer`; the file gets its tokenizer.json.
        labels: Class names in the order of the logits; none for the other tasks.
        metadata: Further entries, a dict that JSON can hold, such as `"length"`, the tokens of the
            texts that the model was trained on. With `"preset"` and `"arguments"`,
            `keras_gmlp.text.build(preset, **arguments)` rebuilds the language model.

    Raises:
        ValueError: If the task is unknown, or labels.txt cannot hold a class name. One line.
    """
    if task not in TEXT_TASKS:
        raise ValueError(f"task must be one of {', '.join(TEXT_TASKS)}; received {task!r}.")
    check_labels(labels, "labels")
    card = {"task": task, "tokenizer": tokenizer.hash, **(metadata or {}), **_digest(path)}
    lines = "".join(f"{label}\n" for label in labels)
    _append(path, {LABELS: lines, CARD: json.dumps(card), TOKENIZER: tokenizer.text})


def _append(path, texts):
    with zipfile.ZipFile(path, "a") as archive:
        for name, text in texts.items():
            archive.writestr(name, text)


def _digest(path):
    """Returns the entry for a `.tflite` file without a card; a zip archive has checksums."""
    if Path(path).suffix != ".tflite":
        return {}
    return {DIGEST: hash_file(path)}


def require_undamaged(path):
    """Checks the model in a `.tflite` file against the digest in its card.

    Args:
        path: A `.tflite` file. Cards of older versions have no digest, and pass.

    Returns:
        Whether the file has a card.

    Raises:
        ValueError: If the model or the card is damaged. One line.
    """
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
    """Reads the card of a model's file.

    Args:
        path: a `.keras` or `.tflite` file, or the folder of a SavedModel. The card of an `.onnx`
            file requires its runtime; see `inference`.

    Returns:
        A dict of the metadata and the `"labels"`; empty if the file has no card.

    Raises:
        ValueError: If the card is damaged or larger than `LIMITS`. One line.
    """
    path = Path(path)
    try:
        texts = _read_members(path, CARD, LABELS)
        card = from_members({name: text.decode() for name, text in texts.items()})
    except TooLargeError:
        raise
    # zipfile's errors for a damaged archive, and KeyError if a member is missing.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, KeyError, ValueError, OSError):
        card = {}
    if not card and _has_members(path):
        raise ValueError(f"{path}: {DAMAGED}")
    return card


def read_tokenizer(path):
    """Reads the tokenizer of a text model's file.

    Args:
        path: A `.keras` or `.tflite` file.

    Returns:
        The text of its tokenizer.json; `None` if the file has none.

    Raises:
        ValueError: If the file is damaged or larger than `LIMITS`, or its tokenizer is not the one
            that its card names. One line.
    """
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
        raise TooLargeError(
            f"{path}: its {name} has more than {LIMITS[name]:,} bytes; get the original file."
        )
    return content


def _has_members(path):
    """Whether a card was written to the file, damaged or not."""
    if path.is_dir():
        return (path / "assets.extra" / CARD).exists()
    return path.is_file() and _MEMBER.search(path.read_bytes()) is not None
