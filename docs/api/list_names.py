"""Writes the pages of the API reference from the stubs of the package, for MkDocs.

A line `::: all of keras_gmlp.data` in a page becomes one entry for each name that
`keras_gmlp.data` exports and no earlier door does. The names are read from the stubs, since they
load on first use and some load Keras.
"""

import functools
import re
from importlib.util import resolve_name
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
    path = ROOT.joinpath(*door.split("."))
    stub = path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")
    package = door if path.is_dir() else door.rpartition(".")[0]
    lines = stub.read_text() if stub.exists() else ""
    found = re.findall(r"^from (\.+\w\S*) import (\w+)", lines, re.MULTILINE)
    places = {name: f"{resolve_name(module, package)}.{name}" for module, name in found}
    return dict(sorted(places.items(), key=lambda place: place[0].casefold()))
