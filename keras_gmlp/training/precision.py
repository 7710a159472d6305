"""Chooses the precision that computes faster on the machine at hand."""

import functools
import sys
import timeit

from keras import ops

from keras_gmlp.data.run_folder import Run
from keras_gmlp.training.devices import find_process
from keras_gmlp.training.run_directory import has_progress
from keras_gmlp.utils.environment import accelerators, run_on

MARGIN = 1.1  # bfloat16 has fewer digits, so it must be that many times as fast


def choose_precision(directory=None):
    """Returns the precision of the run in a directory, or the faster one."""
    recorded = None
    if directory is not None and has_progress(directory):
        recorded = Run(directory).recipe.get("precision")
    if recorded is not None:
        return recorded
    several = find_process()[1] > 1  # which might measure otherwise
    faster = accelerators() or (not several and bfloat16_speedup() > MARGIN)
    return "mixed_bfloat16" if faster else "float32"


def choose_in_child(directory, backend):
    """Chooses as `choose_precision` in a child, so that accelerators stay free for others."""
    return run_on(backend, __name__, directory, cpu=False).split()[-1]


@functools.cache
def bfloat16_speedup():
    """Returns how many times as fast as float32 a matrix product in bfloat16 is."""

    def measure(dtype):
        x, kernel = ops.ones((512, 256), dtype), ops.ones((256, 768), dtype)

        def multiply():
            ops.convert_to_numpy(ops.matmul(x, kernel)[:1, :1])  # waits for the product

        return min(timeit.repeat(multiply, number=1, repeat=20))

    return measure("float32") / measure("bfloat16")


if __name__ == "__main__":
    print(choose_precision(*sys.argv[1:]))
