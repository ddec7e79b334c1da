"""The five scenarios of seed 004, end to end: sessions against the strict simulator, over every provider it stands for.

Manual switch after a tool turn; round-robin over providers each turn; failover to another one; cancel, then switch;
compress, then switch. No request is refused that was not ordered to be, and no message is lost.
"""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

from support.sessions.simulated_sessions import (
    ALL_TARGETS,
    RESPONSES,
    TARGETS,
    SimulatedProviders,
    collect_events,
    run_with_providers,
    simulated_providers,
)
from toolglot.profiles import Overrides
from toolglot.runtime.session.events import (
    AttemptDiscarded,
    HistoryCompressed,
    ModelSwitched,
    RequestStarted,
)
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.session import Session
from toolglot.runtime.tools.toolbox import tool

SOURCES = ("anthropic/claude-opus-5", "openai/gpt-4.1", RESPONSES, "gemini/gemini-2.5-pro", "kimi/kimi-k2.5")
SMALL = Overrides(
    "".join(
        f'[profiles.{name}.rules]\n"context.window" = 3000\n'
        for name in ("anthropic", "openai", "openai_responses", "gemini", "kimi")
    )
)
"""Context windows that are full soon."""
every_target = pytest.mark.parametrize("target", ALL_TARGETS)
every_source = pytest.mark.parametrize("source", SOURCES)
every_pair = pytest.mark.parametrize(
    ("source", "target"),
    [(SOURCES[(index + step) % len(SOURCES)], target) for step in (0, 2) for index, target in enumerate(ALL_TARGETS)],
)


@tool(side_effects=False)
async def look_up(n: int) -> str:
    """Look something up.

    Args:
        n: Which one.
    """
    return f"found {n}."


def calling(*numbers: int, **when: Any) -> dict[str, Any]:
    calls = [{"name": "look_up", "arguments": {"n": n}} for n in numbers]
    return {"when": when, "reply": {"text": "I look.", "calls": calls}}


def results_of(session: Session) -> list[str]:
    return [found.result.text if found.result is not None else "?" for found in session.history.ledger]


@every_pair
def test_scenario_a_manual_switch_after_a_tool_turn(source: str, target: str) -> None:
    async def scene(providers: SimulatedProviders) -> None:
        async with providers.session(source, tools=[look_up], system="Be brief.") as session:
            first = await session.run("Look.")
            session.switch(target)
            second = await session.run("And again.")
            session.switch(source)
            third = await session.run("Thank you.")
            assert [first.stop, second.stop, third.stop] == ["stop"] * 3
            assert second.model == target
            assert results_of(session) == ["found 0.", "found 1.", "found 2."]
            for number in range(3):
                assert f"found {number}." in str(providers.simulator.requests[-1].body)
        assert providers.refused == []

    welcome = {"when": {"turn": 3}, "reply": {"text": "You are welcome."}}
    run_with_providers(scene, {"rules": [calling(0, 1, turn=1, results=0), calling(2, turn=2, results=0), welcome]})


async def test_scenario_round_robin_over_every_provider_each_turn() -> None:
    async with simulated_providers({"rules": [calling(4, results=0)]}, seconds=60) as providers:
        async with providers.session(tools=[look_up]) as session:
            for target in (*ALL_TARGETS, *reversed(ALL_TARGETS)):
                session.switch(target)
                answer = await session.run("Look.")
                assert answer.stop == "stop", (target, answer.failure)
                assert answer.model == target
            assert results_of(session) == ["found 4."] * 2 * len(ALL_TARGETS)
        assert providers.refused == []


async def test_scenario_round_robin_within_a_run_changes_at_the_next_turn_only() -> None:
    """A switch that comes while a turn is in flight waits until its results are there."""
    async with simulated_providers() as providers:
        order = iter(TARGETS[1:])

        async def turn_over(n: int) -> str:
            session.switch(next(order))
            return f"found {n}."

        rules = [calling(n, results=n) for n in range(8)]
        for rule in rules:
            rule["reply"]["calls"][0]["name"] = "turn_over"
        providers.simulator.use({"rules": rules})
        async with providers.session(TARGETS[0], tools=[turn_over]) as session:
            answer = await session.run("Look.")
            assert answer.stop == "stop"
            assert providers.called == list(TARGETS[:9])
            entries = [entry for entry in session.report if entry.action == "deferred"]
            assert len(entries) == 8, "each of them waited"
        assert providers.refused == []


@every_target
@pytest.mark.parametrize("fault", ["429", "503", "reset,after=2", "error_event,after=3", "timeout"])
async def test_scenario_failover_restarts_from_what_was_committed(target: str, fault: str) -> None:
    async with simulated_providers(
        {"rules": [calling(0, 1, turn=1, results=0), calling(2, turn=2, results=0)], "bytes": 40}
    ) as providers:
        source = SOURCES[0] if not target.startswith("anthropic") else SOURCES[1]
        limits = SessionLimits(retries=0, retry_seconds=0.0)
        async with providers.session(source, tools=[look_up], fallback=[target], limits=limits) as session:
            first = await session.run("Look.")
            assert first.model == source
            providers.simulator.fault(fault if fault != "timeout" else "504")
            events = await collect_events(session, "And again.")
            answer = events[-1].result  # type: ignore[union-attr]
            assert (answer.stop, answer.model) == ("stop", target)
            assert session.model == target, "it stays there: the other one is down"
            assert [(event.before, event.after) for event in events if isinstance(event, ModelSwitched)] == [
                (source, target)
            ]
            models = [event.model for event in events if isinstance(event, RequestStarted)]
            assert models[:2] == [source, target]
            dropped = [event for event in events if isinstance(event, AttemptDiscarded)]
            assert all(event.shown and event.model == source for event in dropped)
            assert bool(dropped) <= (fault in ("reset,after=2", "error_event,after=3"))
            assert results_of(session) == ["found 0.", "found 1.", "found 2."], "calls are run once"
        assert providers.refused == []


@every_target
@pytest.mark.parametrize("count", [1, 2, 6])
async def test_scenario_cancel_then_switch(target: str, count: int) -> None:
    async with simulated_providers() as providers:
        is_running = anyio.Event()

        async def look_up(n: int) -> str:
            if n == 0:
                return "found 0."
            is_running.set()
            await anyio.sleep_forever()
            return "never"

        numbers = (1,) if count == 1 else tuple(range(count))
        providers.simulator.use({"rules": [calling(*numbers, turn=1, results=0), {"reply": {"text": "Fine."}}]})
        source = SOURCES[count % len(SOURCES)]
        async with providers.session(source, tools=[tool(look_up, description="Looks.")]) as session:
            running = asyncio.ensure_future(session.run("Look."))
            await is_running.wait()
            await session.cancel("I have seen enough.")
            assert (await running).stop == "cancelled"
            states = [found.status for found in session.history.ledger]
            assert states == (["cancelled"] if count == 1 else ["complete", *["cancelled"] * (count - 1)])
            session.switch(target)
            answer = await session.run("What do you know?")
            assert (answer.stop, answer.model) == ("stop", target)
            sent = str(providers.simulator.requests[-1].body)
            assert "I have seen enough." in sent
            assert count == 1 or "found 0." in sent, "what was found is not lost"
        assert providers.refused == []


@every_pair
def test_scenario_compress_then_switch(source: str, target: str) -> None:
    async def scene(providers: SimulatedProviders) -> None:
        limits = SessionLimits(keep_turns=2)
        async with providers.session(source, tools=[look_up], limits=limits) as session:
            for _ in range(3):
                await session.run("Look.")
            before = {found.id: found.status for found in session.history.ledger}
            assert await session.compress() > 2
            after = {found.id: found.status for found in session.history.ledger}
            assert after == before, "the ledger is kept"
            session.switch(target)
            answer = await session.run("What do you know?")
            assert (answer.stop, answer.model) == ("stop", target)
            assert "[Summary of" in str(providers.simulator.requests[-1].body)
            assert "what I remember" in str(providers.simulator.requests[-1].body)
        assert providers.refused == []

    rules: list[dict[str, Any]] = [
        {"when": {"contains": "Write the summary"}, "reply": {"text": "what I remember"}},
        {"when": {"contains": "What do you know"}, "reply": {"text": "Fine."}},
        calling(0, 1, results=0),
    ]
    run_with_providers(scene, {"rules": rules})


@every_source
async def test_scenario_compression_comes_by_itself_and_another_provider_goes_on(source: str) -> None:
    async with simulated_providers() as providers:
        rules: list[dict[str, Any]] = [
            {"when": {"contains": "Write the summary"}, "reply": {"text": "what I remember"}},
            {"reply": {"text": "word " * 200}},
        ]
        providers.simulator.use({"rules": rules})
        limits = SessionLimits(keep_turns=2)
        async with providers.session(source, limits=limits, overrides=SMALL) as session:
            for number in range(3):
                await session.run(f"Number {number}. " + "word " * 300)
            assert len(session.history) == 6, "there was room until now"
            events = await collect_events(session, "Go on. " + "word " * 600)
            assert [event.turns for event in events if isinstance(event, HistoryCompressed)] != []
            assert session.history.turns[0].text.startswith("[Summary of")
            session.switch(TARGETS[2])
            assert (await session.run("And now?")).stop == "stop"
        assert providers.refused == []
