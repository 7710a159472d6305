"""A short form of `make attack`, and the attack's own judgement of failures."""

import json
import random
from pathlib import Path

import pytest

from attack.__main__ import main, open_to_all
from attack.faults import FAULTS
from attack.kinds import KINDS
from attack.workers import GOOD, Worker

SHORT = [name for name, kind in KINDS.items() if kind.short]


@pytest.fixture(scope="module")
def worker():
    """One process for the short forms of all kinds, which would each import Keras."""
    with open_to_all() as folder, Worker(0, Path(folder, "work")) as worker:
        yield worker


@pytest.mark.parametrize("kind", SHORT)
def test_short_form(kind, worker):
    results = {number: worker.run(kind, number) for number in range(KINDS[kind].short)}
    assert not {n: result for n, result in results.items() if result["outcome"] not in GOOD}


@pytest.mark.attack
def test_full_attack(tmp_path):
    assert main(["--out", str(tmp_path)]) == 0


def find_fault(way):
    """Returns the number of a case that fails in a way."""
    numbers = range(1000)
    return next(n for n in numbers if random.Random(f"faults-0-{n}").choice(list(FAULTS)) == way)


def test_outcomes(tmp_path):
    with Worker(0, tmp_path / "work") as worker:
        outcomes = {way: worker.run("faults", find_fault(way))["outcome"] for way in FAULTS}
    assert outcomes == {way: way for way in FAULTS}


def test_failing_case_is_kept(tmp_path, capsys):
    number = find_fault("traceback")
    assert main(["--case", f"faults:{number}", "--out", str(tmp_path), "--json"]) == 1
    kept = tmp_path / f"faults-{number}"
    assert (kept / "case" / "input").read_text() == "traceback"
    result = json.loads((kept / "result.json").read_text())
    assert "KeyError: 'x'" in result["text"]
    assert f"--case faults:{number}" in result["command"]
    printed = capsys.readouterr()
    assert json.loads(printed.out)["faults"]["outcomes"] == {"traceback": 1}
    assert "1 traceback" in printed.err
