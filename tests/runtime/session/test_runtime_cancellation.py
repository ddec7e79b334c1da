"""Cancelling at every step of a turn, in every mode and in every way, then going on with any provider.

Nothing is refused by the strict simulator afterwards, every call has its one result, nothing runs twice, and no turn
is left in flight. Steps are named, or counted in rounds of the event loop; nothing here waits for a clock.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.sessions.run_modes import MODES
from support.sessions.simulated_sessions import (
    ALL_TARGETS,
    PATIENT,
    QUICK,
    SimulatedProviders,
    run_with_providers,
    without_thinking,
)
from toolglot import History, InputError, Text, ToolCall, ToolResult, Turn
from toolglot.conversation import Conversation, Usage
from toolglot.history.attempts import Attempt
from toolglot.profiles import Overrides
from toolglot.runtime.log.memory_log import MemoryLog
from toolglot.runtime.scheduler.approvals import Allow
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.models import ModelChoice
from toolglot.runtime.session.session import Session
from toolglot.runtime.tools.toolbox import Tool, tool
from toolglot.upstream import HttpRequest, HttpResponse, TimeLimits

T = TypeVar("T")

SMALL: Final = Overrides(
    "".join(
        f'[profiles.{name}.rules]\n"context.window" = 600\n'
        for name in ("anthropic", "openai", "openai_responses", "gemini", "mistral", "ollama", "cohere")
    )
)
"""Context windows that are full soon."""
STEPS: Final = (
    *("before asking", "connecting", "first byte", "mid answer", "late in the answer", "at the end of the answer"),
    *("before commit", "after commit", "approval", "first tool", "last tool", "recording a start", "recording an end"),
    *("before publish", "after publish", "landing", "next connecting", "next first byte", "next commit", "compaction"),
)
WAYS: Final = ("cancel", "listener", "close")
COUNTS: Final = (1, 2, 6)


class Trap:
    """Springs when a step is reached: whatever it was set for happens while that step is under way."""

    def __init__(self, step: str) -> None:
        self.step = step
        self.sprung = asyncio.Event()

    async def at(self, step: str) -> None:
        if step == self.step and not self.sprung.is_set():
            self.sprung.set()
            for _ in range(5):
                await asyncio.sleep(0)


class Traps(MemoryLog):
    """A write boundary with a trap at every write."""

    def __init__(self, trap: Trap, history: History | None = None) -> None:
        super().__init__(history)
        self.trap = trap
        self.commits = 0

    async def add_turn(self, turn: Turn) -> Turn:
        await self.trap.at("before asking")
        return await super().add_turn(turn)

    async def commit(self, attempt: Attempt, *, usage: Usage | None = None, cost: Decimal | None = None) -> Turn:
        await self.trap.at("next commit" if self.commits else "before commit")
        self.commits += 1
        turn = await super().commit(attempt, usage=usage, cost=cost)
        await self.trap.at("after commit")
        return turn

    async def publish(self, results: Sequence[ToolResult]) -> Turn | None:
        await self.trap.at("before publish")
        turn = await super().publish(results)
        await self.trap.at("after publish")
        return turn

    async def end_turn(self, reason: str = "", known: Sequence[ToolResult] = ()) -> None:
        await super().end_turn(reason, known)
        await self.trap.at("landing")

    async def record_start(self, call: ToolCall, arguments: dict[str, Any]) -> None:
        await super().record_start(call, arguments)
        await self.trap.at("recording a start")

    async def record_result(self, result: ToolResult) -> None:
        await super().record_result(result)
        await self.trap.at("recording an end")


class TrappedWay:
    """A transport with a trap at every piece."""

    def __init__(self, providers: SimulatedProviders, trap: Trap) -> None:
        self._stage = providers
        self._trap = trap
        self._calls = 0

    async def send(self, ask: HttpRequest, limits: TimeLimits) -> HttpResponse:
        before = "next " if self._calls else ""
        self._calls += 1
        await self._trap.at(f"{before}connecting")
        return TrappedAnswer(await self._stage.transport.send(ask, limits), self._trap, before)

    async def close(self) -> None:
        """The providers closes its own."""


class TrappedAnswer:
    def __init__(self, answer: HttpResponse, trap: Trap, before: str) -> None:
        self._answer = answer
        self._trap = trap
        self._before = before
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers

    async def pieces(self) -> AsyncIterator[bytes]:
        position = 0
        async for piece in self._answer.pieces():
            names = {0: "first byte", 3: "mid answer", 6: "late in the answer"}
            await self._trap.at(self._before + names.get(position, ""))
            yield piece
            position += 1
        await self._trap.at(self._before + "at the end of the answer")

    async def whole(self, most: int) -> bytes:
        return await self._answer.whole(most)

    async def close(self) -> None:
        await self._answer.close()


class TrappedModels:
    def __init__(self, providers: SimulatedProviders, trap: Trap) -> None:
        self._stage = providers
        self._way = TrappedWay(providers, trap)

    def find(self, name: str) -> ModelChoice:
        found = self._stage.models.find(name)
        return ModelChoice(found.name, found.model, dataclasses.replace(found.upstream, transport=self._way))

    async def close(self) -> None:
        """The providers closes its own."""


def tools_of(count: int, trap: Trap, ran: list[str]) -> list[Tool]:
    """So many tools, all of them run at once."""

    def made(number: int) -> Callable[..., Any]:
        async def run(n: int) -> str:
            ran.append(f"t{number}")
            if (number == 0 and trap.step == "first tool") or (number == count - 1 and trap.step == "last tool"):
                await trap.at(trap.step)
                await asyncio.sleep(3600)  # only its scheduler can end it
            await asyncio.sleep(0)
            return f"result {n}"

        return run

    return [
        tool(made(number), name=f"t{number}", description="A tool.", approval=number == 0) for number in range(count)
    ]


def script_of(count: int) -> dict[str, Any]:
    calls = [{"name": f"t{number}", "arguments": {"n": number}} for number in range(count)]
    reply = {"text": "I look at all of them, one by one.", "calls": calls}
    return {"rules": [{"when": {"turn": 1, "results": 0}, "reply": reply}, {"reply": {"text": "Done."}}], "bytes": 48}


def assert_whole(history: History) -> None:
    """Nothing is in flight, and every call has its one result, after it."""
    assert history.in_flight is None
    assert history.ledger.pending == ()
    called = [call.id for turn in history.turns for call in turn.calls]
    answered = [result.call_id for turn in history.turns for result in turn.results]
    assert sorted(called) == sorted(answered)
    assert not history.ledger.entries, "no result was set aside"


def earlier() -> Conversation:
    """Something that can be compressed."""
    turns = [Turn("user" if n % 2 == 0 else "assistant", (Text(f"word {n} " * 40),)) for n in range(8)]
    return Conversation(tuple(turns))


async def cancelled(
    providers: SimulatedProviders,
    step: str,
    count: int,
    mode_name: str,
    way: str,
    first: str,
    *,
    rounds: int | None = None,
) -> tuple[Session, list[str], bool]:
    """A session that was cancelled at a step; what its tools ran; whether the step was reached."""
    trap, ran = Trap(step), list[str]()
    compresses = step == "compaction"
    history = History(earlier(), provider="openai") if compresses else None
    log = Traps(trap, history)

    async def approve(*_: object) -> Allow:
        await trap.at("approval")
        return Allow()

    async def summarise(_: tuple[Turn, ...]) -> str:
        await trap.at("compaction")
        return "Nothing of note."

    session = Session(
        model=first,
        tools=tools_of(count, trap, ran),
        models=TrappedModels(providers, trap),
        run_limits=QUICK,
        limits=SessionLimits(retry_seconds=0.0, keep_turns=2),
        approve=approve,
        log=log,
        summarise=summarise,
        overrides=SMALL if compresses else None,
    )
    mode = MODES[mode_name]
    async with session:
        runs = mode.of(session, log)
        running = asyncio.ensure_future(mode.run(runs, "Go."))

        async def spring() -> None:
            if rounds is None:
                await trap.sprung.wait()
            else:
                for _ in range(rounds):
                    await asyncio.sleep(0)
            if way == "cancel":
                await session.cancel("Stop it.")
            elif way == "listener":
                running.cancel()
            else:
                await session.close()

        springing = asyncio.ensure_future(spring())
        try:
            await running
        except asyncio.CancelledError:
            assert way == "listener"
        except InputError:
            assert (way, rounds, len(runs.history)) == ("close", 0, 0), "it was closed before it began"
        is_reached = trap.sprung.is_set() or rounds is not None
        if is_reached:
            await springing
        else:
            springing.cancel()
        assert not runs.is_running
        assert_whole(runs.history)
    return runs, ran, is_reached


async def goes_on(providers: SimulatedProviders, before: Session, target: str) -> None:
    """Whatever became of it, any provider takes the conversation on."""
    async with providers.session(target, tools=tuple(before.tools), history=before.history, limits=PATIENT) as session:
        answer = await session.run("And now?")
        assert (answer.stop, without_thinking(answer.text)) == ("stop", "Done."), answer.failure
        assert_whole(session.history)
    assert providers.refused == []


def check(step: str, count: int, mode: str, way: str, first: str, target: str, rounds: int | None = None) -> bool:
    async def scene(providers: SimulatedProviders) -> bool:
        runs, ran, is_reached = await cancelled(providers, step, count, mode, way, first, rounds=rounds)
        assert len(ran) == len(set(ran)), "nothing runs twice"
        for found in runs.history.ledger:
            known = runs.scheduler.known_result(found.id)
            assert known is not None, "every call has its result from the scheduler"
            assert found.result is not None
            assert known.text == found.result.text
            assert found.name in ran or found.status == "cancelled"
        await goes_on(providers, runs, target)
        return is_reached

    return run_with_providers(scene, script_of(count))


FIRSTS: Final = (
    *("anthropic/claude-opus-5", "openai/gpt-4.1", "gemini/gemini-2.5-pro", "openai/gpt-5.5"),
    *("mistral/mistral-large-latest", "ollama/qwen3", "cohere/command-a-03-2025"),
)
_firsts, _targets = itertools.cycle(FIRSTS), itertools.cycle(ALL_TARGETS)
MATRIX: Final = [
    (step, count, mode, way, next(_firsts), next(_targets))
    for step in STEPS
    for count in COUNTS
    for mode in MODES
    for way in WAYS
]
"""Every step with every number of calls, in every mode and way; who answers first and who goes on takes turns."""


@pytest.mark.law
@pytest.mark.parametrize("step", STEPS)
def test_cancelled_at_a_step_in_any_mode_any_provider_goes_on(step: str) -> None:
    """In a soak, every provider after every one of them."""
    every = ALL_TARGETS if settings.get_current_profile_name() == "soak" else ()
    for at, count, mode, way, first, target in MATRIX:
        if at == step:
            for after in every or (target,):
                assert check(step, count, mode, way, first, after), "the step is one that every run comes to"


@pytest.mark.law
@given(data=st.data())
def test_cancelled_in_any_round_of_the_event_loop_any_provider_goes_on(data: st.DataObject) -> None:
    count = data.draw(st.sampled_from(COUNTS), "calls")
    mode = data.draw(st.sampled_from(sorted(MODES)), "mode")
    way = data.draw(st.sampled_from(WAYS), "way")
    first = data.draw(st.sampled_from(FIRSTS), "first")
    target = data.draw(st.sampled_from(ALL_TARGETS), "target")
    rounds = data.draw(st.integers(0, 1000 if first == "openai/gpt-5.5" else 310), "rounds")
    check("", count, mode, way, first, target, rounds)


@pytest.mark.parametrize("count", COUNTS)
def test_leaving_a_stream_early_cancels_whatever_the_last_event_was(count: int) -> None:
    """After each number of events."""

    async def left(providers: SimulatedProviders, events_read: int) -> bool:
        ran: list[str] = []
        trap = Trap("")

        async def approve(*_: object) -> Allow:
            return Allow()

        async with providers.session(
            FIRSTS[events_read % len(FIRSTS)], tools=tools_of(count, trap, ran), approve=approve
        ) as session:
            seen = 0
            async for _ in session.stream("Go."):
                seen += 1
                if seen > events_read:
                    break
            answer = await session.run("And now?")
            assert without_thinking(answer.text) == "Done."
            assert_whole(session.history)
            assert len(ran) == len(set(ran))
        assert providers.refused == []
        return seen > events_read

    events_read = 0
    while run_with_providers(lambda providers, n=events_read: left(providers, n), script_of(count)):  # type: ignore[misc]
        events_read += 1
    assert events_read > 10
