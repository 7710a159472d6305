"""Training data that stays on the accelerator: chunks of steps, as indices into arrays."""

import functools

import keras
import numpy as np

from keras_gmlp.data.batches.order import Passes


class DeviceBatches(keras.utils.PyDataset):
    """Yields what a compiled chunk of training steps takes; one iteration is one epoch."""

    # An item has `indices` `(steps, batch)` into `arrays`, which stay on the device, and `numbers`,
    # the random numbers of each step. Both follow only from the seed and the epoch, so that a
    # resumed run sees what it would have seen.

    # `arrays` are equally long. `draw` is a function from an epoch, a step in it and the step's
    # indices to arrays of random numbers. Without `steps` an epoch is one pass over the samples,
    # each in its own order.
    def __init__(self, arrays, draw, batch_size, seed=0, chunk=None, steps=None, place=None):
        super().__init__()
        import jax

        self._draw, self.arrays = draw, (place or jax.device_put)(tuple(arrays))
        self.passes = Passes(len(arrays[0]), batch_size, seed)
        self.steps = steps or self.passes.steps
        self.chunk = min(chunk or chunk_length(self.steps), self.steps)
        self.start_epoch(0)

    def start_epoch(self, epoch):
        """Draws the order of an epoch, which counts from 0."""
        steps = range(epoch * self.steps, (epoch + 1) * self.steps)
        self.order = np.stack([self.passes.take(step) for step in steps]).astype("int32")
        self.epoch = epoch

    def __len__(self):
        return -(-self.steps // self.chunk)

    def __getitem__(self, index):
        first = index * self.chunk
        steps = range(first, min(first + self.chunk, self.steps))
        numbers = [self._draw(self.epoch, step, self.order[step]) for step in steps]
        stack = functools.partial(keras.tree.map_structure, lambda *arrays: np.stack(arrays))
        return {"indices": self.order[steps], "numbers": stack(*numbers)}


def chunk_length(steps, least=20, most=200):
    """Returns how many steps to compile as one chunk."""
    divisors = [n for n in range(least, most + 1) if steps % n == 0]
    return max(divisors, default=min(steps, most))
