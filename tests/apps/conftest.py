import pytest
from web_page import open_browser


@pytest.fixture(scope="module")
def browser():
    with open_browser() as browser:
        yield browser
