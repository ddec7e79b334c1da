"""Fixtures of tests of the gateway: simulated providers, and a gateway in front of them, one of each per module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.gateway.served_gateway import Served, gateway
from toolglot.simulator import serve
from toolglot.simulator.serving import Server


@pytest.fixture(scope="module")
def simulated(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The providers. They follow the `SCRIPT` of the module, if it has one."""
    with serve(getattr(request.module, "SCRIPT", {})) as server:
        yield server


@pytest.fixture(scope="module")
def served(simulated: Server) -> Iterator[Served]:
    with gateway(simulated) as running:
        yield running
