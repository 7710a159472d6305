"""The line of long work, on a terminal and elsewhere."""

import sys

from keras_gmlp.utils import progress
from keras_gmlp.utils.progress import ProgressBar, StatusLine


def test_a_state_takes_the_place_of_the_last_one(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "10")
    line = StatusLine()
    line.show("1 of 3 runs, of which none")  # as wide as the terminal takes
    line.show("2 of 3")
    line.say("done")
    assert capsys.readouterr().err == "\r1 of 3 ru" + "\r2 of 3   " + "\r      \rdone\n"


def test_elsewhere_states_are_lines_or_left_out(capsys):
    for log, expected in [(True, "1 of 3\ndone\n"), (False, "done\n")]:
        line = StatusLine(log)
        line.show("1 of 3")
        line.say("done")
        assert capsys.readouterr().err == expected


def test_bar_grows_and_leaves_an_empty_line(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with ProgressBar("reading", 3_000) as bar:
        for done, seconds in ((500, 2.9), (1_000, 3.1), (1_500, 3.2), (3_000, 3.4)):
            now[0] = seconds
            bar.show(done)
    first, last = f"reading [{'#' * 10}{'.' * 20}] 1,000 of 3,000", f"[{'#' * 30}] 3,000 of 3,000"
    shown = capsys.readouterr().err
    assert shown.split("\r") == ["", first, f"reading {last}", " " * len(first), ""]


def test_bar_of_short_work_is_never_shown(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with ProgressBar("reading", 2) as bar:
        bar.show(1)
    assert capsys.readouterr().err == ""
