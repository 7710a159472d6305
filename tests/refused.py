"""What every error of ours is: one line that says what is wrong, and where."""

import contextlib

import pytest


@contextlib.contextmanager
def refused(match, start="", error=ValueError):
    """Expects an error of one line that matches, and starts with a path or a name."""
    with pytest.raises(error, match=match) as found:
        yield found
    assert str(found.value).startswith(f"{start}: " if start else "")
    assert len(str(found.value).splitlines()) == 1
