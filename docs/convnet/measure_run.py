"""Measures why a ConvNet overfits: the statistics of its norms, and the length of its kernels.

.venv/bin/python docs/convnet/measure_run.py runs/cnn
"""

import sys

import numpy as np
from keras import layers, ops

from keras_gmlp import data
from keras_gmlp.models.saved import load_model

IMAGES, BATCH = 2000, 1000


def main():
    model = load_model(sys.argv[1], compile=False)
    images, labels = data.load("cifar10").test.arrays()
    for training, name in ((False, "stored statistics"), (True, "statistics of the batch")):
        batches = [images[i : i + BATCH].astype("float32") for i in range(0, IMAGES, BATCH)]
        logits = [ops.convert_to_numpy(model(batch, training=training)) for batch in batches]
        right = np.concatenate(logits).argmax(axis=1) == labels[:IMAGES]
        print(f"{name:25} {100 * right.mean():.2f} %")
    for layer in model.layers:
        if isinstance(layer, layers.Conv2D):
            kernel = ops.convert_to_numpy(layer.kernel)
            length = np.linalg.norm(kernel) / np.sqrt(kernel.shape[-1])
            print(f"{layer.name:25} {length:.1f} times the length in the original")


if __name__ == "__main__":
    main()
