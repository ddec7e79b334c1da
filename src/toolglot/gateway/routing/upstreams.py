"""The upstreams of a gateway's configuration, and the simulated ones in this process.

The HTTP client is an extra. It is imported here, so that a gateway without it says so when it starts, and not at the
first request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolglot.gateway.config.settings import Config
from toolglot.simulator.simulated_upstreams import SimulatedUpstreams
from toolglot.upstream import HttpTransport  # noqa: F401 - see above
from toolglot.upstream.pool import UpstreamPool

if TYPE_CHECKING:
    from toolglot.simulator import Simulator


class Upstreams(UpstreamPool):
    """The upstreams of a configuration. Without a simulator, simulated models have one of their own."""

    def __init__(self, config: Config, *, simulator: Simulator | None = None) -> None:
        super().__init__(config.upstreams, SimulatedUpstreams(simulator))
