"""The notebook of the quick start runs, and is stored without what its cells print."""

import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).resolve().parent.parent / "docs" / "guides" / "quick-start.ipynb"


@pytest.mark.slow
def test_quick_start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = [c for c in json.loads(NOTEBOOK.read_text())["cells"] if c["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)
    names = {}
    for cell in cells:
        exec("".join(cell["source"]), names)
    assert names["metrics"]["test_accuracy"] > 0.9
    exported, trained = (names[name](names["picture"]) for name in ("lite", "classifier"))
    assert exported[0][0] == trained[0][0]
