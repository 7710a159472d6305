"""Names that load on first use: those that the stub of a module (`.pyi`) imports."""

import importlib
import os.path


def attach_names(spec):
    """Returns `__getattr__`, `__dir__` and `__all__` of a module for the names in its stub."""
    stub = spec.loader.get_data(f"{os.path.splitext(spec.origin)[0]}.pyi")  # in an archive, too
    lines = map(str.split, stub.decode().splitlines())  # from .module import name as name
    places = {words[-1]: words[1] for words in lines if words[:1] == ["from"]}
    names = sorted(places)

    def load(name):
        if name not in places:
            raise AttributeError(f"module {spec.name!r} has no attribute {name!r}")
        if places[name] == ".":
            return importlib.import_module(f".{name}", spec.parent)
        return getattr(importlib.import_module(places[name], spec.parent), name)

    return load, lambda: names, names
