"""Opens the files of text models, `.tflite` without importing Keras."""

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.inference.opening import open_tflite
from keras_gmlp.models.saved import load_model, require_inputs, require_numbers, require_readable
from keras_gmlp.utils.card import read_card, read_tokenizer
from keras_gmlp.utils.files import read_json
from keras_gmlp.utils.labels import read_labels
from keras_gmlp.utils.shipped import find_shipped, suggest_shipped

PREFERRED = ("model.tflite", "model.keras")  # in the folder of a run

BATCH = 32  # texts that Keras takes at a time

# The inputs of a model of each task.
INPUTS = {
    "masked_lm": {"token_ids", "mask_positions"},
    "text_classification": {"token_ids"},
    "question_answering": {"token_ids"},
}


@dataclasses.dataclass(frozen=True)
class OpenedText:
    """A text model ready to run; see `text_inference.TextModel` for the attributes."""

    run: Callable
    task: str
    tokenizer: Tokenizer
    length: int
    labels: tuple[str, ...]
    path: Path
    pairs: bool | None = None
    model: object = None


def open_text_model(path, threads=None):
    """Opens a text model; see `text_inference.load`. Returns an `OpenedText`."""
    path = _find(path)
    card = read_card(path)
    if "image_shape" in card:
        raise ValueError(f"{path} is an image model; apps/classify.py takes it.")
    text = read_tokenizer(path)
    tokenizer = _neighbour(path) if text is None else Tokenizer(text, path)
    if path.suffix == ".tflite":
        return _open_tflite(path, card, tokenizer, threads)
    model = load_model(path, compile=False)
    labels, length = _labels(path, card), card.get("length")
    return wrap_model(model, tokenizer, labels, length, path, card.get("pairs"))


def _find(path):
    expected = (
        "expected a .tflite or .keras file, the folder of a run or the name of an included model"
    )
    if not str(path):
        raise ValueError(f"'': an empty path; {expected}.")
    path = Path(find_shipped(path))
    if path.is_dir():
        models = [path / name for name in PREFERRED if (path / name).exists()]
        if not models:
            raise ValueError(
                f"{path}: no model in this folder; expected {' or '.join(PREFERRED)}. Is the "
                "training run complete?"
            )
        return models[0]
    if not path.exists():
        raise ValueError(
            f"{path}: no such model file or folder; {expected}.{suggest_shipped(path)}"
        )
    if path.suffix not in (".tflite", ".keras"):
        raise ValueError(f"{path}: unknown kind of model; {expected}.")
    require_readable(path)
    return path


def _neighbour(path):
    """Returns the tokenizer in the folder of a model whose file has none."""
    place = path.with_name("tokenizer.json")
    if not place.exists():
        raise ValueError(
            f"{path} has no tokenizer; expected one in the file, as training and export write it, "
            "or a tokenizer.json next to it. If it is an image model: apps/classify.py takes it."
        )
    tokenizer = Tokenizer.load(place)
    recorded = (read_json(path.with_name("recipe.json")) or {}).get("tokenizer", tokenizer.hash)
    if recorded != tokenizer.hash:
        raise ValueError(
            f"{place}: not the tokenizer that the model was trained with, whose hash is "
            f"{recorded[:12]}; received {tokenizer.hash[:12]}."
        )
    return tokenizer


def _open_tflite(path, card, tokenizer, threads):
    runner, task = open_tflite(path, threads).get_signature_runner(), card.get("task")
    inputs, outputs = runner.get_input_details(), runner.get_output_details()
    if task not in INPUTS or set(inputs) != INPUTS[task] or set(outputs) != {"logits"}:
        raise _not_text(path, inputs)

    def run(**arrays):
        rows = range(len(arrays["token_ids"]))
        parts = [runner(**{n: a[i : i + 1] for n, a in arrays.items()})["logits"] for i in rows]
        return require_numbers(np.concatenate(parts), path)

    length, size = inputs["token_ids"]["shape"][1], outputs["logits"]["shape"][-1]
    labels = _fitting(task, _labels(path, card), int(size))
    return OpenedText(run, task, tokenizer, int(length), labels, path, card.get("pairs"))


def wrap_model(model, tokenizer, labels=(), length=None, path=None, pairs=None):
    """Returns the `OpenedText` of a `keras.Model`; see `text_inference.from_keras`."""
    import keras

    path = path or Path(model.name)
    require_inputs(model, path)
    task = task_of(model)
    if task is None:
        raise _not_text(path, [tensor.name for tensor in model.inputs])
    words = model.get_layer("token_embedding").input_dim
    if words != tokenizer.size:
        raise ValueError(
            f"{path} has {words} words, its tokenizer {tokenizer.size}; expected the "
            "tokenizer.json that the model was trained with."
        )

    def run(**arrays):
        parts = []
        with without_gradients():
            for start in range(0, len(arrays["token_ids"]), BATCH):
                inputs = {name: array[start : start + BATCH] for name, array in arrays.items()}
                inputs = inputs if task == "masked_lm" else inputs["token_ids"]
                parts.append(keras.ops.convert_to_numpy(model(inputs, training=False)))
        return require_numbers(np.concatenate(parts), path)

    from keras_gmlp.models.structure import longest_text

    length = length or longest_text(model) or 128
    labels = _fitting(task, labels, model.outputs[0].shape[-1])
    return OpenedText(run, task, tokenizer, length, labels, path, pairs, model)


def task_of(model):
    """Returns the task of a `keras.Model` by its inputs and outputs; `None` if it is no text model.

    Example:
        >>> from keras_gmlp.models.language_families import gMLP
        >>> task_of(gMLP(1000, dim=64, depth=2, hidden_dim=128))
        'masked_lm'
    """
    names = {tensor.name for tensor in model.inputs}
    if names == INPUTS["masked_lm"]:
        return "masked_lm"
    kinds = {2: "text_classification", 3: "question_answering"}
    return kinds.get(len(model.outputs[0].shape)) if names == {"token_ids"} else None


def without_gradients():
    """Returns a context in which PyTorch, if it is the backend, records nothing."""
    import keras

    if keras.backend.backend() == "torch":
        import torch

        return torch.no_grad()
    return contextlib.nullcontext()


def _not_text(path, inputs):
    return ValueError(
        f"{path}: not a text model of this package; expected the inputs token_ids or token_ids and "
        f"mask_positions, and a card with the task; received {', '.join(inputs) or 'none'}."
    )


def _labels(path, card):
    """Returns the class names of the card or of labels.txt next to the model."""
    labels, neighbour = card.get("labels"), path.with_name("labels.txt")
    if not labels and neighbour.exists():
        labels = read_labels(neighbour)
    return labels or ()


def _fitting(task, labels, classes):
    """Returns the class names of a classifier, or numbers if they do not fit."""
    if task != "text_classification":
        return ()
    return tuple(labels) if len(labels) == classes else tuple(map(str, range(classes)))
