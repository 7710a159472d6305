import pytest
from web_page import open_browser, open_page, serve_models


@pytest.fixture(scope="session")
def browser():
    """One browser for all files, because it takes a second to start and to end."""
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(folder):
    """The page with the models of the test file's `folder`."""
    with serve_models(folder) as port:
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture(scope="module")
def opened(browser, address):
    """One page for most tests of a file, because the runtime takes seconds to start."""
    with open_page(browser, address) as page:
        yield page
