"""Masked windows of a corpus: what a masked language model trains on."""

import math

import keras
import numpy as np

from keras_gmlp.data.batches.order import Passes, make_generator
from keras_gmlp.data.text.corpus import Corpus

MASKED, RANDOM = 0.8, 0.1  # of the chosen tokens, as in BERT; the rest stay as they are
SHORTEST = 8  # tokens in a cut window
CUT = 0.1  # of the windows, as in BERT: a model also meets short texts


def masked_windows(corpus, windows, length, rate, generator, cut):
    """Returns windows, rows of `corpus.windows(length)`, as `MaskedBatches` describes a batch."""
    numbers = draw_masks(corpus, len(windows), length, rate, generator)
    return mask_windows(*read_windows(corpus, windows, length), numbers, corpus, rate, cut, np)


def draw_masks(corpus, windows, length, rate, generator):
    """Returns the random numbers that mask windows, a tuple of arrays."""
    shape = windows, math.ceil(rate * (length - 2))  # the places of `mask_positions`
    return (
        generator.integers(SHORTEST, max(length, SHORTEST + 1), windows) - 2,  # a shorter size
        generator.random(windows),  # the chance of it
        generator.random(windows),  # the rounding of the number of masks
        generator.integers(0, 2**32, (windows, length), "uint32"),  # the order of the places
        generator.random(shape, "float32"),  # what becomes of each chosen token
        generator.integers(0, len(_vocabulary(corpus)), shape),  # another word
    )


def read_windows(corpus, windows, length):
    """Returns the tokens of windows, uint16 `(windows, length - 2)`, and their sizes, int32."""
    tokens = corpus.tokens.take(windows[:, :1] + np.arange(length - 2), mode="clip")
    return tokens, (windows[:, 1] - windows[:, 0]).astype("int32")


def mask_windows(tokens, sizes, numbers, corpus, rate, cut, xp):
    """Returns what `masked_windows` does, given the random numbers; in NumPy or JAX."""
    shorter, chance, rounding, order, draw, word = numbers
    most = draw.shape[1]
    pad, _, start, end, mask = corpus.info["special_ids"]
    vocabulary, places = _vocabulary(corpus), np.arange(tokens.shape[1] + 2)
    sizes = xp.where(chance < cut, xp.minimum(sizes, shorter), sizes)[:, None]
    inside = (places >= 1) & (places <= sizes)
    ids = xp.where(inside, xp.pad(tokens.astype("int32"), ((0, 0), (1, 1))), pad)
    # A window that ends with a paragraph has its [SEP] already.
    unfinished = xp.take_along_axis(ids, sizes, 1) != end
    ids = xp.where((places == sizes + 1) & unfinished, end, ids)
    ids = xp.where(places == 0, start, ids)
    ordinary = np.isin(np.arange(corpus.info["vocabulary_size"]), vocabulary)
    eligible = xp.asarray(ordinary)[ids]
    counts = eligible.sum(axis=1)
    # Rounded up or down at random, so that the mean is the rate.
    wanted = xp.floor(rate * counts + rounding).astype("int32")
    wanted = xp.minimum(xp.maximum(wanted, 1), xp.minimum(counts, most))
    used = np.arange(most) < wanted[:, None]
    positions = xp.where(used, _choose(order, eligible, most, xp), 0).astype("int32")
    targets = xp.take_along_axis(ids, positions, 1)
    other = xp.where(draw < MASKED + RANDOM, xp.asarray(vocabulary)[word], targets)
    new = xp.where(draw < MASKED, mask, other)
    # An unused place points at [CLS], the token of position 0, and writes it back.
    new = xp.where(used, new, targets)
    if xp is np:
        np.put_along_axis(ids, positions, new, 1)
    else:  # arrays of JAX do not change
        ids = xp.put_along_axis(ids, positions, new, 1, inplace=False)
    inputs = {"token_ids": ids, "mask_positions": positions}
    return inputs, xp.where(used, targets, 0), used.astype("float32")


def _vocabulary(corpus):
    """Returns the ids that are not special tokens, int32."""
    everything = np.arange(corpus.info["vocabulary_size"], dtype="int32")
    return np.delete(everything, corpus.info["special_ids"])


def _choose(keys, eligible, most, xp):
    """Returns the places of the smallest random numbers in each row; eligible ones come first."""
    length = eligible.shape[1]
    # Their last bits are the position: the smallest ones name what is chosen.
    bits = np.uint32((length - 1).bit_length())
    keys = keys >> bits << bits | np.arange(length, dtype="uint32")
    keys = xp.where(eligible, keys, np.uint32(2**32 - 1))
    return xp.sort(keys, axis=1)[:, :most] & np.uint32((1 << int(bits)) - 1)


class MaskedBatches(keras.utils.PyDataset):
    """Endless batches of masked windows for `fit`; each pass has another order and other masks.

    A window is `[CLS]`, its tokens, `[SEP]` and padding. Of the chosen tokens 80 % become `[MASK]`,
    10 % a random token, 10 % stay. Special tokens are neither chosen nor drawn. A batch is
    `({"token_ids": int32 (windows, length), "mask_positions": int32 (windows, k)},
    targets int32 (windows, k), weights float32 (windows, k))`. Unused places have position 0 and
    weight 0.

    A batch depends on the seed and its step only, so a resumed run gets the batches that it would
    have got. Windows that fill no whole batch are left out of a pass.

    ```python
    batches = MaskedBatches(corpus, start=1000 * initial_epoch)
    model.fit(
        batches, steps_per_epoch=1000, epochs=20, initial_epoch=initial_epoch, shuffle=False
    )
    ```

    Args:
        corpus: `train` or `test` of what `prepare_corpus` returned.
        batch_size: Windows in a batch.
        length: Tokens in a window.
        rate: Share of a window's ordinary tokens to choose; at least one is.
        seed: From 0 on.
        start: Step of the first batch.
        cut: Share of the windows to cut to a random length from 8 tokens on.

    Attributes:
        pass_steps: Batches in one pass over the corpus.

    Raises:
        ValueError: If the corpus has fewer windows than a batch. One line.
    """

    # Keras shuffles finite sets with other numbers each time, and calls `on_epoch_end` once before
    # the first epoch. An endless set in one thread comes in order on every backend.
    num_batches = None

    def __init__(
        self,
        corpus: Corpus,
        batch_size: int = 256,
        length: int = 128,
        rate: float = 0.15,
        seed: int = 0,
        start: int = 0,
        cut: float = CUT,
    ):
        super().__init__()
        self.corpus, self.windows = corpus, corpus.windows(length)
        self.batch_size, self.length, self.rate, self.cut = batch_size, length, rate, cut
        self.seed, self.start = seed, start
        self._passes = Passes(len(self.windows), batch_size, seed)
        self.pass_steps = self._passes.steps

    def __getitem__(self, index):
        step = self.start + index
        windows = self.windows[self._passes.take(step)]
        generator = make_generator(self.seed, *divmod(step, self.pass_steps))
        return masked_windows(self.corpus, windows, self.length, self.rate, generator, self.cut)


def validation_set(corpus, length=128, rate=0.15, seed=0):
    """Returns all windows, uncut, as a batch of `MaskedBatches`, with masks that stay the same."""
    generator = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, 2]))
    return masked_windows(corpus, corpus.windows(length), length, rate, generator, cut=0)
