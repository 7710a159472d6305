"""Work that needs another backend than this process's: Keras has one a process."""

import os
import subprocess
import sys

from keras_gmlp.utils.errors import why_ended


def run_on(backend, module, *arguments):
    """Runs a module as a program with Keras on a backend, on the CPU.

    Args:
        backend: `"tensorflow"`, `"jax"` or `"torch"`.
        module: its name.
        arguments: of the program.

    Returns:
        What it printed.

    Raises:
        RuntimeError: it failed. One line: the last of its standard error, or what ended it.
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
