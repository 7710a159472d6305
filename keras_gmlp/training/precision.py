"""Chooses the precision that computes faster on the machine at hand."""

import functools
import statistics
import sys
import time

import keras
from keras import ops

from keras_gmlp.data.run_folder import RESTORE, Run
from keras_gmlp.training.processes import run_once
from keras_gmlp.training.recipes import PRECISIONS
from keras_gmlp.training.run_directory import has_progress
from keras_gmlp.utils.environment import accelerators, run_on

SHAPE = (512, 256, 768)  # rows, inputs and outputs; small, since bfloat16 may be 50 times slower
SECONDS = 0.7  # for all products
MARGIN = 1.1  # bfloat16 has fewer digits, so it must be that many times as fast


def choose_precision(directory=None):
    """Returns the faster precision: `"float32"` or `"mixed_bfloat16"`."""
    return PRECISIONS[run_once(lambda: PRECISIONS.index(_choose(directory)))]


def choose_in_child(directory, backend):
    """Chooses as `choose_precision` in a child, so that accelerators stay free for others."""
    return run_on(backend, __name__, directory, cpu=False).split()[-1]


def _choose(directory):
    if directory is not None and has_progress(directory):
        recorded = Run(directory).recipe
        if recorded.get("precision", PRECISIONS[0]) not in PRECISIONS:
            raise ValueError(
                f"{directory}/recipe.json: damaged (its precision is {recorded['precision']!r}). "
                f"{RESTORE}"
            )
        if "precision" in recorded:
            return recorded["precision"]
    return "mixed_bfloat16" if accelerators() or bfloat16_speedup() > MARGIN else "float32"


@functools.cache
def bfloat16_speedup():
    """Returns how many times as fast as float32 a matrix product in bfloat16 is."""
    rows, inputs, outputs = SHAPE
    operands = {
        dtype: [ops.ones(shape, dtype) for shape in ((rows, inputs), (inputs, outputs))]
        for dtype in ("float32", "bfloat16")
    }
    seconds = {dtype: [] for dtype in operands}
    for x, kernel in operands.values():
        _wait(ops.matmul(x, kernel))  # the first call prepares
    end = time.perf_counter() + SECONDS
    while len(seconds["float32"]) < 3 or time.perf_counter() < end:
        for dtype, (x, kernel) in operands.items():
            begin = time.perf_counter()
            _wait(ops.matmul(x, kernel))
            seconds[dtype].append(time.perf_counter() - begin)
    return statistics.median(seconds["float32"]) / statistics.median(seconds["bfloat16"])


def _wait(tensor):
    """Waits until a tensor is computed."""
    if keras.backend.backend() == "jax":
        tensor.block_until_ready()
    ops.convert_to_numpy(tensor[:1, :1])


if __name__ == "__main__":
    print(choose_precision(*sys.argv[1:]))
