"""The task of masked language models."""

import dataclasses
import itertools
import math
import tempfile
from typing import ClassVar

import numpy as np

from keras_gmlp.data.text.corpus import build_corpus
from keras_gmlp.data.text.tokenizer import describe_unknown
from keras_gmlp.tasks.confidence import Confidence
from keras_gmlp.tasks.scores import rank_classes, round_scores
from keras_gmlp.tasks.task import CHECKED
from keras_gmlp.tasks.text_task import TextTask, draw_places, run_in_parts
from keras_gmlp.utils.text_files import read_lines

MASKS = 8  # places that a masked language model predicts in a call
EVERY = 7  # words from one mask to the next in the check of an exported file
COUNT = (lambda n: type(n) is int and n > 0, "a positive integer")


@dataclasses.dataclass(frozen=True)
class MaskedLM(TextTask):
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
    unit = "tokens"
    ranges: ClassVar = {
        **TextTask.ranges,
        **dict.fromkeys(("epoch_tokens", "validation_windows"), COUNT),
        "mask_rate": (lambda share: 0 < share <= 1, "in (0, 1]"),
        "cut": (lambda share: 0 <= share <= 1, "in [0, 1]"),
    }
    kind = "a masked language model"
    pipeline = "fill-mask"
    method = "fill_mask"
    architecture = "BertForMaskedLM"
    inputs: ClassVar = {"token_ids": None, "mask_positions": MASKS}
    logits_rank = 3
    output = "logits for {vocabulary_size:,} tokens at each masked position"
    example = '("Paris is the [MASK] of France.", top=3)'
    limits = ("It has no notion of what is true.", *TextTask.limits)

    @classmethod
    def recipes(cls) -> dict[str, dict]:
        """An epoch is a million tokens, so that a run on a CPU saves its state often."""
        fast = {"precision": "mixed_bfloat16", "optimizer": "muon", "learning_rate": 7e-3}
        return {
            # A nano model in about 45 minutes on two cores. Few tokens, so small batches.
            "quick": {**fast, "batch_size": 64, "warmup": 0.05, "task": cls()},
            # A small model on a GPU: 134M tokens.
            "standard": {
                "epochs": 8,
                "batch_size": 512,
                "learning_rate": 1e-3,
                "warmup": 0.06,
                "weight_decay": 0.01,
                "ema": 0.02,
                "precision": "mixed_bfloat16",
                "task": cls(epoch_tokens=2**24),
            },
            # Ten minutes of a GPU: 1.3G tokens, about 30 passes over 200 MB of text.
            "long": {
                **fast,
                "batch_size": 1024,
                "warmup": 0.03,
                "ema": 0.02,
                "task": cls(mask_rate=0.2, epoch_tokens=2**26),
            },
        }

    @property
    def unit_size(self):
        return self.length

    def objective(self, model, data=None) -> tuple:
        import keras

        from keras_gmlp.objectives.losses import MaskedCrossEntropy
        from keras_gmlp.objectives.metrics import Perplexity

        accuracy = keras.metrics.SparseCategoricalAccuracy("accuracy")
        return MaskedCrossEntropy(), [Perplexity(), accuracy]

    def samples_per_epoch(self, data) -> int:
        return max(1, self.epoch_tokens // self.length)

    def training_batches(self, data, batch_size, position):
        from keras_gmlp.data.text.masking import MaskedBatches

        windows = (batch_size, self.length, self.mask_rate)
        return MaskedBatches(data.train, *windows, position.seed, position.step, self.cut)

    def fits_device(self, data) -> bool:
        return True  # 200 MB of text are 100 MB of tokens

    def device_data(self, data, seed, epochs) -> tuple:
        import jax.numpy as jnp

        from keras_gmlp.data.batches.order import make_generator
        from keras_gmlp.data.text.masking import draw_masks, mask_windows, read_windows

        windows = data.train.windows(self.length)

        def draw(epoch, step, indices):
            generator = make_generator(seed, epoch, step)
            return draw_masks(data.train, len(indices), self.length, self.mask_rate, generator)

        def mask(tokens, sizes, numbers):
            chances = self.mask_rate, self.cut
            return mask_windows(tokens, sizes, numbers, data.train, *chances, jnp)

        return read_windows(data.train, windows, self.length), draw, mask

    def evaluation_batches(self, data, split="test", samples=-1):
        import keras

        from keras_gmlp.data.batches.host import array_batches
        from keras_gmlp.data.text.masking import validation_set

        windows = validation_set(getattr(data, split), self.length)
        part = slice(None if samples < 0 else samples)
        arrays = keras.tree.map_structure(lambda array: array[part], windows)
        return array_batches(*arrays, batch_size=128)

    def validation_batches(self, data):
        return self.evaluation_batches(data, samples=self.validation_windows)

    @classmethod
    def find_unknown(cls, data) -> str:
        infos = data.train.info, data.test.info
        return describe_unknown(max(info["unknown"] / info["tokens"] for info in infos))

    def describe_data(self, data) -> dict:
        return {
            **super().describe_data(data),
            "vocabulary_size": data.tokenizer.size,
            "training_tokens": len(data.train),
            "validation_tokens": len(data.test),
        }

    @classmethod
    def predict(cls, model, text, top=5, pieces=False):
        """Returns the most probable words for each `[MASK]`; see `TextModel.fill_mask`."""
        if isinstance(text, list | tuple):
            return [cls.predict(model, one, top, pieces) for one in text]
        tokenizer = model.tokenizer
        encoding = model.encode(text)
        ids = np.array([encoding.ids], "int32")
        positions = np.flatnonzero(ids == tokenizer.mask_id)
        wanted = text.count("[MASK]")
        if not wanted:
            raise ValueError(
                "no [MASK] in the text; write it, in capitals, in the place of a word, as in "
                "'Paris is the [MASK] of France.'"
            )
        if len(positions) < wanted:
            raise ValueError(
                f"a [MASK] is after the first {model.length - 2} tokens, which the model takes; "
                "shorten the text before it."
            )
        # Each row asks for up to MASKS places; unused ones point at [CLS].
        asked = np.zeros((-(-wanted // MASKS), MASKS), "int32")
        asked.ravel()[:wanted] = positions
        rows = np.repeat(ids, len(asked), axis=0)
        logits = model.run(token_ids=rows, mask_positions=asked)
        scores = Confidence().probabilities(logits.reshape(-1, logits.shape[-1])[:wanted])
        kept = np.ones(scores.shape[1], bool) if pieces else tokenizer.are_words.copy()
        kept[list(tokenizer.special_ids)] = False
        found = []
        for place, row in zip(positions, scores, strict=True):
            best = np.argsort(np.where(kept, -row, 1), kind="stable")[: min(top, kept.sum())]
            start, end = encoding.offsets[place]
            found.append([])
            for token in best:
                word, before = tokenizer.tokens[token], text[:start]
                filled = f"{before.rstrip()}{word[2:]}" if word.startswith("##") else before + word
                result = {"score": float(row[token]), "token": int(token), "token_str": word}
                found[-1].append({**result, "sequence": filled + text[end:]})
        return found[0] if wanted == 1 else found

    @classmethod
    def check_samples(cls, model, data) -> tuple:
        lines = filter(str.strip, read_lines(data.path))
        return list(itertools.islice(lines, CHECKED)), None

    @classmethod
    def encode(cls, model, samples) -> dict[str, np.ndarray]:
        ids = super().encode(model, samples)["token_ids"]
        positions = np.zeros((len(ids), MASKS), "int32")
        for row, places in zip(ids, positions, strict=True):
            (words,) = np.nonzero(row > max(model.tokenizer.special_ids))
            chosen = words[::EVERY][:MASKS]
            places[: len(chosen)] = chosen
            row[chosen] = model.tokenizer.mask_id
        return {"token_ids": ids, "mask_positions": positions}

    @classmethod
    def load_samples(cls, models, source, split=None, limit=None) -> tuple:
        from keras_gmlp.data.text.masking import validation_set

        if len({model.tokenizer.hash for model in models}) > 1:
            names = " and ".join(str(model.path) for model in models)
            raise ValueError(f"{names}: their tokenizers differ, so perplexities do not compare.")
        with tempfile.TemporaryDirectory() as folder:
            corpus = build_corpus(source.path, models[0].tokenizer, folder)
            inputs, targets, weights = validation_set(corpus, min(m.length for m in models))
        rows = draw_places(len(targets), limit)
        inputs = {key: array[rows] for key, array in inputs.items()}
        if not weights[rows].any():
            raise ValueError(
                f"{source.name}: no token to mask; the tokenizer of {models[0].path} knows none of "
                "its words. Give a text in its language."
            )
        return (inputs, targets[rows], weights[rows] > 0), {"split": "all"}

    @classmethod
    def score(cls, model, samples) -> tuple:
        inputs, *arrays = samples
        windows, length = inputs["token_ids"].shape
        # A call takes MASKS places of a window: each window becomes several rows.
        arrays = inputs["mask_positions"], *arrays
        extra = (0, -arrays[0].shape[1] % MASKS)
        positions, targets, used = (np.pad(a, ((0, 0), extra)).reshape(-1, MASKS) for a in arrays)
        rows, calls = np.flatnonzero(used.any(axis=1)), len(used) // windows
        ids = np.pad(inputs["token_ids"], ((0, 0), (0, model.length - length)))[rows // calls]
        total, right, tokens = 0.0, 0, int(used.sum())
        given = {"token_ids": ids, "mask_positions": positions[rows]}
        for part, logits in run_in_parts(model, given):
            chosen = used[rows[part]]
            logits, wanted = logits[chosen].astype("float64"), targets[rows[part]][chosen]
            found = rank_classes(logits, wanted, np.arange(logits.shape[-1]))
            total -= found["log_likelihoods"].sum()
            right += int((found["predictions"] == wanted).sum())
        scores = {"perplexity": math.exp(total / tokens), "accuracy": right / tokens}
        return {"windows": windows, "masked_tokens": tokens, **round_scores(scores)}, None
