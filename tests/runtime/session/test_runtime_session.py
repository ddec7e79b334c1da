"""Sessions against the strict simulator: messages, replies, events, tools that the caller runs."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Mapping
from decimal import Decimal
from typing import Any

import pytest

from support.sessions.session_scripts import ASK_ONCE, CLAUDE, FINE, OPENAI, calling, look_up
from support.sessions.simulated_sessions import (
    SimulatedProviders,
    collect_events,
    simulated_providers,
)
from toolglot import History, InputError, Media, Text, ToolResult, ToolSpec, Turn
from toolglot.runtime.log.memory_log import MemoryLog
from toolglot.runtime.session.events import (
    CallChanged,
    CallReceived,
    ChangeReported,
    ModelSwitched,
    RequestStarted,
    RunFinished,
    TextReceived,
    TurnCommitted,
)
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.models import ModelChoice
from toolglot.runtime.session.run import MAX_QUEUED_EVENTS
from toolglot.runtime.session.session import Message
from toolglot.upstream import HttpRequest, TimeLimits
from toolglot.upstream import HttpResponse as WireAnswer

# --- its life -------------------------------------------------------------------------------------


async def test_a_session_runs_only_while_it_is_open() -> None:
    async with simulated_providers() as providers:
        session = providers.session(tools=[look_up])
        with pytest.raises(InputError, match="not open yet"):
            await session.run("Hello")
        async with session:
            assert (await session.run("Hello")).stop == "stop"
            with pytest.raises(InputError, match="opened only once"):
                await session.__aenter__()
        assert session.is_closed
        for use in (session.run("Hello"), session.compress(), session.undo()):
            with pytest.raises(InputError, match="is closed"):
                await use
        with pytest.raises(InputError, match="is closed"):
            session.spawn()
        await session.close()


async def test_an_error_of_the_callers_stays_what_it_is() -> None:
    async with simulated_providers() as providers:
        with pytest.raises(ZeroDivisionError):
            async with providers.session():
                raise ZeroDivisionError


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"model": "nobody/x"}, "unknown model 'nobody/x'"),
        ({"model": "openai/"}, "unknown model 'openai/'"),
        ({"model": ""}, "expected the name of a model"),
        ({"model": "opanai/gpt"}, "did you mean 'openai/gpt'"),
        ({"fallback": ["nobody/x"]}, "unknown model 'nobody/x'"),
        ({"fallback": "openai/gpt-4.1"}, "expected a list of models, got a string"),
        ({"log": MemoryLog(), "history": History()}, "not both"),
    ],
)
async def test_what_cannot_work_is_reported_before_any_call(options: dict[str, Any], problem: str) -> None:
    async with simulated_providers() as providers:
        with pytest.raises(InputError, match=problem):
            async with providers.session(**options):
                pass
        assert providers.called == []


@pytest.mark.parametrize(
    ("limits", "path"),
    [
        ({"max_turns": 0}, "limits.max_turns"),
        ({"retries": -1}, "limits.retries"),
        ({"compress_at": 1.5}, "limits.compress_at"),
        ({"max_tokens": True}, "limits.max_tokens"),
        ({"max_cost": Decimal(-1)}, "limits.max_cost"),
    ],
)
def test_limits_are_checked(limits: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError, match=path):
        SessionLimits(**limits)


# --- messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        "Hello",
        Turn("user", (Text("Hello"),)),
        [Text("Hello"), Media("image", "image/png", data="iVBORw0KGgo=")],
        (Text("Hello"),),
    ],
)
async def test_a_message_can_be_a_text_a_turn_or_blocks(message: Message) -> None:
    async with simulated_providers(FINE) as providers:
        async with providers.session(CLAUDE) as session:
            answer = await session.run(message)
            assert answer.text == "Fine."
            assert session.history.turns[0].text == "Hello"
        assert providers.refused == []


@pytest.mark.parametrize("message", ["", "  ", [], 7, {"a": 1}, [ToolResult("x")], Turn("assistant", (Text("x"),))])
async def test_what_is_no_message_is_refused_and_nothing_is_written(message: Any) -> None:
    async with simulated_providers() as providers, providers.session() as session:
        with pytest.raises(InputError, match="message"):
            await session.run(message)
        with pytest.raises(InputError, match="there is no message yet"):
            await session.run()
        assert len(session.history) == 0


async def test_the_system_prompt_is_sent_once_and_a_history_keeps_its_own() -> None:
    async with simulated_providers(FINE) as providers:
        async with providers.session(OPENAI, system="Be brief.") as session:
            await session.run("Hello")
            await session.run("Hello")
            assert [turn.role for turn in session.history.turns] == ["system", "user", "assistant", "user", "assistant"]
        async with providers.session(OPENAI, system="Be long.", history=session.history) as again:
            await again.run("Hello")
            assert again.history.turns[0].text == "Be brief."
        assert providers.simulator.requests[-1].body["messages"][0] == {"role": "system", "content": "Be brief."}


async def test_without_a_message_a_session_goes_on_where_it_is() -> None:
    async with simulated_providers(FINE) as providers:
        providers.simulator.fault("500")
        async with providers.session(limits=ASK_ONCE) as session:
            failed = await session.run("Hello")
            assert failed.stop == "failed"
            assert failed.failure is not None
            assert failed.failure.kind == "server"
            assert failed.turn is None
            answer = await session.run()
            assert answer.text == "Fine."
            assert [turn.role for turn in session.history.turns] == ["user", "assistant"]


# --- events ---------------------------------------------------------------------------------------


async def test_a_stream_reports_everything_in_order() -> None:
    async with (
        simulated_providers({"rules": [calling(1, results=0), {"reply": {"text": "Found it."}}]}) as providers,
        providers.session(OPENAI, tools=[look_up]) as session,
    ):
        events = await collect_events(session, "Look.")
        kinds = [type(event).__name__ for event in events if not isinstance(event, ChangeReported)]
        assert kinds == [
            *("RequestStarted", "CallReceived", "TurnCommitted"),
            *["CallChanged"] * 4,
            *("TurnCommitted", "RequestStarted", "TextReceived", "TurnCommitted", "RunFinished"),
        ]
        seen = next(event for event in events if isinstance(event, CallReceived))
        assert seen.call.name == "look_up"
        states = [event.change.state for event in events if isinstance(event, CallChanged)]
        assert states == ["validating", "scheduled", "executing", "success"]
        kept = [event for event in events if isinstance(event, TurnCommitted)]
        assert [event.turn.role for event in kept] == ["assistant", "tool", "assistant"]
        assert tuple(event.turn for event in kept) == session.history.turns[1:]
        assert kept[0].usage is not None
        assert kept[0].cost is not None
        assert kept[1].usage is None
        ended = events[-1]
        assert isinstance(ended, RunFinished)
        assert ended.result.text == "Found it."
        assert "".join(event.text for event in events if isinstance(event, TextReceived)) == "Found it."


async def test_what_was_changed_for_a_provider_is_reported_once() -> None:
    async with simulated_providers() as providers, providers.session(CLAUDE, tools=[look_up]) as session:
        first = [event.entry for event in await collect_events(session, "Look.") if isinstance(event, ChangeReported)]
        again = [event.entry for event in await collect_events(session, "Look.") if isinstance(event, ChangeReported)]
        assert any("max_tokens" in entry.path for entry in first)
        assert again == []
        assert set(map(str, first)) <= set(map(str, session.report))


async def test_a_switch_is_reported_and_takes_effect_at_the_next_turn() -> None:
    async with simulated_providers(
        {"rules": [calling(1, name="change", results=0), {"reply": {"text": "Fine."}}]}
    ) as providers:

        async def change(n: int) -> str:
            session.switch(CLAUDE)
            return f"found {n}."

        async with providers.session(OPENAI, tools=[change]) as session:
            events = await collect_events(session, "Look.")
            assert [event.model for event in events if isinstance(event, RequestStarted)] == [OPENAI, CLAUDE]
            assert [event for event in events if isinstance(event, ModelSwitched)] == [
                ModelSwitched(OPENAI, CLAUDE, "the session was switched")
            ]
            assert session.model == CLAUDE
            with pytest.raises(InputError, match="unknown model"):
                session.switch("nobody/x")
            assert session.model == CLAUDE


class CountingAnswer:
    """An answer that says how much of it was read."""

    def __init__(self, answer: WireAnswer, read: list[int]) -> None:
        self._answer = answer
        self._read = read
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers

    async def pieces(self) -> AsyncIterator[bytes]:
        async for piece in self._answer.pieces():
            self._read.append(len(piece))
            yield piece

    async def whole(self, most: int) -> bytes:
        return await self._answer.whole(most)

    async def close(self) -> None:
        await self._answer.close()


class CountingModels:
    def __init__(self, providers: SimulatedProviders) -> None:
        self._stage = providers
        self.read: list[int] = []

    def find(self, name: str) -> ModelChoice:
        found = self._stage.models.find(name)
        return ModelChoice(found.name, found.model, dataclasses.replace(found.upstream, transport=self))

    async def send(self, ask: HttpRequest, limits: TimeLimits) -> WireAnswer:
        return CountingAnswer(await self._stage.transport.send(ask, limits), self.read)

    async def close(self) -> None:
        """The providers closes its own."""


async def test_a_slow_listener_makes_the_model_wait() -> None:
    async with simulated_providers({"rules": [{"reply": {"text": "word " * 1_000}}], "chunk": 1}) as providers:
        models = CountingModels(providers)
        async with providers.session(OPENAI, models=models) as session:
            received = 0
            async for event in session.stream("Talk."):
                if received == 0:
                    for _ in range(20_000):
                        await asyncio.sleep(0)
                    assert MAX_QUEUED_EVENTS // 2 < len(models.read) <= MAX_QUEUED_EVENTS + 20
                received += isinstance(event, TextReceived)
            assert received > 4_000
            assert (session.history.turns[-1].text) == "word " * 1_000


async def test_runs_of_one_session_wait_for_each_other() -> None:
    async with simulated_providers() as providers:
        async with providers.session(tools=[look_up]) as session:
            answers = await asyncio.gather(*(session.run(f"Look {n}.") for n in range(5)))
            assert [answer.stop for answer in answers] == ["stop"] * 5
            texts = [turn.text for turn in session.history.turns if turn.role == "user"]
            assert texts == [f"Look {n}." for n in range(5)]
            roles = [turn.role for turn in session.history.turns]
            assert roles == ["user", "assistant", "tool", "assistant"] * 5, "one after the other"
            assert not session.is_running
        assert providers.refused == []


async def test_a_cancel_right_after_a_run_was_begun_finds_it() -> None:
    async with simulated_providers() as providers, providers.session() as session:
        running = asyncio.ensure_future(session.run("Hello"))
        await asyncio.sleep(0)
        await session.cancel()
        assert (await running).stop == "cancelled"
        assert providers.called == []
        assert [turn.role for turn in session.history.turns] == ["user"], "the message stays"


# --- tools that the caller runs -------------------------------------------------------------------


OPEN = [look_up, ToolSpec("ask_human", "Ask.", {"type": "object", "properties": {"n": {"type": "integer"}}})]
OPEN_CALLS = {
    "rules": [
        {
            "when": {"results": 0, "turn": 1},
            "reply": {
                "calls": [
                    {"name": "ask_human", "arguments": {"n": 1}},
                    {"name": "look_up", "arguments": {"n": 2}},
                    {"name": "ask_human", "arguments": {"n": 3}},
                ]
            },
        },
        {"reply": {"text": "Fine."}},
    ]
}


async def test_calls_of_tools_without_a_function_are_left_open_for_the_caller() -> None:
    async with simulated_providers(OPEN_CALLS) as providers:
        async with providers.session(OPENAI, tools=OPEN) as session:
            opened = await session.run("Go.")
            assert opened.stop == "calls_open"
            assert [call.arguments for call in opened.calls] == [{"n": 1}, {"n": 3}]
            with pytest.raises(InputError, match="while calls are open"):
                await session.run("What now?")
            with pytest.raises(InputError, match="while calls are open"):
                await session.undo()
            session.switch(CLAUDE)
            still = await session.answer(ToolResult(opened.calls[1].id, "three"))
            assert (still.stop, [call.id for call in still.calls]) == ("calls_open", [opened.calls[0].id])
            done = await session.answer(ToolResult(opened.calls[0].id, "one"))
            assert (done.stop, done.text, done.model) == ("stop", "Fine.", CLAUDE)
            results = {found.call.arguments["n"]: found.result.text for found in session.history.ledger}  # type: ignore[index, union-attr]
            assert results == {1: "one", 2: "found 2.", 3: "three"}
        assert providers.refused == []
        assert providers.called == [OPENAI, CLAUDE], "the switch waited for the results"


@pytest.mark.parametrize("results", [(), (ToolResult("call_9", "x"),), ("text",)])
async def test_results_of_calls_that_are_not_open_are_refused(results: Any) -> None:
    async with simulated_providers(OPEN_CALLS) as providers, providers.session(OPENAI, tools=OPEN) as session:
        for _ in range(2):
            with pytest.raises(InputError, match="results"):
                await session.answer(*results)
            assert (await session.run("Go.")).stop == "calls_open" if not session.history else True


async def test_open_calls_of_a_history_that_was_kept_can_be_answered_later() -> None:
    async with simulated_providers(OPEN_CALLS) as providers:
        async with providers.session(OPENAI, tools=OPEN) as session:
            opened = await session.run("Go.")
        kept = History(session.history.conversation)
        async with providers.session(CLAUDE, tools=OPEN, history=kept) as session:
            first, second = opened.calls
            still = await session.answer(ToolResult(first.id, "one"))
            assert [call.id for call in still.calls] == [second.id]
            assert (await session.answer(ToolResult(second.id, "three"))).text == "Fine."
        assert providers.refused == []


async def test_cancelling_closes_calls_that_are_open() -> None:
    async with simulated_providers(OPEN_CALLS) as providers:
        async with providers.session(OPENAI, tools=OPEN) as session:
            await session.run("Go.")
            await session.cancel("Never mind.")
            assert session.history.in_flight is None
            assert [found.status for found in session.history.ledger] == ["cancelled", "complete", "cancelled"]
            await session.cancel()
            assert (await session.run("And now?")).text == "Fine."
        assert providers.refused == []
