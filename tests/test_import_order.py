"""Imports follow the order in docs/design.md, without a circle."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
(BLOCK,) = re.findall(
    r"```text\n(utils\n.*?)\n```", (ROOT / "docs/design.md").read_text(), re.DOTALL
)
RANKS = {room: rank for rank, line in enumerate(BLOCK.split("\n")) for room in line.split(", ")}
# An `__init__.py` re-exports names and belongs to no rank.
SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text()
    for path in (ROOT / "keras_gmlp").rglob("*.py")
    if path.name != "__init__.py"
}


def room_of(module):
    """Returns `models` for `keras_gmlp.models.presets`."""
    return module.split(".")[1]


def read_imports(source):
    """Returns our modules that a source imports, inside functions too; a room for its names."""
    found = {"keras_gmlp.__version__"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "a relative import, which this test would not understand"
            for name in (f"{node.module}.{alias.name}" for alias in node.names):
                found.add(name if name in SOURCES or node.module == "keras_gmlp" else node.module)
    return {name for name in found if name.startswith("keras_gmlp.")} - {"keras_gmlp.__version__"}


def test_imports_go_down_without_a_circle():
    assert {room_of(module) for module in SOURCES} == set(RANKS)
    imports = {module: read_imports(source) for module, source in SOURCES.items()}
    upward = [
        f"{module} imports {other}"
        for module, others in imports.items()
        for other in others
        if room_of(other) != room_of(module)
        # The names of the root load from any room.
        and RANKS.get(room_of(other), len(RANKS)) >= RANKS[room_of(module)]
    ]
    assert upward == []
    TopologicalSorter(imports).prepare()  # an error names the modules of a circle
