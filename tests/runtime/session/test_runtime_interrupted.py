"""Answers that are cancelled half-way: their text stays in the history, marked, and any provider goes on from it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.sessions.simulated_sessions import (
    ALL_TARGETS,
    SimulatedProviders,
    run_with_providers,
    simulated_providers,
    without_thinking,
)
from toolglot import History, Text, Turn, request_for
from toolglot.runtime.log.session_log import SessionLog
from toolglot.runtime.session.events import (
    AttemptDiscarded,
    CallChanged,
    CallReceived,
    RunFinished,
    RunResult,
    SessionEvent,
    TextReceived,
    TurnCommitted,
)
from toolglot.runtime.session.session import Session
from toolglot.runtime.tools.toolbox import tool
from toolglot.store import open_store

CLAUDE = "anthropic/claude-opus-5"
WORDS = "One word after the other, and many of them. " * 12


def script(**reply: Any) -> dict[str, Any]:
    return {
        "rules": [
            {"when": {"contains": "And now?"}, "reply": {"text": "Done."}},
            {"reply": {"text": WORDS, **reply}},
        ],
        "bytes": 64,
    }


async def interrupted(
    session: Session, *, after: int = 1, kind: type[SessionEvent] = TextReceived
) -> tuple[list[SessionEvent], RunResult]:
    """Cancel after so many events of a kind; all events, and the answer."""
    events: list[SessionEvent] = []
    cancels: list[asyncio.Task[None]] = []
    async for event in session.stream("Go."):
        events.append(event)
        if sum(isinstance(event, kind) for event in events) >= after and not cancels:
            cancels.append(asyncio.ensure_future(session.cancel("Stop it.")))
    await cancels[0]
    assert isinstance(events[-1], RunFinished)
    return events, events[-1].result


def shown_text(events: list[SessionEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextReceived))


@pytest.mark.parametrize("target", ALL_TARGETS)
async def test_an_answer_that_is_cancelled_half_way_is_kept_as_far_as_it_came(target: str) -> None:
    async with simulated_providers(script()) as providers:
        async with providers.session(target) as session:
            events, answer = await interrupted(session, after=3)
            assert answer.stop == "cancelled"
            assert answer.text == shown_text(events)
            assert 0 < len(without_thinking(answer.text)) < len(WORDS)
            turn = session.history.turns[-1]
            assert (turn.role, turn.text, turn.metadata.interrupted) == ("assistant", answer.text, "Stop it.")
            assert answer.turn == turn
            assert [event.turn for event in events if isinstance(event, TurnCommitted)] == [turn]
            assert not any(isinstance(event, AttemptDiscarded) for event in events)
            assert without_thinking((await session.run("And now?")).text) == "Done."
            assert session.history.turns[-1].metadata.interrupted == ""
        assert providers.refused == []


@pytest.mark.parametrize("target", ALL_TARGETS)
async def test_any_provider_goes_on_after_an_interrupted_answer_and_reads_its_text(target: str) -> None:
    async with simulated_providers(script()) as providers:
        async with providers.session(CLAUDE) as first:
            _, answer = await interrupted(first, after=2)
        async with providers.session(target, history=first.history) as session:
            assert without_thinking((await session.run("And now?")).text) == "Done."
        assert providers.refused == []
        assert answer.text.strip() in str(providers.simulator.requests[-1].body)


@pytest.mark.parametrize("target", ALL_TARGETS)
async def test_an_interrupted_answer_can_be_gone_on_with_without_a_word(target: str) -> None:
    async with simulated_providers(script()) as providers:
        async with providers.session(target) as session:
            await interrupted(session, after=2)
            assert (await session.run()).stop == "stop"
        assert providers.refused == []


@pytest.mark.parametrize("target", ["anthropic", "openai", "gemini", "mistral"])
def test_what_comes_after_an_interrupted_answer_changes_nothing_before_it(target: str) -> None:
    async def scene(providers: SimulatedProviders) -> History:
        async with providers.session(CLAUDE) as session:
            await interrupted(session, after=2)
            return session.history

    def messages(history: History) -> list[Any]:
        body = request_for(history, target=target, model="m").body
        return list(body.get("messages") or body["contents"])

    history = run_with_providers(scene, script())
    history.append(Turn("user", (Text("And now?"),)))
    short = messages(history)
    history.append(Turn("assistant", (Text("Done."),)), provider="openai")
    history.append(Turn("user", (Text("Thanks."),)))
    long = messages(history)
    assert len(long) > len(short) == 3
    assert long[:3] == short


@pytest.mark.parametrize("target", ALL_TARGETS)
async def test_calls_of_an_interrupted_answer_are_not_run_and_not_left_open(target: str) -> None:
    ran: list[int] = []

    @tool(description="Look.")
    async def look(n: int) -> str:
        ran.append(n)
        return "seen"

    calls = [{"name": "look", "arguments": {"n": n}} for n in range(6)]
    async with simulated_providers(script(text="I look.", calls=calls)) as providers:
        async with providers.session(target, tools=[look]) as session:
            events, answer = await interrupted(session, kind=CallReceived)
            is_whole = not session.history.turns[1].metadata.interrupted
            if not is_whole:
                assert answer.text == shown_text(events)
                assert not any(turn.calls for turn in session.history.turns)
                assert not any(isinstance(event, CallChanged) for event in events)
                assert any("its text was kept, but not" in entry.reason for entry in session.report)
            assert session.history.ledger.pending == ()
            assert ran == []
            assert without_thinking((await session.run("And now?")).text) == "Done."
        assert providers.refused == []


async def test_an_answer_that_is_left_by_its_listener_is_kept() -> None:
    async with simulated_providers(script()) as providers:
        async with providers.session(CLAUDE) as session:
            received = ""
            async for event in session.stream("Go."):
                received += event.text if isinstance(event, TextReceived) else ""
                if received:
                    break
            assert (await session.run("And now?")).text == "Done."
            kept = session.history.turns[1]
            assert kept.text.startswith(received)
            assert "stopped waiting" in kept.metadata.interrupted
        assert providers.refused == []


async def test_an_answer_is_kept_when_the_scope_around_its_session_is_cancelled() -> None:
    async with simulated_providers(script()) as providers:
        session = providers.session(CLAUDE)
        with anyio.CancelScope() as scope:
            async with session:
                async for event in session.stream("Go."):
                    if isinstance(event, TextReceived):
                        scope.cancel()
        assert scope.cancelled_caught
        assert [turn.role for turn in session.history.turns] == ["user", "assistant"]
        assert session.history.turns[-1].metadata.interrupted
        assert WORDS.startswith(session.history.turns[-1].text)


async def test_an_answer_without_text_until_it_is_cancelled_is_taken_back() -> None:
    async with simulated_providers(script(thinking=WORDS)) as providers:
        async with providers.session("deepseek/deepseek-reasoner") as session:
            events: list[SessionEvent] = []
            cancels: list[asyncio.Task[None]] = []
            async for event in session.stream("Go."):
                events.append(event)
                if type(event).__name__ == "ThinkingReceived" and not cancels:
                    cancels.append(asyncio.ensure_future(session.cancel("Stop it.")))
            await cancels[0]
            assert shown_text(events) == ""
            assert [turn.role for turn in session.history.turns] == ["user"]
            assert any(isinstance(event, AttemptDiscarded) for event in events)
            assert without_thinking((await session.run("And now?")).text) == "Done."
        assert providers.refused == []


async def test_a_session_can_drop_interrupted_answers() -> None:
    async with simulated_providers(script()) as providers:
        async with providers.session(CLAUDE, keep_interrupted=False) as session:
            events, answer = await interrupted(session, after=2)
            assert (answer.text, answer.turn) == ("", None)
            assert [turn.role for turn in session.history.turns] == ["user"]
            (dropped,) = [event for event in events if isinstance(event, AttemptDiscarded)]
            assert dropped.shown.text == shown_text(events)
            assert session.spawn()._loop.keep_interrupted is False
        assert providers.refused == []


async def test_an_interrupted_answer_is_in_the_log_and_counted(tmp_path: Path) -> None:
    async with simulated_providers(script()) as providers:
        store = open_store(str(tmp_path / "sessions.db"), durable=True)
        try:
            log = await SessionLog.create(store, model=CLAUDE)
            async with providers.session(CLAUDE, log=log) as session:
                _, answer = await interrupted(session, after=2)
                spent = session.usage
                assert spent.input_tokens
                assert spent.output_tokens
            again = await SessionLog.open(store, log.id)
            async with providers.session(CLAUDE, log=again) as session:
                kept = session.history.turns[-1]
                assert (kept.text, kept.metadata.interrupted) == (answer.text, "Stop it.")
                assert session.usage == spent
                assert (await session.run("And now?")).text == "Done."
        finally:
            await store.close()
        assert providers.refused == []


def test_what_is_kept_is_what_the_events_reported_wherever_the_answer_is_cancelled() -> None:
    """After each number of pieces of text, for a provider of each protocol."""

    async def scene(providers: SimulatedProviders, target: str, after: int) -> bool:
        async with providers.session(target) as session:
            events: list[SessionEvent] = []
            cancels: list[asyncio.Task[None]] = []
            async for event in session.stream("Go."):
                events.append(event)
                if sum(isinstance(one, TextReceived) for one in events) >= after and not cancels:
                    cancels.append(asyncio.ensure_future(session.cancel("Stop it.")))
            await asyncio.gather(*cancels)
            assert isinstance(events[-1], RunFinished)
            assert events[-1].result.text == shown_text(events)
            assert session.history.in_flight is None
            assert without_thinking((await session.run("And now?")).text) == "Done."
        assert providers.refused == []
        return events[-1].result.stop == "cancelled"

    targets = (CLAUDE, "openai/gpt-4.1", "openai/gpt-5.5", "gemini/gemini-2.5-pro", "ollama/qwen3")
    for target in (*targets, "cohere/command-a-03-2025"):
        assert run_with_providers(lambda providers, target=target: scene(providers, target, 1), script())  # type: ignore[misc]
        for after in (2, 5, 9, 14, 20, 40, 1000):
            run_with_providers(lambda providers, target=target, after=after: scene(providers, target, after), script())  # type: ignore[misc]
