"""Opens a text model in memory; `keras_gmlp.load` opens files."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.inference.opening import open_keras
from keras_gmlp.tasks.text_model import TextModel


def from_keras(
    model: Any,
    tokenizer: Tokenizer,
    labels: Sequence[str] = (),
    length: int | None = None,
    warn: Callable = warnings.warn,
) -> TextModel:
    """Returns the `TextModel` of a model in memory.

    Args:
        model: A language model, or a classifier on one.
        tokenizer: Its `Tokenizer`.
        labels: Class names of a text classifier. Defaults to `"0"`, `"1"`, ...
        length: Tokens in a text. Defaults to the most that the model takes.
        warn: As for `keras_gmlp.load`.

    Raises:
        ValueError: If the model is not a text model or has another tokenizer. One line.

    Example:
        >>> from keras_gmlp import text
        >>> tokenizer = text.Tokenizer.train(["Paris is the capital of France."], 128)
        >>> model = text.gMLP(tokenizer.size, dim=16, depth=1, hidden_dim=32)
        >>> len(from_keras(model, tokenizer).fill_mask("Paris is the [MASK] of France.", top=3))
        3
    """
    opened = open_keras(model)
    task = opened.find_task()
    if task.domain != "texts":
        raise ValueError(
            f"{opened.path}: not a text model of this package; expected token_ids and a card with "
            f"the task; received {', '.join(opened.inputs) or 'none'}."
        )
    return task.wrap(opened, tokenizer, labels, length, warn)
