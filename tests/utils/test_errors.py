"""One line for what went wrong."""

import pytest

from keras_gmlp.utils.errors import why_ended


@pytest.mark.parametrize(
    ("code", "log", "reason"),
    [
        (1, "Traceback:\n  somewhere\nValueError: no such file\n\n", "ValueError: no such file"),
        (3, "\n", "exit code 3"),
        (-9, "halfway\n", "ended by SIGKILL (out of memory?)"),
        (-11, "", "ended by SIGSEGV"),
    ],
)
def test_why_a_process_ended(code, log, reason):
    assert why_ended(code, log) == reason
