"""Loads text models; a `.tflite` file requires only LiteRT, NumPy and `tokenizers`."""

import warnings

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.inference.opening import open_keras, open_model
from keras_gmlp.tasks.text_model import TextModel  # noqa: F401 (a name of this module)
from keras_gmlp.utils.card import read_tokenizer


def load(path, threads=None, warn=warnings.warn):
    """Loads a text model, as `keras_gmlp.load` does.

    Its file holds its tokenizer, or a tokenizer.json is next to it.

    Args:
        path, threads, warn: As for `keras_gmlp.load`.

    Returns:
        A `TextModel`.

    Raises:
        ValueError: As `keras_gmlp.load`, or if the model is not a text model, or its tokenizer is
            missing or belongs to another model. One line.
    """
    opened = open_model(path, threads)
    if opened.find_task().domain != "texts" and "image_shape" in opened.card:
        raise ValueError(f"{opened.path} is an image model; apps/classify.py takes it.")
    return wrap(opened, warn)


def wrap(opened, warn):
    """Returns the `TextModel` of an opened file."""
    text = read_tokenizer(opened.path)
    tokenizer = find_neighbour(opened.path) if text is None else Tokenizer(text, opened.path)
    return _wrap(opened, tokenizer, warn=warn)


def from_keras(model, tokenizer, labels=(), length=None, warn=warnings.warn):
    """Returns the `TextModel` of a model in memory.

    Args:
        model: A language model, or a classifier on one.
        tokenizer: Its `Tokenizer`.
        labels: Class names of a text classifier. Defaults to `"0"`, `"1"`, ...
        length: Tokens in a text. Defaults to the most that the model takes.
        warn: See `load`.

    Raises:
        ValueError: If the model is not a text model or has another tokenizer. One line.

    Example:
        >>> from keras_gmlp import text
        >>> tokenizer = text.Tokenizer.train(["Paris is the capital of France."], 128)
        >>> model = text.gMLP(tokenizer.size, dim=16, depth=1, hidden_dim=32)
        >>> len(from_keras(model, tokenizer).fill_mask("Paris is the [MASK] of France.", top=3))
        3
    """
    return _wrap(open_keras(model), tokenizer, labels, length, warn)


def _wrap(opened, *arguments, **options):
    task = opened.find_task()
    if task.domain != "texts":
        raise ValueError(
            f"{opened.path}: not a text model of this package; expected token_ids and a card with "
            f"the task; received {', '.join(opened.inputs) or 'none'}."
        )
    return task.wrap(opened, *arguments, **options)


def find_neighbour(path):
    """Returns the tokenizer in the folder of a model whose file has none."""
    place = path.with_name("tokenizer.json")
    if not place.exists():
        raise ValueError(
            f"{path} has no tokenizer; expected one in the file, as training and export write it, "
            "or a tokenizer.json next to it. If it is an image model: apps/classify.py takes it."
        )
    from keras_gmlp.data.run_folder import Run  # here: it imports Pillow

    tokenizer = Tokenizer.load(place)
    recorded = Run(path).recipe.get("tokenizer", tokenizer.hash)
    if recorded != tokenizer.hash:
        raise ValueError(
            f"{place}: not the tokenizer that the model was trained with, whose hash is "
            f"{recorded[:12]}; received {tokenizer.hash[:12]}."
        )
    return tokenizer
