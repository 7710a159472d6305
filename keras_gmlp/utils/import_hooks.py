"""Runs a function as soon as Keras has been imported, without importing it."""

import sys
from importlib.machinery import PathFinder


def call_once_keras_is_imported(action):
    """Calls a function now if Keras is imported, otherwise at the end of the import of it."""
    if "keras" in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Finder(action))


class _Finder:
    """Finds Keras and the modules of this package, and notices when they have been imported."""

    def __init__(self, action):
        self.action = action
        self.package = __name__.partition(".")[0]
        self.depth = 0  # imports that have begun and not ended

    def find_spec(self, name, path=None, target=None):
        if name != "keras" and not name.startswith(f"{self.package}."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module
            spec.loader.exec_module = lambda module: self._execute(execute, module)
        return spec

    def _execute(self, execute, module):
        self.depth += 1
        try:
            execute(module)
        finally:
            self.depth -= 1
        # A module that is half imported, such as the one that imports Keras, has no classes yet.
        if not self.depth and "keras" in sys.modules and self in sys.meta_path:
            sys.meta_path.remove(self)
            self.action()
