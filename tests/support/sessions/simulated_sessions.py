"""Sessions against the strict simulator, in this process: every request it refuses is seen.

async with simulated_providers(script) as providers, providers.session("openai/gpt-4.1", tools=[…]) as session: …
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from toolglot.runtime.scheduler.scheduler import RunLimits
from toolglot.runtime.session.events import SessionEvent
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.models import UpstreamModels
from toolglot.runtime.session.session import Session
from toolglot.simulator import PROVIDERS as SIMULATED
from toolglot.simulator import Simulator, upstreams
from toolglot.upstream import AsgiTransport

T = TypeVar("T")

MODELS = {name: (provider.models or ("some-model",))[0] for name, provider in SIMULATED.items()}
"""A model of each provider that the simulator stands for."""

TARGETS = tuple(f"{name}/{model}" for name, model in MODELS.items())
RESPONSES = "openai/gpt-5.5"
"""Takes tools in the protocol of Responses only."""
ALL_TARGETS = (*TARGETS, RESPONSES, "anthropic/claude-sonnet-4-5", "gemini/gemini-3-pro", "kimi/kimi-k3")

QUICK = RunLimits(grace=1.0, timeout=120.0, retry_wait=0.0)
PATIENT = SessionLimits(retry_seconds=5.0)


def without_thinking(text: str) -> str:
    """The text of a reply, without what MiniMax thinks, which it writes into its content."""
    return text.rpartition("</think>")[2].strip()


async def collect_events(session: Session, message: str) -> list[SessionEvent]:
    """All events of one run."""
    return [event async for event in session.stream(message)]


class SimulatedProviders:
    """A simulator, and the sessions that use it."""

    def __init__(self, script: dict[str, Any] | None = None) -> None:
        self.simulator = Simulator(script)
        self.transport = AsgiTransport(self.simulator, grace=0.05)
        found = upstreams(self.simulator).items()
        self.models = UpstreamModels(
            {name: replace(one, transport=self.transport, is_simulated=False) for name, one in found}
        )

    def session(self, model: str = TARGETS[0], **settings: Any) -> Session:
        defaults: dict[str, Any] = {"models": self.models, "run_limits": QUICK, "limits": PATIENT}
        return Session(model=model, **{**defaults, **settings})

    @property
    def refused(self) -> list[str]:
        """What the simulator refused although no fault was injected."""
        return [
            f"{seen.provider} {seen.model}: {seen.status} {seen.rule} {seen.error}"
            for seen in self.simulator.requests
            if seen.status >= 300 and not seen.fault
        ]

    @property
    def called(self) -> list[str]:
        """Provider and model of each request, in order."""
        return [f"{seen.provider}/{seen.model}" for seen in self.simulator.requests]


@contextlib.asynccontextmanager
async def simulated_providers(
    script: dict[str, Any] | None = None, *, seconds: float = 120
) -> AsyncIterator[SimulatedProviders]:
    """A simulator of its own. Whatever hangs fails."""
    providers = SimulatedProviders(script)
    async with asyncio.timeout(seconds):
        try:
            yield providers
        finally:
            await providers.transport.close()


def run_with_providers(scene: Callable[[SimulatedProviders], Awaitable[T]], script: dict[str, Any] | None = None) -> T:
    """Run a scene in an event loop: for what cannot be an `async def` test, such as the examples of hypothesis."""

    async def run() -> T:
        async with simulated_providers(script) as providers:
            return await scene(providers)

    return asyncio.run(run())
