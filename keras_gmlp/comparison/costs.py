"""The costs of a sweep's models, FLOPs and latency by preset."""

import functools
import sys

import keras
import numpy as np

from keras_gmlp.data.run_folder import Run
from keras_gmlp.export.verify import export_run
from keras_gmlp.inference.latency import time_calls
from keras_gmlp.utils.environment import is_installed, run_on
from keras_gmlp.utils.files import write_json
from keras_gmlp.weights.loading import load


def measure_costs(runs, report=lambda text: None, repeats=200):
    """Counts the FLOPs of each preset and measures its 8-bit TFLite file, all in turns."""
    first = {}
    for run in sorted(runs, key=lambda run: (-run.fraction, run.seed)):
        first.setdefault(run.preset, run)
    classifiers, costs = {}, {}
    for preset, run in first.items():
        path = run.directory / "model.tflite"
        try:
            if not path.exists():
                export_run(run.directory, ["tflite"])
            classifiers[preset] = load(path, threads=1)
            metrics = Run(run.directory).metrics  # after the export, which writes to it
            if metrics.get("flops") is None and is_installed("torch"):
                metrics["flops"] = count_flops(run.directory / "model.keras")
                write_json(run.directory / "metrics.json", metrics)
        except (ValueError, RuntimeError) as error:
            report(f"{run.name}: {error}")
        flops = Run(run.directory).metrics.get("flops")
        costs[preset] = {} if flops is None else {"flops": flops}
    calls = {
        preset: functools.partial(each.logits, np.zeros((1, *each.image_shape), "uint8"))
        for preset, each in classifiers.items()
    }
    for preset, seconds in time_calls(calls, repeats).items():
        costs[preset]["latency_ms"] = round(1000 * seconds, 3)
    return costs


def count_flops(path):
    """Counts the floating-point operations of a saved model for one image, with PyTorch."""
    # Multiplications and additions of matrix products and convolutions, as is common in papers;
    # some report half of them, as "MACs".
    if keras.backend.backend() != "torch":
        return int(run_on("torch", __name__, path))
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
