"""The stand-ins as upstreams: for sessions and whoever else asks providers, without a server and without a key.

models = UpstreamModels(upstreams())
async with Session(model="anthropic/claude-opus-5", models=models) as session: ...
"""

from __future__ import annotations

from typing import Final

from toolglot.simulator.app import Simulator
from toolglot.simulator.providers import PROVIDERS, url_of
from toolglot.upstream import PROVIDERS as REAL
from toolglot.upstream import AsgiTransport, Upstream

PREFACE: Final = "[simulated by toolglot, not a real model] "
"""What a simulated model says first, where nobody scripted it."""
_ROOT: Final = "http://simulator"
_KEY: Final = "simulated-0123456789"
_SIGNED: Final = "aws"
"""A way of showing who one is that needs more than a key."""


def marked_simulator() -> Simulator:
    """A simulator for people who did not script one: its answers say what they are, and it calls no tool that was not
    spoken of, since agents run them."""
    return Simulator({"calls_unasked": False, "preface": PREFACE})


def upstreams(simulator: Simulator | None = None) -> dict[str, Upstream]:
    """All stand-ins, by the names of their providers. Without a simulator, one of their own that follows no script."""
    transport = AsgiTransport(simulator if simulator is not None else Simulator())
    return {
        name: Upstream(
            name=name,
            target=REAL[name].target,
            url=url_of(_ROOT, name),
            transport=transport,
            auth="bearer" if REAL[name].auth == _SIGNED else REAL[name].auth,
            key=_KEY,
            also=REAL[name].also,
            is_simulated=True,
        )
        for name in PROVIDERS
        if name in REAL
    }
