"""Starts a program of the package from this folder."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def start(module, name):
    """Runs the program of a name in `keras_gmlp.programs` and ends with its exit code."""
    if module != "__main__":  # a child process imports the file that its parent started
        return
    sys.path.insert(0, str(ROOT))  # also where the package, or another version, is installed
    try:
        from keras_gmlp.programs import run
    except ModuleNotFoundError as error:
        sys.exit(f"{name}: {error}. Install: pip install -e {str(ROOT)!r}")
    sys.exit(run(name))
