"""Programs under another backend than the tests' own: Keras fixes it at import."""

import contextlib
import io
import os
import subprocess
import sys
from unittest import mock


def run_under(backend, program, *arguments):
    """Runs Python source in a process of its own; what it prints."""
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def run_here_or_under(backend, program, *arguments):
    """Runs Python source in this process if its backend fits, as `run_under` does otherwise."""
    import keras

    if keras.backend.backend() != backend:
        return run_under(backend, program, *arguments)
    command, printed = ["-c", *map(str, arguments)], io.StringIO()
    with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(printed):
        exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
    return printed.getvalue()
