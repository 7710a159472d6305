"""Starts a program of the package from this folder."""

import sys
from pathlib import Path


def start(module, name):
    """Runs the program of a name in `keras_gmlp.programs` and ends with its exit code."""
    if module != "__main__":  # a child process imports the file that its parent started
        return
    root = str(Path(__file__).resolve().parent.parent)
    sys.path.insert(0, root)  # also where the package, or another version, is installed
    try:
        from keras_gmlp.programs import run

        sys.exit(run(name))
    except ModuleNotFoundError as error:
        sys.exit(f"{name}: {error}. Install: pip install -e {root!r}")
    except KeyboardInterrupt:  # while it starts
        sys.exit(print(f"{name}: stopped.", file=sys.stderr) or 130)
