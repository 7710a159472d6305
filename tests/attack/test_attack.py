"""A short form of `make attack`."""

import pytest

from attack import cases as attack

pytestmark = pytest.mark.filterwarnings("ignore::keras_gmlp.utils.errors.DataWarning")


@pytest.mark.parametrize(("kind", "count"), [("images", 200), ("models", 30)])
def test_short_form(kind, count, tmp_path):
    assert attack.run_part(kind, 0, range(count), tmp_path) == []
