"""Work on another Keras backend, which requires another process."""

import os
import subprocess
import sys

from keras_gmlp.utils.errors import why_ended


def run_on(backend, module, *arguments):
    """Runs a module as a program with Keras on a backend.

    Args:
        backend: `"tensorflow"`, `"jax"` or `"torch"`, which runs on the CPU.
        module: Name of the module.
        arguments: Arguments of the program.

    Returns:
        The text that the program printed.

    Raises:
        RuntimeError: If the program fails. One line: the last line of its standard error, or the
            signal that ended it.
    """
    result = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env={
            **os.environ,
            "KERAS_BACKEND": backend,
            "KERAS_TORCH_DEVICE": "cpu",
            "TF_CPP_MIN_LOG_LEVEL": "2",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        reason = why_ended(result.returncode, result.stderr)
        raise RuntimeError(f"Keras on {backend}: {reason}")
    return result.stdout
