"""Where a run stands, and the part of each batch that one of several processes makes."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Share:
    """The rows of each batch that a process makes, one of several that count from 0."""

    # Random numbers are drawn for the whole batch, so that a sample does not depend on the number
    # of processes.

    process: int = 0
    processes: int = 1

    def whole(self, rows):
        """Returns the rows of the whole batch, given those of a share."""
        return rows * self.processes

    def take(self, rows, axis=0):
        """Returns the share of an array or tensor that has all rows of a batch on an axis."""
        if self.processes == 1:
            return rows
        size = rows.shape[axis] // self.processes
        part = slice(self.process * size, (self.process + 1) * size)
        return rows[(slice(None),) * axis + (part,)]


WHOLE = Share()


@dataclasses.dataclass(frozen=True)
class Position:
    """Where a run stands in its batches.

    The same seed gives the same batches, epoch for epoch.

    Args:
        seed: Seed of the order and of all random changes.
        epoch: Number of epochs that are done.
        step: Number of steps of the next epoch that are done. If there are some, the batches are
            the rest of that epoch, and end with it.
        epochs: Number of epochs in all, or `None` if it is not known.
        share: `Share` of each batch that this process makes.
    """

    seed: int = 0
    epoch: int = 0
    step: int = 0
    epochs: int | None = None
    share: Share = WHOLE

    def count_steps(self, steps):
        """Returns the number of steps done, given those of an epoch."""
        return self.epoch * steps + self.step


def take_share(batches, share):
    """Returns the batches of a `keras.utils.PyDataset`, or a process' share of each."""
    if share == WHOLE:
        return batches
    import keras  # here, so that tasks open `.tflite` files without it

    class SharedBatches(keras.utils.PyDataset):
        num_batches = property(lambda self: batches.num_batches)

        def __getitem__(self, index):
            return keras.tree.map_structure(share.take, batches[index])

    return SharedBatches()
