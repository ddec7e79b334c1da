"""Simulated providers as upstreams, for sessions, the gateway and the command line: no server and no key is needed.

models = UpstreamModels(upstreams())
async with Session(model="anthropic/claude-opus-5", models=models) as session: ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolglot.upstream import PROVIDERS as REAL_PROVIDERS
from toolglot.upstream import AsgiTransport, Upstream
from toolglot.upstream.routing.model_names import SimulatedNames

if TYPE_CHECKING:
    from toolglot.simulator.app import Simulator

PREFACE: Final = "[simulated by toolglot, not a real model] "
"""How replies of the default script begin."""
_ROOT: Final = "http://simulator"
_KEY: Final = "simulated-0123456789"
_SIGNED: Final = "aws"
"""Authentication that needs more than a key."""
_ALIASES: Final = {"azure": "openai", "openai_responses": "openai", "vertex": "gemini"}
"""Providers that the simulator serves under the name of another."""


def _models() -> dict[str, tuple[str, ...]]:
    from toolglot.simulator.providers import PROVIDERS  # noqa: PLC0415 - few need it

    return {name: provider.models for name, provider in PROVIDERS.items()}


SIMULATED_NAMES: Final = SimulatedNames(_models, _ALIASES)
"""The models that the simulator serves, for routing."""


def marked_simulator() -> Simulator:
    """A simulator without a script, for agents that really run tools: its replies say that they are simulated, and it
    calls no tool that the prompt is not about."""
    from toolglot.simulator.app import Simulator  # noqa: PLC0415 - few need it

    return Simulator({"calls_unasked": False, "preface": PREFACE})


def upstreams(simulator: Simulator | None = None) -> dict[str, Upstream]:
    """All simulated providers as upstreams, by name. Without a simulator, they share a new one without a script."""
    from toolglot.simulator.app import Simulator  # noqa: PLC0415 - as above
    from toolglot.simulator.providers import PROVIDERS  # noqa: PLC0415 - as above

    make = SimulatedUpstreams(simulator if simulator is not None else Simulator())
    return {name: make(name) for name in PROVIDERS if name in REAL_PROVIDERS}


class SimulatedUpstreams:
    """Makes the upstreams of simulated providers. Replies are marked as simulated, unless a simulator is passed."""

    def __init__(self, simulator: Simulator | None = None) -> None:
        self._simulator = simulator
        self._transport: AsgiTransport | None = None

    def __call__(self, name: str) -> Upstream:
        from toolglot.simulator.providers import url_of  # noqa: PLC0415 - few need it

        if self._transport is None or self._transport.is_closed:
            self._simulator = self._simulator or marked_simulator()
            self._transport = AsgiTransport(self._simulator)
        provider = REAL_PROVIDERS.get(name)
        auth = provider.auth if provider is not None else "bearer"
        return Upstream(
            name=name,
            target=provider.target if provider is not None else name,
            url=url_of(_ROOT, name),
            transport=self._transport,
            auth="bearer" if auth == _SIGNED else auth,
            key=_KEY,
            also=provider.also if provider is not None else (),
            is_simulated=True,
        )
