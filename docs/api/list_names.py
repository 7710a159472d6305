"""Writes the pages of the API reference from the stubs of the package, for MkDocs.

A line `::: all of keras_gmlp.data` in a page becomes one entry for each name that
`keras_gmlp.data` exports and no earlier door does. The names are read from the stubs, since they
load on first use and some load Keras.
"""

import ast
import functools
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINE = re.compile(r"^::: all of (\S+)$", re.MULTILINE)


def on_page_markdown(markdown, **_):
    """Expands the lines for export lists; MkDocs calls it for each page."""
    return LINE.sub(lambda found: "\n\n".join(_write_entries(found[1])), markdown)


def _write_entries(door):
    for name, place in list_entries()[door].items():
        yield f"::: {place}\n    options:\n      heading: {door}.{name}"


@functools.cache
def list_entries():
    """Returns the names of each door, without those of the doors before it."""
    folders = [
        path.parent.relative_to(ROOT).parts for path in ROOT.glob("keras_gmlp/**/__init__.py")
    ]
    doors = sorted(map(".".join, folders), key=lambda door: (door.count("."), door))
    doors.insert(1, "keras_gmlp.text")
    entries, listed = {}, set()
    for door in doors:
        names = list_names(door)
        entries[door] = {name: place for name, place in names.items() if place not in listed}
        listed.update(names.values())
    return {door: names for door, names in entries.items() if names}


def list_names(door):
    """Returns where each name in the stub of a module is defined, a dict in alphabetical order."""
    stub, places = find_source(door).with_suffix(".pyi"), {}
    base = door if stub.stem == "__init__" else door.rpartition(".")[0]
    for line in stub.read_text().splitlines() if stub.exists() else ():
        if found := re.match(r"from (\.\w\S*) import (\w+)", line):
            places[found[2]] = _follow(base + found[1], found[2])
    return dict(sorted(places.items(), key=lambda place: place[0].casefold()))


def find_source(module):
    """Returns the file of a module."""
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _follow(module, name):
    """Returns where a name is defined that a module defines, imports or exports."""
    if find_source(module).stem == "__init__":
        return list_names(module)[name]
    for node in ast.parse(find_source(module).read_text()).body:
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return _follow(node.module, name)
    return f"{module}.{name}"
