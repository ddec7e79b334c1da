"""The fixture `llama_server`: the test engine, one a test process, for tests that call a real server.

This file is a plugin of pytest: a conftest.py at the root of the tests that names it in `pytest_plugins` gives the
fixture to all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from llama.server import LlamaServer, missing, serving


@pytest.fixture(scope="session")
def llama_server() -> Iterator[LlamaServer]:
    if absent := missing():
        pytest.skip(f"the engine needs {', '.join(absent)}: pip install '.[dev]'")
    with serving() as server:
        yield server
