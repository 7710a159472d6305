"""A short form of `make attack`, and what it calls a failure."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from attack import cases as attack

pytestmark = pytest.mark.filterwarnings("ignore::keras_gmlp.utils.errors.DataWarning")


@pytest.mark.parametrize(("kind", "count"), [("images", 200), ("models", 30), ("tables", 100)])
def test_short_form(kind, count, tmp_path):
    assert attack.run_part(kind, 0, range(count), tmp_path) == []


FAULTS = [None, ValueError("one line"), ValueError("two\nlines"), KeyError("x"), AssertionError()]


def test_failing_cases_are_kept(tmp_path, monkeypatch, capsys):
    def make(rng, folder):
        (folder / "input").write_text("content")
        return FAULTS[int(folder.name.removeprefix("images-"))]

    def check(fault):
        if fault is not None:
            raise fault

    monkeypatch.setitem(attack.KINDS, "images", (make, check, 5, 20))
    monkeypatch.setattr(attack, "ProcessPoolExecutor", lambda *_: ThreadPoolExecutor(1))
    assert attack.main(["images", "--out", str(tmp_path)]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images-2", "images-3", "images-4"]
    assert (tmp_path / "images-2" / "input").read_text() == "content"
    assert "KeyError: 'x'" in (tmp_path / "images-3" / "failure.txt").read_text()
    assert "5 cases, 3 failed" in capsys.readouterr().out
    assert attack.main(["images", "--cases", "2", "--out", str(tmp_path)]) == 0
