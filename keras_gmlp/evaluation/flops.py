"""Floating-point operations per image, counted by PyTorch as a model runs.

They are multiplications and additions of matrix products and convolutions, as is common in papers;
some report half of them, as "MACs".
"""

import sys

import keras

from keras_gmlp.utils.environment import run_on
from keras_gmlp.weights.loading import load


def count_flops(path):
    """Counts the floating-point operations of a saved model for one image."""
    if keras.backend.backend() != "torch":
        return int(run_on("torch", "keras_gmlp.evaluation.flops", path))
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    model, counter = load(path).model, FlopCounterMode(display=False)
    # A fused attention is not counted on a CPU.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counter:
        model(torch.zeros(1, *model.input_shape[1:]), training=False)
    return counter.get_total_flops()


if __name__ == "__main__":
    print(count_flops(sys.argv[1]))
