"""A saved text model, to call; its task says what it predicts."""

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.tasks.confidence import Confidence
from keras_gmlp.tasks.registry import TEXT_TASKS, find_task


@dataclasses.dataclass(frozen=True)
class TextModel:
    """A loaded text model.

    Attributes:
        run: Function from the int32 arrays of the task's inputs, such as `token_ids`
            `(texts, length)`, to float32 logits.
        task: Name of its task; it decides which of the methods works.
        tokenizer: Its `Tokenizer`.
        length: Tokens in a text, special ones and padding included.
        labels: Class names in the order of the logits; empty for other tasks than classification.
        path: The file.
        pairs: Whether it classifies pairs of texts; `None` if its file does not say so.
        warn: Function that receives a line of text, when a text is too long.
        model: The `keras.Model` of a `.keras` file, else `None`.
        confidence: Temperature of its probabilities, which texts it rejects and, of a model that
            gives any number of labels, the `thresholds` of those that apply: a `Confidence`.
    """

    run: Callable
    task: str
    tokenizer: Tokenizer
    length: int
    labels: tuple[str, ...]
    path: Path
    pairs: bool | None = None
    warn: Callable[[str], None] = warnings.warn
    model: Any = None
    confidence: Confidence = dataclasses.field(default_factory=Confidence)

    def __call__(self, *texts, **options):
        """Returns what the task predicts for texts; the methods below say it for each task."""
        return find_task(self.task).predict(self, *texts, **options)

    def fill_mask(self, text: str | list[str], top: int = 5, pieces: bool = False) -> list:
        """Returns the most probable words for each `[MASK]` in a text.

        Args:
            text: A text with `[MASK]`, in capitals, in the place of one word or more; or a list
                of texts, which gives a list of results.
            top: Number of words, at least 1.
            pieces: Whether to offer all tokens: parts of words, which start with `##`, and
                punctuation, too.

        Returns:
            For one `[MASK]`, a list of dicts, the most probable word first: `score`, its
            probability; `token`, its id; `token_str`; `sequence`, the text with the word. For
            several, a list of such lists; each `sequence` keeps the other masks.

        Raises:
            ValueError: If the text has no `[MASK]`, or one in a part that was cut, or the model has
                another task. One line.
        """
        return self.require("fill_mask")(text, top, pieces)

    def classify(
        self, text: str | list[str], pair: str | list[str] | None = None, top: int | None = None
    ) -> list:
        """Returns the classes of a text or of a pair of texts.

        Args:
            text: A text, or a list of texts, which gives a list of results.
            pair: The second text, or a list of as many, for a model that was trained on pairs.
            top: Number of classes, at least 1. Defaults to all.

        Returns:
            A list of dicts, the most probable class first: `label`, with spaces for underscores,
            `score`, its probability, and `index`, its place in `labels`; of a model that was
            calibrated to reject texts also `known`, whether it takes the text for one of its
            classes, and of one that gives any number of labels `applies`, whether the label does.

        Raises:
            ValueError: If a text is empty, the model takes pairs and received none or the other way
                round, or it has another task. One line.
        """
        return self.require("classify")(text, pair, top)

    def require(self, method: str) -> Self:
        """Returns the model as a function; raises a `ValueError` if its task has another method."""
        own = find_task(self.task)
        if own.method != method:
            # Of two tasks with one method the first is the general one.
            kinds = {task.method: task.kind for task in map(find_task, reversed(TEXT_TASKS))}
            raise ValueError(f"{self.path} is {own.kind}; expected {kinds[method]}.")
        return self

    def encode(self, text: str, pair: str | None = None) -> Any:
        """Returns the `Encoding` of a text at the model's length; warns if it was cut."""
        whole = len(self.tokenizer.encode(text, pair).ids)
        if whole > self.length:
            self.warn(
                f"the text has {whole} tokens, the model takes {self.length}; the last "
                f"{whole - self.length} were cut."
            )
        return self.tokenizer.encode(text, pair, self.length)
