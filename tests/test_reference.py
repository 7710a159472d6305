"""The API reference lists every public name, and each has a complete docstring and types."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs" / "api"))
import list_names  # noqa: E402

sys.path.pop(0)
ENTRIES = list_names.list_entries()


def test_each_door_is_on_one_page():
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    assert sorted(list_names.LINE.findall(pages)) == sorted(ENTRIES)
    assert pages.count(":::") == len(ENTRIES)


@pytest.mark.parametrize("door", ENTRIES)
def test_the_lists_are_read_as_python_reads_them(door):
    module = importlib.import_module(door)
    exported = {name for name in module.__all__ if getattr(module, name) is not None}
    rooms = {path.stem for path in (ROOT / "keras_gmlp").iterdir()} if door == "keras_gmlp" else {}
    # PRESETS of the texts has another name where it is defined.
    exported -= {"PRESETS", *rooms}
    assert exported == set(list_names.list_names(door)) - {"PRESETS"}


def find_gaps(item):
    """Returns what the docstring and types of a function, or of a class and its bases, lack."""
    parts = [item] if inspect.isfunction(item) else item.__mro__
    own = [part for part in parts if part.__module__.startswith("keras_gmlp")]
    text = "\n".join(inspect.getdoc(part) or "" for part in own)
    named = " ".join(re.findall(r"^    (\S[^:]*):", text, re.MULTILINE))
    gaps = []
    if inspect.isfunction(item) or {"__init__", "__new__"} & vars(item).keys():
        usual = set() if inspect.isfunction(item) else {"name", "dtype"}  # as everywhere in Keras
        gaps = [
            parameter.name
            for parameter in inspect.signature(item).parameters.values()
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            and (
                parameter.annotation is parameter.empty
                or (parameter.name not in usual and not re.search(rf"\b{parameter.name}\b", named))
            )
        ]
    if (
        inspect.isfunction(item)
        and inspect.signature(item).return_annotation is inspect.Signature.empty
    ):
        gaps.append("return")
    if inspect.isfunction(item) and not re.search("Returns|Yields", text):
        gaps += re.findall(r"^ +(return) \S", inspect.getsource(item), re.MULTILINE)
    return gaps


def test_docstrings_and_types_are_complete():
    places = [place for names in ENTRIES.values() for place in names.values()]
    gaps = {}
    for place in places:
        module, _, name = place.rpartition(".")
        item = getattr(importlib.import_module(module), name)
        if callable(item):
            gaps[place] = find_gaps(item)
    assert len(gaps) > 100
    assert {place: missing for place, missing in gaps.items() if missing} == {}
