"""What all tasks on text share: tokens in, a tokenizer in the card, checks of lengths."""

import dataclasses
import warnings
from pathlib import Path
from typing import ClassVar

import numpy as np

from keras_gmlp.data.text.tokenizer import Tokenizer, describe_unknown, encode_rows
from keras_gmlp.models.saved import require_numbers
from keras_gmlp.tasks.confidence import read_confidence
from keras_gmlp.tasks.task import Task, name_classes
from keras_gmlp.tasks.text_model import TextModel
from keras_gmlp.utils.card import read_tokenizer, write_text_card
from keras_gmlp.utils.errors import naming_errors, printable, shortened
from keras_gmlp.utils.progress import ProgressBar

LONGEST = 2**16  # tokens in a text
FEW = 200  # texts that show whether the tokenizer knows the language
TESTED = 256  # texts in a batch of evaluation
TOGETHER = 32  # texts from one state of the progress bar to the next


@dataclasses.dataclass(frozen=True)
class TextTask(Task):
    """A task of texts; the base class of those, and of a user's own.

    A subclass adds `predict`, and the objective unless it is that of classes; what this class takes
    from `data` is `name`, `tokenizer`, `train`, `encode(split, length)`, which returns token ids
    and targets, and, if it has them, `labels` and `pairs`.

    Attributes:
        length: Tokens in a text, special ones included. Longer texts lose their end.
    """

    length: int = 128

    domain = "texts"
    unit = "texts"
    measured: ClassVar[tuple] = ("test",)
    ranges: ClassVar = {
        "length": (lambda n: type(n) is int and n >= 8, "an integer of at least 8"),
    }
    inputs: ClassVar = {"token_ids": None}
    example, pair_example = '("a text")', '("He left the house.", "He went out.")'
    limits: ClassVar[tuple] = (
        "It can repeat what people wrote in the training texts, prejudice included.",
    )

    # The class of the package transformers with the same head; a key of `BERT_HEADS`, or none.
    architecture: ClassVar[str | None] = None

    cuts: ClassVar[tuple] = ()  # numbers of tokens to which batches of short texts are cut

    @classmethod
    def recipes(cls) -> dict[str, dict]:
        """Returns the arguments of `Recipe` by the name of the recipe, the task among them."""
        return {}

    @classmethod
    def find_unknown(cls, data) -> str:
        """Returns a line if the tokenizer does not know many tokens, otherwise `""`."""
        encodings = data.tokenizer.encode_batch(data.train.texts[:FEW])
        added = data.tokenizer.cls_id, data.tokenizer.sep_id
        ids = [i for encoding in encodings for i in encoding.ids if i not in added]
        return describe_unknown(ids.count(data.tokenizer.unk_id) / max(len(ids), 1))

    def check_fit(self, model, data) -> None:
        from keras_gmlp.models.structure import longest_text

        check_vocabulary(data.name, model, data.tokenizer)
        longest = longest_text(model)
        if longest and self.length > longest:
            raise ValueError(
                f"The model takes at most {longest} tokens; received length={self.length}. Build "
                f"it with max_length={self.length} (--set-model max_length={self.length}), or "
                "lower the length."
            )

    def training_batches(self, data, batch_size, position):
        import keras

        from keras_gmlp.data.text.sentence_batches import TextBatches

        ids, targets = data.encode("train", self.length)
        # Keras on TensorFlow requires batches of one shape.
        cuts = () if keras.backend.backend() == "tensorflow" else self.cuts
        return TextBatches(ids, targets, batch_size, position.seed, position.step, cuts)

    def evaluation_batches(self, data, split="test", samples=-1):
        from keras_gmlp.data.batches.host import array_batches

        part = slice(None if samples < 0 else samples)
        ids, targets = (array[part] for array in data.encode(split, self.length))
        return array_batches(ids, targets, batch_size=TESTED)

    def describe_data(self, data) -> dict:
        entries = {"data": data.name, "tokenizer": data.tokenizer.hash}
        if hasattr(data, "labels"):
            entries["labels"] = list(data.labels)
        return entries | _find_pairs(data)

    def write_card(self, path, model, data, metadata) -> None:
        metadata = {**metadata, "length": self.length, **_find_pairs(data)}
        write_text_card(path, self.name, data.tokenizer, getattr(data, "labels", ()), metadata)

    @classmethod
    def wrap(cls, opened, tokenizer=None, labels=(), length=None, warn=warnings.warn):
        """Returns the `TextModel` of an opened file, by default with the file's own tokenizer."""
        card, path, model = opened.card, opened.path, opened.model
        if tokenizer is None:
            if (text := read_tokenizer(path)) is None:
                raise ValueError(
                    f"{path} has no tokenizer; expected one in the file, as training and export "
                    "write it."
                )
            tokenizer = Tokenizer(text, path)
        if set(opened.inputs) != set(cls.inputs) or len(opened.outputs) != 1:
            raise ValueError(
                f"{path}: not {cls.kind}; expected the inputs {' and '.join(cls.inputs)}; received "
                f"{', '.join(opened.inputs) or 'none'}."
            )
        (shape, _), ((*_, classes), _) = opened.inputs["token_ids"], *opened.outputs.values()
        if model is not None:
            from keras_gmlp.models.structure import longest_text

            check_vocabulary(path, model, tokenizer)
            length = length or card.get("length") or longest_text(model) or 128
            if type(length) is not int or not 8 <= length <= LONGEST:
                found = shortened(repr(length), 40)
                raise ValueError(
                    f"{path}: its length is {found}; expected from 8 to {LONGEST:,} tokens."
                )
        labels = labels or card.get("labels")
        labels = name_classes(path, labels, classes) if cls.logits_rank == 2 else ()

        def run(**arrays):
            return require_numbers(opened.run(**arrays), path)

        with naming_errors(path):
            confidence = read_confidence(card, len(labels) * cls.several)
        return TextModel(
            run,
            cls.name,
            tokenizer,
            int(length or shape[1]),
            labels,
            path,
            card.get("pairs"),
            warn,
            model,
            confidence,
        )

    @classmethod
    def encode(cls, model, samples) -> dict[str, np.ndarray]:
        return {"token_ids": encode_rows(model.tokenizer, samples, model.length)}


def check_vocabulary(name, model, tokenizer):
    """Raises a `ValueError` if a model has other tokens than a tokenizer."""
    words = model.get_layer("token_embedding").input_dim
    if words != tokenizer.size:
        raise ValueError(
            f"{name}: the model has a vocabulary of {words} tokens, the tokenizer one of "
            f"{tokenizer.size}; expected the tokenizer of the model's training."
        )


def _find_pairs(data):
    """Returns whether data are pairs of texts, a dict; an empty one if they do not say so."""
    return {"pairs": data.pairs} if hasattr(data, "pairs") else {}


def draw_places(total, limit):
    """Returns the places of all samples, or of a few that are drawn with a fixed seed, in order."""
    if limit is None or limit >= total:
        return range(total)
    return sorted(np.random.default_rng(0).permutation(total)[:limit].tolist())


def run_in_parts(model, inputs):
    """Yields parts of a model's logits for arrays by name, and their rows, with a progress bar."""
    total = len(inputs["token_ids"])
    with ProgressBar(f"reading with {printable(Path(model.path).name)}", total) as progress:
        for start in range(0, total, TOGETHER):
            rows = slice(start, start + TOGETHER)
            yield rows, model.run(**{name: array[rows] for name, array in inputs.items()})
            progress.show(min(rows.stop, total))
