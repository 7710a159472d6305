"""The task of masked language models."""

import dataclasses

import keras

from keras_gmlp.data.batches.host import ArrayBatches
from keras_gmlp.data.batches.share import take_share
from keras_gmlp.data.text.masking import (
    MaskedBatches,
    device_windows,
    make_device_masker,
    masked_windows,
    validation_set,
)
from keras_gmlp.objectives.losses import MaskedCrossEntropy, Perplexity
from keras_gmlp.tasks.task import Task
from keras_gmlp.tasks.text_task import check_length, check_longest, check_words
from keras_gmlp.utils.card import write_text_card


@dataclasses.dataclass(frozen=True)
class MaskedLM(Task):
    """Predicts masked tokens of a `PreparedCorpus`.

    Attributes:
        length: Tokens in a window.
        mask_rate: Share of the tokens to predict, in (0, 1]. Of these, 80 % become `[MASK]`, 10 %
            another token, and 10 % stay, as in BERT. The validation text always has 15 %, so that
            perplexities compare.
        cut: Share of the windows that are cut to a random length, in [0, 1], so that the model also
            meets short texts.
        epoch_tokens: Tokens in an epoch. A pass over the corpus takes several epochs, or an epoch
            several passes.
        validation_windows: Windows that are tested after each epoch. The final test takes all.
    """

    length: int = 128
    mask_rate: float = 0.15
    cut: float = 0.1
    epoch_tokens: int = 2**20
    validation_windows: int = 512

    name = "masked_lm"
    headline = "perplexity"
    model_card = True
    unit = "tokens"
    weighted = True
    endless = True

    def __post_init__(self):
        check_length(self)
        for name in ("epoch_tokens", "validation_windows"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} must be a positive integer; received {value!r}.")
        if not 0 < self.mask_rate <= 1:
            raise ValueError(f"mask_rate must be in (0, 1]; received {self.mask_rate}.")
        if not 0 <= self.cut <= 1:
            raise ValueError(f"cut must be in [0, 1]; received {self.cut}.")

    @property
    def unit_size(self):
        return self.length

    def loss(self, training=True):
        return MaskedCrossEntropy()

    def metrics(self):
        return [Perplexity(), keras.metrics.SparseCategoricalAccuracy("accuracy")]

    def check_fit(self, model, data):
        check_words(model, data)
        check_longest(model, self.length)
        if data.valid is None:
            raise ValueError(
                f"{data.name} has no text for validation; prepare it with --valid FILE (valid=...)."
            )

    def size(self, data):
        return max(1, self.epoch_tokens // self.length)

    def training_batches(self, data, batch_size, position):
        start = position.count_steps(self.size(data) // batch_size)
        windows = (batch_size, self.length, self.mask_rate)
        batches = MaskedBatches(data.train, *windows, position.seed, start, self.cut)
        return take_share(batches, position.share)

    def fits_device(self, data):
        return True  # 200 MB of text are 100 MB of tokens

    def device_data(self, data):
        mask = make_device_masker(data.train, self.length, self.mask_rate, self.cut)
        return device_windows(data.train, self.length), mask, 1.0

    def device_sample(self, data, arrays):
        windows = data.train.windows(self.length)[:1]
        return masked_windows(data.train, windows, self.length, self.mask_rate)

    def evaluation_batches(self, data, split="test", samples=-1):
        corpus = data.valid if split == "test" else data.train
        arrays = validation_set(corpus, self.length)
        return ArrayBatches(*_first(arrays, samples), batch_size=128)

    def validation_batches(self, data):
        return self.evaluation_batches(data, samples=self.validation_windows)

    def describe_data(self, data):
        return {
            "data": data.name,
            "tokenizer": data.tokenizer.hash,
            "vocabulary_size": data.tokenizer.size,
            "training_tokens": len(data.train),
            "validation_tokens": len(data.valid),
        }

    def curves(self):
        return ("perplexity", "perplexity", 1), ("accuracy", "accuracy on masked tokens (%)", 100)

    def write_card(self, path, model, data, metadata):
        write_text_card(path, self.name, data.tokenizer, (), {**metadata, "length": self.length})

    def write_files(self, data, directory):
        data.tokenizer.save(directory / "tokenizer.json")

    def measure(self, model, data):
        """Returns perplexity, accuracy and loss on all windows of the validation text."""
        values = self.evaluate(model, data)
        return {f"test_{name}": value for name, value in values.items()}


def _first(arrays, samples):
    """Returns the first samples of nested arrays; all for -1."""
    if samples < 0:
        return arrays
    inputs, *rest = arrays
    return {name: array[:samples] for name, array in inputs.items()}, *(a[:samples] for a in rest)
