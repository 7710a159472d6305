"""Programs under another backend than the tests' own: Keras fixes it at import."""

import os
import subprocess
import sys

HIDE = """
import sys
from importlib.machinery import PathFinder

class Present(PathFinder):
    @classmethod
    def find_spec(cls, name, *arguments):
        if name.split(".")[0] not in {hidden}:
            return PathFinder.find_spec(name, *arguments)

sys.meta_path = [Present if finder is PathFinder else finder for finder in sys.meta_path]
"""


def run_under(backend, program, *arguments, hidden=()):
    """Runs Python source in a process of its own, as if some packages were not installed.

    Returns what it prints.
    """
    program = HIDE.format(hidden=hidden) + program
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout
