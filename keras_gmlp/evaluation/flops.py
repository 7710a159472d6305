"""Floating-point operations per image, counted by PyTorch as a model runs.

They are multiplications and additions of matrix products and convolutions, as is common in papers;
some report half of them, as "MACs".
"""

import sys

import keras
import numpy as np

from keras_gmlp.inference import images as inference
from keras_gmlp.utils.environment import run_on
from keras_gmlp.weights import pretrained


def count_flops(path):
    """Counts the floating-point operations of a saved model for one image."""
    if keras.backend.backend() != "torch":
        try:
            return int(run_on("torch", "keras_gmlp.evaluation.flops", path))
        except (RuntimeError, OSError) as error:
            if "No module named 'torch'" in str(error):
                return None
            raise ValueError(f"{path}: counting its operations failed ({error}).") from None
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    model, counter = inference.load(path).model, FlopCounterMode(display=False)
    # A fused attention is not counted on a CPU.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counter:
        model(torch.zeros(1, *model.input_shape[1:]), training=False)
    return counter.get_total_flops()


def random_model(preset, **overrides):
    """Builds a preset with random weights, which costs as much as a trained one."""
    model = pretrained.build(preset, **overrides)
    rng = np.random.default_rng(0)
    for weight in model.weights:
        if "seed" not in weight.path:
            value = keras.ops.convert_to_numpy(weight)
            weight.assign(value + rng.uniform(-0.02, 0.02, value.shape))
    return model


if __name__ == "__main__":
    print(count_flops(sys.argv[1]))
