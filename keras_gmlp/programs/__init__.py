"""The programs of the command keras-gmlp; the files in apps/ start them, too."""

import importlib
from pathlib import Path


def list_programs():
    """Returns the first line of each program's docstring by its name, without importing any."""
    sources = sorted(Path(__file__).parent.glob("[!_]*.py"))
    return {path.stem: path.read_text("utf-8").split('"""')[1].splitlines()[0] for path in sources}


def run(name, arguments=None):
    """Runs a program by its name, such as `"train"`; returns its exit code."""
    return importlib.import_module(f"keras_gmlp.programs.{name}").main(arguments)
