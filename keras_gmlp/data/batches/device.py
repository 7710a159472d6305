"""Training data that stays on the accelerator: chunks of steps, as indices into arrays."""

import functools

import keras
import numpy as np

from keras_gmlp.data.batches.passes import Passes, make_generator


class DeviceBatches(keras.utils.PyDataset):
    """Yields what a compiled chunk of training steps takes; one iteration is one epoch."""

    # An item has `indices` `(steps, batch)` into `arrays`, which stay on the device, `positions`
    # `(steps,)` of each step's first sample in the epoch, and the epoch's `key` `(2,)`. Order and
    # key follow from seed and epoch alone, so that a resumed run sees what it would have seen.

    # `arrays` are equally long, or functions from an epoch, which counts from 0, to such an array;
    # the first is an array. Without `steps` an epoch is one pass over the samples, each in its own
    # order. MixUp and CutMix are active in `mixed_epochs`, a range, by default in all.
    def __init__(
        self, arrays, batch_size, seed=0, mixed_epochs=None, chunk=None, steps=None, place=None
    ):
        super().__init__()
        import jax

        self.batch_size, self.seed, self.mixed_epochs = batch_size, seed, mixed_epochs
        draw = functools.partial(make_generator, seed)
        self.passes = Passes(len(arrays[0]), batch_size, draw)
        self.steps = steps or self.passes.steps
        self.chunk = min(chunk or chunk_length(self.steps), self.steps)
        self.first_step = 0  # of the epoch; those before are done
        self._place, self._given = place or jax.device_put, tuple(arrays)
        fixed = [array for array in self._given if not callable(array)]
        self._fixed = self._place(tuple(fixed))
        self.start_epoch(0)

    def start_epoch(self, epoch):
        """Draws the order of an epoch, which counts from 0, and places its arrays."""
        changing = [array(epoch) for array in self._given if callable(array)]
        changing, fixed = iter(self._place(tuple(changing))), iter(self._fixed)
        self.arrays = tuple(next(changing if callable(a) else fixed) for a in self._given)
        steps = range(epoch * self.steps, (epoch + 1) * self.steps)
        self.order = np.stack([self.passes.take(step) for step in steps]).astype("int32")
        generator = make_generator(self.seed, epoch)
        generator.permutation(self.passes.size)  # so that runs of older versions resume
        self.key = generator.integers(0, 2**32, 2, dtype="uint32")
        self.mixing = self.mixed_epochs is None or epoch in self.mixed_epochs
        self.odd = epoch % 2 == 1

    def __len__(self):
        return -(-(self.steps - self.first_step) // self.chunk)

    def __getitem__(self, index):
        first = self.first_step + index * self.chunk
        steps = np.arange(first, min(first + self.chunk, self.steps))
        return {
            "indices": self.order[steps],
            "positions": (steps * self.batch_size).astype("int32"),
            "key": self.key,
            "mixing": np.bool_(self.mixing),
            "odd": np.bool_(self.odd),
        }


def chunk_length(steps, least=20, most=200):
    """Returns how many steps to compile as one chunk."""
    divisors = [n for n in range(least, most + 1) if steps % n == 0]
    return max(divisors, default=min(steps, most))
