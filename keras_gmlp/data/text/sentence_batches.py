"""Labelled texts as token ids, and in batches for `fit`, without TensorFlow."""

import keras
import numpy as np

from keras_gmlp.data.batches.order import Passes


class TextBatches(keras.utils.PyDataset):
    """Endless batches of token ids and targets for `fit`.

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
        seed: Seed of the order, from 0 on. Samples that fill no whole batch are left out of a pass.
        start: Step of the first batch.
        lengths: Numbers of tokens, in ascending order. A batch then holds texts that fit one of
            them and is cut to it, which saves the time that padding costs. Requires padding with 0.

    Attributes:
        pass_steps: Batches in a pass.
    """

    # Keras ends an epoch of endless batches by their number only. It calls `on_epoch_end` of
    # others once before the first epoch as well, so that they could not count epochs.
    num_batches = None

    def __init__(self, token_ids, targets, batch_size, seed=0, start=0, lengths=()):
        super().__init__()
        self.token_ids, self.targets, self.start = token_ids, targets, start
        width = token_ids.shape[1]
        self.lengths = [*(n for n in lengths if n < width), width]
        used = width - np.argmax(token_ids[:, ::-1] != 0, axis=1)
        self._kinds = np.searchsorted(self.lengths, used)
        kinds = self._kinds if len(self.lengths) > 1 else None
        self._passes = Passes(len(token_ids), min(batch_size, len(token_ids)), seed, kinds)
        self.pass_steps = self._passes.steps

    def __getitem__(self, index):
        rows = self._passes.take(self.start + index)
        length = self.lengths[self._kinds[rows].max()]
        return self.token_ids[rows, :length], self.targets[rows]
