"""Writes the pages of the API reference from the export lists of the package, for MkDocs.

A line `::: all of keras_gmlp.data` in a page becomes one entry for each name that
`keras_gmlp.data` exports and no earlier door does. The lists are read from the sources, since
the names load on first use and some load Keras.
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
    """Returns where each name that a module exports is defined, a dict in alphabetical order."""
    tree, places = ast.parse(find_source(door).read_text()), {}
    base = door if find_source(door).stem == "__init__" else door.rpartition(".")[0]
    lazy = [node for node in ast.walk(tree) if isinstance(node, ast.Dict) and _is_table(node)]
    for table in map(ast.literal_eval, lazy):
        for source, names in table.items():
            places |= {name: _follow(f"{base}.{source}", name) for name in names}
    if not lazy and "__all__" in find_source(door).read_text():
        for node in tree.body:
            if isinstance(node, ast.ImportFrom):
                places |= {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return dict(sorted(places.items(), key=lambda place: place[0].casefold()))


def find_source(module):
    """Returns the file of a module."""
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _is_table(node):
    """Returns whether a dict has lists of names by module, as `lazy_loader.attach` takes it."""
    return bool(node.values) and all(isinstance(value, ast.List) for value in node.values)


def _follow(module, name):
    """Returns where a name is defined that a module defines, imports or exports."""
    if find_source(module).stem == "__init__":
        return list_names(module)[name]
    for node in ast.parse(find_source(module).read_text()).body:
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return _follow(node.module, name)
    return f"{module}.{name}"
