"""What every error of ours is: one line that says what is wrong, and where."""

import contextlib

import pytest


@contextlib.contextmanager
def refused(match, start=""):
    """Expects an error of one line that matches, and starts with a path or a name."""
    with pytest.raises(ValueError, match=match) as error:
        yield error
    assert str(error.value).startswith(f"{start}: " if start else "")
    assert len(str(error.value).splitlines()) == 1
