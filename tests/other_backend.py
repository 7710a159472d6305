"""Programs under another backend than the tests' own: Keras fixes it at import."""

import os
import subprocess
import sys


def run_under(backend, program, *arguments):
    """Runs Python source in a process of its own; what it prints."""
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout
