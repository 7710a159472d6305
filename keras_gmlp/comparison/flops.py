"""What one image costs: floating-point operations, counted by PyTorch as a model runs.

Counted are those of matrix products and convolutions, multiplications and additions each, which is
what the field reports (or half of it, as "MACs"): a dense layer costs twice its weights for each
token.
"""

import sys

import keras
import numpy as np

from keras_gmlp import inference
from keras_gmlp.utils.subprocesses import run_on
from keras_gmlp.weights import pretrained


def count_flops(path):
    """Floating-point operations of one image through a saved model.

    Args:
        path: of a `.keras` file.

    Returns:
        Their number, or `None` where PyTorch is not installed.

    Raises:
        ValueError: no such model, or a damaged one.
    """
    if keras.backend.backend() == "torch":
        return _count(inference.load(path).model)
    try:
        return int(run_on("torch", "keras_gmlp.comparison.flops", path))
    except RuntimeError as error:
        if "No module named 'torch'" in str(error):
            return None
        raise ValueError(f"{path}: its operations could not be counted ({error}).") from None


def random_model(preset, **overrides):
    """A preset that costs what a trained one does, with every weight drawn anew.

    Runtimes skip biases of 0 and factors of 1, which fresh models have.

    Args:
        preset: a key of `PRESETS`.
        overrides: see `presets.build`.
    """
    model = pretrained.build(preset, **overrides)
    rng = np.random.default_rng(0)
    for weight in model.weights:
        if "seed" not in weight.path:
            value = keras.ops.convert_to_numpy(weight)
            weight.assign(value + rng.uniform(-0.02, 0.02, value.shape))
    return model


def _count(model):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    counter = FlopCounterMode(display=False)
    # Attention in one fused operation would go uncounted on a CPU.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counter:
        model(torch.zeros(1, *model.input_shape[1:]), training=False)
    return counter.get_total_flops()


if __name__ == "__main__":
    print(count_flops(sys.argv[1]))
