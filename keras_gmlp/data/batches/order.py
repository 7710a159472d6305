"""Where a run stands, and the order of training samples that are read pass after pass."""

import dataclasses
import functools

import numpy as np


@dataclasses.dataclass(frozen=True)
class Position:
    """Where a run stands in its batches."""

    seed: int = 0
    epoch: int = 0  # number of epochs that are done
    step: int = 0  # number of steps that are done
    epochs: int | None = None  # in all, if it is known
    part: tuple = (0, 1)  # `(index, count)` of the process, which makes its part of each batch


class Passes:
    """Whole batches of samples, pass after pass, each in its own order.

    The order depends on the seed and the number of the pass only, so that a resumed run gets the
    batches that it would have got. Samples that fill no whole batch are left out of a pass.
    """

    def __init__(self, size, batch_size, seed, kinds=None):
        """A batch holds samples of similar `kinds`, which are numbers."""
        self.size, self.batch_size, self.seed, self.kinds = size, batch_size, seed, kinds
        self.steps = size // batch_size
        if not self.steps:
            raise ValueError(
                f"the training data have {size:,} samples, fewer than a batch of {batch_size:,}; "
                "give more data or lower batch_size."
            )
        self.draw = functools.lru_cache(1)(self._draw)  # each step takes a part of its pass

    def _draw(self, number):
        """Returns the samples of each batch of a pass, `(steps, batch_size)`."""
        generator = make_generator(self.seed, number)
        rows = generator.permutation(self.size)[: self.steps * self.batch_size]
        if self.kinds is None:
            return rows.reshape(self.steps, self.batch_size)
        rows = rows[np.argsort(self.kinds[rows], kind="stable")]
        return generator.permutation(rows.reshape(self.steps, self.batch_size))

    def take(self, step):
        """Returns the samples of a step, counted from the start of training."""
        number, place = divmod(step, self.steps)
        return self.draw(number)[place]


def make_generator(seed, number, step=-1):
    """Returns a generator that depends on these numbers only, in any order of calls."""
    return np.random.Generator(np.random.Philox(key=[seed, number], counter=[0, 0, 0, step + 1]))
