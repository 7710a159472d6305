"""Labelled texts as token ids, and in batches for `fit`, without TensorFlow."""

import keras
import numpy as np

from keras_gmlp.data.batches.passes import Passes


class TextBatches(keras.utils.PyDataset):
    """Batches of token ids and targets, endless with a seed.

    Each pass has another order. A batch depends on the seed and its step only, so that a resumed
    run gets the batches that it would have got:

    ```python
    batches = TextBatches(*data.encode("train", 64), 32, seed=0)  # a `TextData` with a tokenizer
    batches.start = done * batches.pass_steps
    steps = batches.pass_steps
    model.fit(batches, steps_per_epoch=steps, epochs=3, initial_epoch=done, shuffle=False)
    ```

    Args:
        token_ids: int32 `(samples, length)`.
        targets: int32 `(samples, ...)`.
        batch_size: Samples in a batch.
        seed: Seed of the order, from 0 on; samples that fill no whole batch are left out of a
            pass. `None` for one pass over all samples in order.
        start: Step of the first batch.
        lengths: Numbers of tokens, in ascending order. With a seed, a batch then holds texts that
            fit one of them and is cut to it, which saves the time that padding costs. `None` for
            whole rows. Requires padding with 0.

    Attributes:
        pass_steps: Batches in a pass.

    Raises:
        ValueError: If `batch_size` is below 1 or there are no samples.
    """

    def __init__(self, token_ids, targets, batch_size, seed=None, start=0, lengths=None):
        super().__init__()
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1; received {batch_size}.")
        if not len(token_ids):
            raise ValueError("no texts for batches; expected at least one.")
        self.token_ids, self.targets, self.seed, self.start = token_ids, targets, seed, start
        self.batch_size = batch_size if seed is None else min(batch_size, len(token_ids))
        whole, rest = divmod(len(token_ids), self.batch_size)
        self.pass_steps = whole + (seed is None and rest > 0)
        width = token_ids.shape[1]
        self.lengths = [*(n for n in lengths or () if n < width), width]
        used = width - np.argmax(token_ids[:, ::-1] != 0, axis=1)
        self._kinds = np.searchsorted(self.lengths, used)
        if seed is not None:
            kinds = self._kinds if len(self.lengths) > 1 else None
            self._passes = Passes(len(token_ids), self.batch_size, seed, kinds)

    # Keras ends an epoch of endless batches by their number only. It calls `on_epoch_end` of
    # others once before the first epoch as well, so that they could not count epochs.
    @property
    def num_batches(self):
        return self.pass_steps if self.seed is None else None

    def __getitem__(self, index):
        place = self.start + index
        if self.seed is None:
            if place >= self.pass_steps:  # ends a `for` loop
                raise IndexError(f"batch {index} of {self.pass_steps}")
            rows = slice(place * self.batch_size, (place + 1) * self.batch_size)
            return self.token_ids[rows], self.targets[rows]
        rows = self._passes.take(place)
        length = self.lengths[self._kinds[rows].max()]
        return self.token_ids[rows, :length], self.targets[rows]
