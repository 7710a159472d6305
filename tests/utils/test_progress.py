"""The line of long work, on a terminal and elsewhere."""

import sys
import time

import pytest

from keras_gmlp.utils import progress
from keras_gmlp.utils.progress import ProgressBar, map_in_threads


def test_bar_of_long_work_grows_and_leaves_an_empty_line(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    ProgressBar().write("1 of 3 runs")  # elsewhere than on a terminal it is left out
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with ProgressBar("reading", 3_000) as bar:
        bar.show(500)  # too early
        now[0] = 3.1
        bar.show(1_000)
    line = f"reading [{'#' * 10}{'.' * 20}] 1,000 of 3,000"
    assert capsys.readouterr().err.split("\r") == ["", line, " " * len(line), ""]


def test_results_of_threads_come_in_order_and_an_error_ends_the_work():
    def double(item):
        time.sleep(0.02 if item == 0 else 0)
        return 2 * item

    assert list(map_in_threads(double, range(5), "doubling")) == [0, 2, 4, 6, 8]
    begun = []

    def fail(item):
        begun.append(item)
        time.sleep(0.01)
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        list(map_in_threads(fail, range(1000), "failing"))
    assert len(begun) < 500
