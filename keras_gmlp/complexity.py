"""What one image costs: floating-point operations, counted by PyTorch as a model runs.

Those of matrix products and convolutions, multiplications and additions each, which is what the
field reports (or half of it, as "MACs"): a dense layer costs twice its weights for each token.
"""

import os
import subprocess
import sys

import keras


def flops(preset, **overrides):
    """Floating-point operations of one image through a preset's model.

    Args:
        preset: a key of `PRESETS`.
        **overrides: see `presets.build`.

    Returns:
        Their number, or `None` where PyTorch is not installed.

    Raises:
        ValueError: an unknown preset or an override out of its range.
    """
    from keras_gmlp.presets import build, lookup

    lookup(preset)
    if keras.backend.backend() == "torch":
        return _count(build(preset, **overrides))
    # Keras has one backend a process.
    arguments = [preset, *(f"{name}={value!r}" for name, value in overrides.items())]
    result = subprocess.run(
        [sys.executable, "-m", "keras_gmlp.complexity", *arguments],
        env={**os.environ, "KERAS_BACKEND": "torch"},
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named 'torch'" in result.stderr:
        return None
    if result.returncode:
        raise ValueError(result.stderr.strip().splitlines()[-1])
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


def _main(preset, *settings):
    import ast

    pairs = (setting.split("=", 1) for setting in settings)
    print(flops(preset, **{name: ast.literal_eval(value) for name, value in pairs}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
