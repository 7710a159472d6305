"""Labelled texts as token ids, and in batches for `fit`, without TensorFlow."""

import keras
import numpy as np

from keras_gmlp.data.batches.order import Passes


class TextBatches(keras.utils.PyDataset):
    """Endless batches of token ids and targets for `fit`, each pass in another order.

    With `lengths` a batch holds texts that fit one of them, and is cut to it.
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
