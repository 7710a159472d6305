"""The line of long work, on a terminal and elsewhere."""

import sys

from keras_gmlp.utils.progress import StatusLine


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
