"""A pytest fixture that is a simulated provider, to test an agent.

pytest_plugins = ["toolglot.simulator.pytest_plugin"]

def test_my_agent(toolglot_simulator):
    toolglot_simulator.script(rules=[{"when": {"results": 0}, "reply": {"calls": [{"name": "search"}]}}])
    run_my_agent(base_url=toolglot_simulator.url("anthropic"))
    assert toolglot_simulator.requests[-1].status == 200
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toolglot.simulator.serving import Server, serve


@pytest.fixture(scope="session")
def toolglot_simulator_server() -> Iterator[Server]:
    """One simulator on a free port of loopback for the whole run."""
    with serve() as server:
        yield server


@pytest.fixture
def toolglot_simulator(toolglot_simulator_server: Server) -> Server:
    """The simulator, reset for this test: no script, no faults, no requests."""
    toolglot_simulator_server.simulator.reset()
    return toolglot_simulator_server
