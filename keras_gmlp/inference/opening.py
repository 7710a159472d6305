"""Opens `.tflite` files without Keras."""

import os
import subprocess
import sys

import numpy as np

from keras_gmlp.models.saved import damaged_error, require_readable
from keras_gmlp.utils.card import require_undamaged
from keras_gmlp.utils.errors import why_ended

# Of a .tflite file, from an image to the vector before the head.
FEATURES_SIGNATURE = "serving_features"

FEATURES_FILE = "model_features.tflite"  # with that signature, in the folder of a run


def open_tflite(path, threads=None):
    """Returns the LiteRT interpreter of a `.tflite` file, ready to run; imports no Keras."""
    require_readable(path)
    threads = threads or min(4, os.cpu_count() or 1)
    if not require_undamaged(path):
        command = [sys.executable, "-m", __name__, str(path), str(threads)]
        code = subprocess.run(command, capture_output=True, check=False).returncode
        if code < 0:  # other failures repeat here, with the runtime's text
            raise damaged_error(path, f"the runtime was {why_ended(code, '')}")
    try:
        return _open_tflite(path, threads)
    except (ValueError, RuntimeError, OSError, MemoryError) as error:
        raise damaged_error(path, error) from None


def _open_tflite(path, threads):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=threads)
    interpreter.allocate_tensors()
    return interpreter


def _run_tflite(path, threads):
    """Runs a file once, on zeros."""
    interpreter = _open_tflite(path, int(threads))
    for tensor in interpreter.get_input_details():
        interpreter.set_tensor(tensor["index"], np.zeros(tensor["shape"], tensor["dtype"]))
    interpreter.invoke()


if __name__ == "__main__":
    _run_tflite(*sys.argv[1:])
