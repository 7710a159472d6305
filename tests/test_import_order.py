"""Imports follow the order in docs/design.md, without a circle."""

import ast
import functools
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "keras_gmlp"


def read_order(text):
    """Returns the rank of each part in the list of docs/design.md; the lowest comes first."""
    (block,) = re.findall(r"```text\n(utils\n.*?)```", text, re.DOTALL)
    lines = block.strip().splitlines()
    return {part.strip(): rank for rank, line in enumerate(lines) for part in line.split(",")}


ORDER = read_order((ROOT / "docs" / "design.md").read_text())


def module_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def part_of(module):
    """Returns `models` for `keras_gmlp.models.presets`."""
    return module.split(".")[1]


def imported_modules(source, known):
    """Yields the project's modules that the source imports, inside functions too."""
    for node in find_imports(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
            continue
        assert not node.level, "a relative import, which this test would not understand"
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            if node.module == "keras_gmlp":  # a name of the root loads lazily from its module
                name = ROOT_NAMES.get(alias.name, name)
            # `from package import module` means the module, `import name` its module.
            yield from [n for n in (name, node.module) if n in known][:1]


@functools.cache
def find_imports(source):
    """Returns the import statements of a source, as syntax trees."""
    nodes = ast.walk(ast.parse(source))
    return [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]


def read_root_names():
    """Returns the module behind each name that `keras_gmlp` loads lazily."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    (table,) = [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    return {
        name: f"keras_gmlp.{module}"
        for module, names in ast.literal_eval(table).items()
        for name in names
    }


ROOT_NAMES = read_root_names()


def read_sources():
    paths = PACKAGE.rglob("*.py")
    # An `__init__.py` re-exports names and belongs to no rank.
    return {module_of(p): p.read_text() for p in paths if p.name != "__init__.py"}


def find_upward_imports(sources, order):
    packages = {module.rpartition(".")[0] for module in sources} - {"keras_gmlp"}
    known = {*sources, *packages}
    return [
        f"{module} imports {other}"
        for module, source in sources.items()
        for other in imported_modules(source, known)
        if order[part_of(other)] > order[part_of(module)]
        or (order[part_of(other)] == order[part_of(module)] and part_of(other) != part_of(module))
    ]


def find_circle(sources):
    """Returns the modules of one import circle, or an empty list."""
    graph = {module: set(imported_modules(text, sources)) for module, text in sources.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_every_part_has_a_rank():
    assert {part_of(module) for module in read_sources()} == set(ORDER)


def test_no_import_goes_up():
    assert find_upward_imports(read_sources(), ORDER) == []


def test_no_import_circle():
    assert find_circle(read_sources()) == []


def test_wrong_import_is_found():
    for module, line in (
        ("keras_gmlp.layers.gmlp", "from keras_gmlp.models import presets"),
        ("keras_gmlp.models.presets", "import keras_gmlp.weights.pretrained"),
        ("keras_gmlp.models.presets", "from keras_gmlp import build"),
    ):
        sources = read_sources()
        sources[module] += f"\n\ndef late():\n    {line}\n"
        (found,) = find_upward_imports(sources, ORDER)
        assert found.startswith(f"{module} imports ")


def test_circle_is_found():
    sources = read_sources()
    sources["keras_gmlp.utils.errors"] += "\nimport keras_gmlp.utils.files\n"
    sources["keras_gmlp.utils.files"] += "\nimport keras_gmlp.utils.errors\n"
    circle = find_circle(sources)
    assert {"keras_gmlp.utils.errors", "keras_gmlp.utils.files"} <= set(circle)
