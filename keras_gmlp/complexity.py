"""What one image costs: floating-point operations, counted by PyTorch as a model runs.

Those of matrix products and convolutions, multiplications and additions each, which is what the
field reports (or half of it, as "MACs"): a dense layer costs twice its weights for each token.
"""

import os
import subprocess
import sys

import keras

from keras_gmlp import inference


def flops(path):
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
    # Keras has one backend a process.
    result = subprocess.run(
        [sys.executable, "-m", "keras_gmlp.complexity", str(path)],
        env={**os.environ, "KERAS_BACKEND": "torch"},
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named 'torch'" in result.stderr:
        return None
    if result.returncode:
        reason = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise ValueError(f"{path}: its operations could not be counted ({reason}).")
    return int(result.stdout)


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
    print(flops(sys.argv[1]))
