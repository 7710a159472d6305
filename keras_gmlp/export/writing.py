"""Exports a trained model to TFLite, SavedModel and ONNX; `verify` checks the files.

Each converter requires one backend. A model of another backend goes in a `.keras` file to a child
process that runs Keras on the backend of the converter.
"""

import dataclasses
import importlib
import pickle
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.inference.opening import open_keras
from keras_gmlp.models.folding import to_dense
from keras_gmlp.models.saved import load_model
from keras_gmlp.models.structure import require_floats
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.utils.card import write_card, write_text_card
from keras_gmlp.utils.environment import is_installed, run_on
from keras_gmlp.utils.errors import require_one_of
from keras_gmlp.utils.formats import FORMATS, TEXT_FORMATS


@dataclasses.dataclass(frozen=True)
class ExportOptions:
    """What is written with a model, in all formats; see `export`."""

    labels: list[str] | None = None
    card: dict = dataclasses.field(default_factory=dict)
    calibration: np.ndarray | None = None
    traces: str | None = None  # a folder for traced models, which TFLite files share
    tokenizer: object = None  # of a text model, else `None`, as the next three
    length: int | None = None
    task: str | None = None
    inputs: dict | None = None  # of the task, which another process may not know

    def for_texts(self, opened):
        """Returns the options of a `TextModel`."""
        names = ("tokenizer", "length", "task")
        own = {name: getattr(opened, name) for name in names}
        own["inputs"] = find_task(opened.task).inputs
        return dataclasses.replace(self, labels=list(opened.labels), **own)

    def list_inputs(self, model):
        """Returns shape, dtype and name of each input of a file that takes one sample."""
        if self.task is None:
            return [((1, *model.input_shape[1:]), "float32", "image")]
        return [((1, self.inputs[t.name] or self.length), "int32", t.name) for t in model.inputs]

    def write_card(self, path, model, **more):
        """Adds a card to a file."""
        card = {**self.card, **more}
        if self.task is None:
            write_card(path, model, self.labels, card)
        else:
            card["length"] = self.length
            write_text_card(path, self.task, self.tokenizer, self.labels, card)


def export(
    model: keras.Model,
    directory: str | Path,
    formats: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    card: dict | None = None,
    calibration: np.ndarray | None = None,
    tokenizer: Tokenizer | None = None,
    length: int | None = None,
) -> dict[str, Path]:
    """Writes a model to files, one per format.

    A TFLite file takes one image, or one text of a fixed length, since runtimes in browsers reject
    open shapes; the others take any number. A file of a text model maps int32 `token_ids (texts,
    length)`, and for a masked language model int32 `mask_positions (texts, 8)`, to float32
    `logits`: `(texts, 8, words)` of a masked language model, `(texts, classes)` of a classifier.

    Args:
        model: A float32 `keras.Model` from images in [0, 255] to logits, or a text model; convert a
            model in mixed precision with `models.in_float32`.
        directory: Folder for the files, created if missing.
        formats: Keys of `FORMATS`; of a text model, of `TEXT_FORMATS`. Defaults to those whose
            requirements are met, without `"features"` and `"mediapipe"`.
        labels: Class names. The card in each file holds them.
        card: Further metadata for the card, a dict that JSON can hold.
        calibration: Images for `"tflite_int8"`, which determine the ranges of the integers: uint8
            `(samples, height, width, channels)`, a few hundred of the training images.
        tokenizer: The `Tokenizer` of a text model. Each file holds it.
        length: Tokens in a text, special ones and padding included. Defaults to the most that the
            model takes.

    Returns:
        The paths of the files, a dict with the formats as keys.

    Raises:
        ValueError: If a format is unknown, its requirements are not met, the model is in mixed
            precision, `"mediapipe"` is given a model of other images than RGB or one with
            thresholds in its card, `"features"` one without a head, or the model does not fit the
            labels, the tokenizer or the length.
        RuntimeError: If a conversion fails.
    """
    opened = open_keras(model)
    task = opened.find_task()
    with tempfile.TemporaryDirectory() as traces:
        options = ExportOptions(labels and list(labels), dict(card or {}), calibration, traces)
        if task.domain == "texts":
            options = options.for_texts(task.wrap(opened, tokenizer, labels or (), length))
        formats = choose_formats(model, formats, options)
        return write_formats(model, directory, formats, options)


def choose_formats(model, formats, options, report=lambda text: None):
    """Returns the formats, by default those whose requirements are met; see `export` for errors."""
    known = FORMATS if options.task is None else TEXT_FORMATS
    missing = {name: missing_requirement(name, options.calibration) for name in known}
    if formats is None:
        usual = [name for name in known if FORMATS[name].usual]
        for name in filter(missing.get, usual):
            report(f"skipping {name}, which requires {missing[name]}")
        formats = [name for name in usual if not missing[name]]
    for name in formats:
        require_one_of("a format", name, known)
        if missing[name]:
            raise ValueError(f"{name} requires {missing[name]}.")
    if "mediapipe" in formats and (model.input_shape[-1] != 3 or options.card.get("thresholds")):
        raise ValueError("mediapipe requires a model of one label for each RGB image.")
    labels = options.labels or ()
    if labels and len(labels) != model.output_shape[-1]:
        raise ValueError(f"Received {len(labels)} labels for {model.output_shape[-1]} classes.")
    require_floats(model)
    inner = model._flatten_layers(include_self=False)
    mixed = [layer.name for layer in inner if layer.dtype_policy.name != "float32"]
    if mixed:
        raise ValueError(f"{mixed[0]} is not in float32; use models.in_float32(model).")
    return list(formats)


def write_formats(model, directory, formats, options):
    """Writes a model to files; see `export`."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    paths = {name: directory / FORMATS[name].path for name in formats}
    for backend in sorted({FORMATS[name].backend for name in formats}):
        chosen = [name for name in formats if FORMATS[name].backend == backend]
        if keras.backend.backend() != backend:
            with tempfile.TemporaryDirectory() as scratch:
                model.save(Path(scratch, "model.keras"))
                order = directory.resolve(), chosen, options
                Path(scratch, "order.pickle").write_bytes(pickle.dumps(order))
                run_on(backend, "keras_gmlp.export.writing", scratch)
            continue
        dense = to_dense(model, options.length)
        for name in chosen:
            module = importlib.import_module(f"keras_gmlp.export.{FORMATS[name].module}")
            getattr(module, f"write_{name}")(dense, paths[name], options)
    return paths


def missing_requirement(name, calibration=None):
    """Returns what is missing to write a format, as a phrase, or `None`."""
    if name == "tflite_int8" and calibration is None:
        return "images to calibrate it with (in a shell: --data NAME)"
    packages = (FORMATS[name].backend, *FORMATS[name].packages)
    absent = [package for package in packages if not is_installed(package)]
    return f"{', '.join(absent)} (pip install -e '.[{FORMATS[name].extra}]')" if absent else None


if __name__ == "__main__":  # in the child process of `write_formats`
    model = load_model(Path(sys.argv[1], "model.keras"), compile=False)
    write_formats(model, *pickle.loads(Path(sys.argv[1], "order.pickle").read_bytes()))
