"""A browser for the tests of the inspector's page, one for each worker of the run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.inspector.browser import PageBrowser, chromium


@pytest.fixture(scope="session")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageBrowser]:
    with chromium(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def browser(_browser: PageBrowser) -> Iterator[PageBrowser]:
    """The browser, in a window of the usual size. Whatever it complains of fails the test."""
    _browser.show(1280, 800)
    _browser.problems()
    yield _browser
    assert _browser.problems() == []
    _browser.open("about:blank")
