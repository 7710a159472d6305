"""Batches of arrays without TensorFlow."""

import keras


class ArrayBatches(keras.utils.PyDataset):
    """Batches of arrays, in order; for `evaluate` and `predict` on any backend.

    Args:
        inputs: Array, or a dict of arrays by the name of an input.
        targets: Array.
        *weights: Array of sample weights, or nothing.
        batch_size: Samples in a batch; the last may be smaller.

    All arrays have the same length.
    """

    def __init__(self, inputs, targets, *weights, batch_size):
        super().__init__()
        self.inputs, self.arrays, self.batch_size = inputs, (targets, *weights), batch_size

    def __len__(self):
        return -(-len(self.arrays[0]) // self.batch_size)

    def __getitem__(self, index):
        part = slice(index * self.batch_size, (index + 1) * self.batch_size)
        inputs = self.inputs
        if isinstance(inputs, dict):
            inputs = {name: array[part] for name, array in inputs.items()}
        else:
            inputs = inputs[part]
        return inputs, *(array[part] for array in self.arrays)
