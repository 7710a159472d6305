"""The programs of the command keras-gmlp; the files in apps/ start them, too."""

import importlib


def run(name, arguments=None):
    """Runs a program by its name, such as `"train"`; returns its exit code."""
    return importlib.import_module(f"keras_gmlp.programs.{name}").main(arguments)
