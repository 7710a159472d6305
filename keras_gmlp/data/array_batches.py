"""Batches of arrays without TensorFlow."""

import keras


class ArrayBatches(keras.utils.PyDataset):
    """Batches of two arrays, in order; for `evaluate` and `predict` on any backend.

    Args:
        images, labels: Arrays of equal length.
        batch_size: Samples in a batch; the last may be smaller.
    """

    def __init__(self, images, labels, batch_size):
        super().__init__()
        self.images, self.labels, self.batch_size = images, labels, batch_size

    def __len__(self):
        return -(-len(self.images) // self.batch_size)

    def __getitem__(self, index):
        part = slice(index * self.batch_size, (index + 1) * self.batch_size)
        return self.images[part], self.labels[part]
