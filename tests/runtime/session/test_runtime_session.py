"""Sessions: what is asked and answered, retried, paid for, branched and refused, against the strict simulator."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import anyio
import pytest

from support.sessions.simulated_sessions import (
    PATIENT,
    QUICK,
    RESPONSES,
    TARGETS,
    SimulatedProviders,
    collect_events,
    run_with_providers,
    simulated_providers,
)
from toolglot import History, InputError, Media, Options, Text, ToolResult, ToolSpec, Turn
from toolglot.conversation import Reasoning, Usage
from toolglot.history.attempts import Attempt
from toolglot.runtime.log.memory_log import MemoryLog
from toolglot.runtime.log.session_log import SessionLog
from toolglot.runtime.session.events import (
    CallChanged,
    CallReceived,
    ChangeReported,
    ModelSwitched,
    RequestStarted,
    RunFinished,
    RunResult,
    TextReceived,
    TurnCommitted,
)
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.models import ModelChoice, UpstreamModels
from toolglot.runtime.session.run import MAX_QUEUED_EVENTS
from toolglot.runtime.session.session import Message, Session
from toolglot.runtime.tools.toolbox import ToolContext, tool
from toolglot.store import SqliteStore
from toolglot.upstream import HttpRequest, TimeLimits
from toolglot.upstream import HttpResponse as WireAnswer

OPENAI, CLAUDE = "openai/gpt-4.1", "anthropic/claude-opus-5"
FINE: dict[str, Any] = {"rules": [{"reply": {"text": "Fine."}}]}
ASK_ONCE = SessionLimits(retries=0)


@tool(side_effects=False)
async def look_up(n: int) -> str:
    """Look something up."""
    return f"found {n}."


def calling(*numbers: int, name: str = "look_up", **when: Any) -> dict[str, Any]:
    return {"when": when, "reply": {"calls": [{"name": name, "arguments": {"n": n}} for n in numbers]}}


# --- its life ---------------------------------------------------------------------------------------


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
    ("given", "problem"),
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
async def test_what_cannot_work_is_told_before_anything_is_asked(given: dict[str, Any], problem: str) -> None:
    async with simulated_providers() as providers:
        with pytest.raises(InputError, match=problem):
            async with providers.session(**given):
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


# --- what can be said -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        "Hello",
        Turn("user", (Text("Hello"),)),
        [Text("Hello"), Media("image", "image/png", data="iVBORw0KGgo=")],
        (Text("Hello"),),
    ],
)
async def test_a_text_a_turn_or_blocks_can_be_said(said: Message) -> None:
    async with simulated_providers(FINE) as providers:
        async with providers.session(CLAUDE) as session:
            answer = await session.run(said)
            assert answer.text == "Fine."
            assert session.history.turns[0].text == "Hello"
        assert providers.refused == []


@pytest.mark.parametrize("said", ["", "  ", [], 7, {"a": 1}, [ToolResult("x")], Turn("assistant", (Text("x"),))])
async def test_what_is_no_message_is_refused_and_nothing_is_written(said: Any) -> None:
    async with simulated_providers() as providers, providers.session() as session:
        with pytest.raises(InputError, match="message"):
            await session.run(said)
        with pytest.raises(InputError, match="there is no message yet"):
            await session.run()
        assert len(session.history) == 0


async def test_the_system_prompt_is_said_once_and_a_history_keeps_its_own() -> None:
    async with simulated_providers(FINE) as providers:
        async with providers.session(OPENAI, system="Be brief.") as session:
            await session.run("Hello")
            await session.run("Hello")
            assert [turn.role for turn in session.history.turns] == ["system", "user", "assistant", "user", "assistant"]
        async with providers.session(OPENAI, system="Be long.", history=session.history) as again:
            await again.run("Hello")
            assert again.history.turns[0].text == "Be brief."
        assert providers.simulator.requests[-1].body["messages"][0] == {"role": "system", "content": "Be brief."}


async def test_without_anything_said_a_session_goes_on_where_it_is() -> None:
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


# --- events -----------------------------------------------------------------------------------------


async def test_a_stream_tells_everything_in_order() -> None:
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


async def test_what_was_changed_for_a_provider_is_told_once() -> None:
    async with simulated_providers() as providers, providers.session(CLAUDE, tools=[look_up]) as session:
        first = [event.entry for event in await collect_events(session, "Look.") if isinstance(event, ChangeReported)]
        again = [event.entry for event in await collect_events(session, "Look.") if isinstance(event, ChangeReported)]
        assert any("max_tokens" in entry.path for entry in first)
        assert again == []
        assert set(map(str, first)) <= set(map(str, session.report))


async def test_a_switch_is_told_and_takes_effect_at_the_next_turn() -> None:
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
            heard = 0
            async for event in session.stream("Talk."):
                if heard == 0:
                    for _ in range(20_000):
                        await asyncio.sleep(0)
                    assert MAX_QUEUED_EVENTS // 2 < len(models.read) <= MAX_QUEUED_EVENTS + 20
                heard += isinstance(event, TextReceived)
            assert heard > 4_000
            assert (session.history.turns[-1].text) == "word " * 1_000


async def test_runs_of_one_session_wait_for_each_other() -> None:
    async with simulated_providers() as providers:
        async with providers.session(tools=[look_up]) as session:
            answers = await asyncio.gather(*(session.run(f"Look {n}.") for n in range(5)))
            assert [answer.stop for answer in answers] == ["stop"] * 5
            said = [turn.text for turn in session.history.turns if turn.role == "user"]
            assert said == [f"Look {n}." for n in range(5)]
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
        assert [turn.role for turn in session.history.turns] == ["user"], "what was said stays said"


# --- tools that the caller runs ---------------------------------------------------------------------

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


# --- tries ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["429,retry_after=0", "503,retry_after=0", "529,retry_after=0", "500,retry_after=0"])
async def test_a_provider_that_is_busy_is_asked_again(fault: str) -> None:
    async with simulated_providers(FINE) as providers:
        providers.simulator.fault(fault, times=2)
        async with providers.session(CLAUDE) as session:
            events = await collect_events(session, "Hello")
            assert [event.attempt for event in events if isinstance(event, RequestStarted)] == [1, 2, 3]
            assert session.history.turns[-1].text == "Fine."


async def test_a_provider_is_not_asked_for_ever() -> None:
    async with simulated_providers(FINE) as providers:
        providers.simulator.fault("429,retry_after=0", times=9)
        async with providers.session(CLAUDE, limits=SessionLimits(retries=3)) as session:
            answer = await session.run("Hello")
            assert answer.stop == "failed"
            assert answer.failure is not None
            assert answer.failure.kind == "rate_limit"
            assert len(providers.called) == 4


async def test_a_wait_that_is_too_long_is_a_failure() -> None:
    async with simulated_providers(FINE) as providers:
        providers.simulator.fault("429,retry_after=3600")
        async with providers.session(CLAUDE, limits=SessionLimits(retry_seconds=5)) as session:
            assert (await session.run("Hello")).stop == "failed"
            assert len(providers.called) == 1


@pytest.mark.parametrize("fault", ["400", "401", "404", "413"])
async def test_what_was_refused_is_never_sent_again_as_it_was(fault: str) -> None:
    async with simulated_providers(FINE) as providers:
        providers.simulator.fault(fault, times=3)
        async with providers.session(CLAUDE, fallback=[CLAUDE]) as session:
            assert (await session.run("Hello")).stop == "failed"
            assert len(providers.called) == 1


async def test_every_fallback_is_asked_once_in_order_and_the_chosen_model_stays_where_none_answers() -> None:
    async with simulated_providers(FINE) as providers:
        providers.simulator.fault("500", times=3)
        fallback = [OPENAI, "mistral/mistral-large-latest", OPENAI]
        async with providers.session(CLAUDE, fallback=fallback, limits=ASK_ONCE) as session:
            assert (await session.run("Hello")).stop == "failed"
            assert providers.called == [CLAUDE, *fallback[:2]]
            assert session.model == CLAUDE
            assert (await session.run()).model == CLAUDE


async def test_a_fallback_stays_until_another_model_is_chosen() -> None:
    async with simulated_providers(FINE) as providers:
        providers.simulator.fault("500")
        async with providers.session(CLAUDE, fallback=[OPENAI], limits=ASK_ONCE) as session:
            assert (await session.run("Hello")).model == OPENAI
            assert (await session.run("Hello")).model == OPENAI
            providers.simulator.fault("500")
            assert (await session.run("Hello")).model == CLAUDE, "the chosen one is a fallback now"
            session.switch(OPENAI)
            assert (await session.run("Hello")).model == OPENAI


async def test_a_choice_that_is_made_while_a_fallback_answers_holds() -> None:
    async with simulated_providers(FINE) as providers:
        providers.simulator.fault("500")
        async with providers.session(CLAUDE, fallback=[OPENAI], limits=ASK_ONCE) as session:
            async for event in session.stream("Hello"):
                if isinstance(event, ModelSwitched) and event.after == OPENAI:
                    session.switch("mistral/mistral-large-latest")
            assert providers.called == [CLAUDE, OPENAI]
            assert session.model == "mistral/mistral-large-latest"


async def test_an_answer_that_cannot_be_used_is_asked_for_again() -> None:
    async with simulated_providers() as providers:
        providers.simulator.use({"rules": [{"times": 1, "reply": {"text": "Half", "stop": "error"}}, *FINE["rules"]]})
        async with providers.session("gemini/gemini-2.5-pro") as session:
            answer = await session.run("Hello")
            assert answer.text == "Fine."
            assert len(providers.called) == 2


@pytest.mark.parametrize(("reason", "stop"), [("length", "length"), ("filter", "filter"), ("stop", "stop")])
async def test_why_a_model_stopped_is_told(reason: str, stop: str) -> None:
    async with (
        simulated_providers({"rules": [{"reply": {"text": "So far.", "stop": reason}}]}) as providers,
        providers.session(OPENAI) as session,
    ):
        answer = await session.run("Hello")
        assert (answer.stop, answer.text) == (stop, "So far.")


async def test_a_model_that_pauses_goes_on() -> None:
    async with simulated_providers(
        {"rules": [{"replies": [{"text": "Wait.", "stop": "pause"}, {"text": "Done."}]}]}
    ) as providers:
        async with providers.session("anthropic/claude-sonnet-4-5") as session:
            answer = await session.run("Hello")
            assert (answer.stop, answer.text) == ("stop", "Done.")
            assert len(providers.called) == 2
        assert providers.refused == []


async def test_thinking_that_its_provider_does_not_know_any_more_is_left_out() -> None:
    async with simulated_providers() as providers, providers.session(CLAUDE, tools=[look_up]) as session:
        await session.run("Look.")
        providers.simulator.use({"seed": 1, "rules": [{"reply": {"text": "Fine."}}]})
        answer = await session.run("And again.")
        assert (answer.stop, answer.text) == ("stop", "Fine."), answer.failure
        statuses = [seen.status for seen in providers.simulator.requests]
        assert statuses == [200, 200, 400, 200]
        assert (await session.run("And again.")).stop == "stop"
        assert [seen.status for seen in providers.simulator.requests][4:] == [200], "it is left out from now on"


async def test_opaque_things_go_home_only_to_the_account_that_made_them() -> None:
    async with simulated_providers() as providers:
        one = providers.models.find(CLAUDE).upstream
        other = dataclasses.replace(one, name="other", key="sk-another-account-01234")
        models = UpstreamModels({"anthropic": one, "other": other})
        async with providers.session(CLAUDE, tools=[look_up], models=models) as session:
            await session.run("Look.")
            assert "signature" in str(providers.simulator.requests[-1].body)
            session.switch("other/claude-opus-5")
            await session.run("Look again.")
            assert session.history.turns[1].issuer == one.issuer("claude-opus-5", "anthropic")
            sent = providers.simulator.requests[-2].body
            assert ("signature" in str(sent)) == ("account" not in _bound_to(CLAUDE))
        assert providers.refused == []


def _bound_to(name: str) -> tuple[str, ...]:
    from toolglot import profiles  # noqa: PLC0415

    provider, _, model = name.partition("/")
    return tuple(profiles.get(provider, model).reasoning.bound_to)


@pytest.mark.parametrize(("tools", "path"), [([look_up], "/openai/v1/responses"), ([], "/openai/v1/chat/completions")])
async def test_a_model_that_takes_tools_in_another_protocol_is_asked_in_that(tools: list[Any], path: str) -> None:
    async with simulated_providers() as providers:
        async with providers.session(
            RESPONSES, tools=tools, options=Options(reasoning=Reasoning(effort="low"))
        ) as session:
            assert (await session.run("Hello")).stop == "stop"
            assert providers.simulator.requests[-1].path == path
        assert providers.refused == []


# --- what it costs ----------------------------------------------------------------------------------


def test_tokens_and_money_are_summed_with_those_of_subagents() -> None:
    async def scene(providers: SimulatedProviders) -> None:
        async def delegate(n: int, context: ToolContext) -> str:
            assert isinstance(context.session, Session)
            answer = await context.session.spawn(tools=[]).run(f"Number {n}.")
            assert answer.usage.input_tokens == 100
            return answer.text

        async with providers.session(CLAUDE, tools=[tool(delegate, description="Delegate.")]) as session:
            answer = await session.run("Go.")
            assert answer.usage.input_tokens == 400
            assert answer.usage.output_tokens == 40
            assert session.usage == answer.usage
            assert answer.cost == session.cost == Decimal("0.003")
            assert [found.status for found in session.history.ledger] == ["complete"] * 2
            assert (await session.run("Thanks.")).usage.input_tokens == 100
            assert session.usage.input_tokens == 500
        assert providers.refused == []

    usage = {"input_tokens": 100, "output_tokens": 10}
    rules = [
        {
            "when": {"results": 0, "turn": 1, "tool": "delegate"},
            "reply": {
                "calls": [{"name": "delegate", "arguments": {"n": n}} for n in range(2)],
                "usage": usage,
            },
        },
        {"reply": {"text": "Fine.", "usage": usage}},
    ]
    run_with_providers(scene, {"rules": rules})


@pytest.mark.parametrize("limits", [{"max_tokens": 250}, {"max_cost": Decimal("0.0015")}])
def test_a_budget_ends_a_run_before_the_next_request(limits: dict[str, Any]) -> None:
    async def scene(providers: SimulatedProviders) -> None:
        async with providers.session(CLAUDE, tools=[look_up], limits=SessionLimits(**limits)) as session:
            answer = await session.run("Go.")
            assert answer.stop == "budget"
            assert len(providers.called) == (3 if "max_tokens" in limits else 2)
            assert session.history.ledger.pending == ()
            assert (await session.run("More.")).stop == "budget"
            assert (await session.spawn().run("More.")).stop == "budget", "a subagent has no more than its parent"

    usage = {"input_tokens": 100, "output_tokens": 10}
    reply = {"calls": [{"name": "look_up", "arguments": {"n": 1}}], "usage": usage}
    run_with_providers(scene, {"rules": [{"reply": reply}]})


async def test_a_limit_in_money_for_a_model_without_a_price_is_refused() -> None:
    async with simulated_providers(FINE) as providers:
        async with providers.session("ollama/qwen3", limits=SessionLimits(max_cost=Decimal(1))) as session:
            with pytest.raises(InputError, match="the price of ollama/qwen3 is unknown"):
                await session.run("Hello")
            assert not session.is_running
        async with providers.session("ollama/qwen3") as session:
            assert (await session.run("Hello")).cost is None
            assert session.cost is None


async def test_a_model_that_calls_for_ever_is_stopped() -> None:
    async with simulated_providers(
        {"rules": [{"reply": {"calls": [{"name": "look_up", "arguments": {"n": 1}}]}}]}
    ) as providers:
        async with providers.session(CLAUDE, tools=[look_up], limits=SessionLimits(max_turns=3)) as session:
            answer = await session.run("Go.")
            assert answer.stop == "loop_limit"
            assert len(providers.called) == 3
            assert session.history.ledger.pending == ()
            assert len(session.history.ledger) == 3
        assert providers.refused == []


# --- sessions inside sessions -----------------------------------------------------------------------


async def test_a_tool_cannot_run_the_session_that_runs_it() -> None:
    async with simulated_providers() as providers:

        async def again(n: int, context: ToolContext) -> str:
            assert isinstance(context.session, Session)
            return (await context.session.run(f"Again {n}.")).text

        async with providers.session(tools=[tool(again, description="Again.")]) as session:
            await session.run("Go.")
            (found,) = session.history.ledger
            assert found.status == "error"
            assert found.result is not None
            assert "cannot run the session that runs it" in found.result.text


async def test_a_tool_may_cancel_its_session() -> None:
    async with simulated_providers() as providers:

        async def enough(n: int, context: ToolContext) -> str:
            assert isinstance(context.session, Session)
            await context.session.cancel(f"Enough of {n}.")
            await anyio.sleep_forever()
            return "never"

        async with providers.session(tools=[tool(enough, description="Enough.")]) as session:
            answer = await session.run("Go.")
            assert answer.stop == "cancelled"
            (found,) = session.history.ledger
            assert found.status == "cancelled"
        assert providers.refused == []


async def test_subagents_are_spawned_only_so_deep() -> None:
    async with simulated_providers() as providers, providers.session(limits=SessionLimits(max_depth=2)) as session:
        child = session.spawn().spawn()
        with pytest.raises(InputError, match="at most 2 deep"):
            child.spawn()


async def test_a_subagent_has_what_its_parent_has_unless_it_is_given_otherwise() -> None:
    async with (
        simulated_providers(FINE) as providers,
        providers.session(CLAUDE, tools=[look_up], system="Be brief.") as session,
    ):
        child = session.spawn(model=OPENAI, tools=[], system=None)
        assert (child.model, len(child.tools)) == (OPENAI, 0)
        async with child as entered:
            assert (await entered.run("Hello")).text == "Fine."
        assert [turn.role for turn in child.history.turns] == ["user", "assistant"]
        assert child.is_closed
        assert not session.is_closed
        same = session.spawn(model=None)
        assert (same.model, len(same.tools), same.limits) == (CLAUDE, 1, session.limits)
        await same.run("Hello")
        assert same.history.turns[0].text == "Be brief."
        assert len(session.history) == 0
        assert same.id != session.id
        assert repr(same) == f"<Session {same.id}: {CLAUDE}, 3 turns>"


@pytest.mark.parametrize("end", ["cancel", "close"])
async def test_what_stops_a_session_stops_what_it_spawned(end: str) -> None:
    async with simulated_providers() as providers:
        is_running = anyio.Event()

        async def hang(n: int) -> str:
            is_running.set()
            await anyio.sleep_forever()
            return str(n)

        async with providers.session(tools=[tool(hang, description="Hang.")]) as session:
            child = session.spawn().spawn()
            running = asyncio.ensure_future(child.run("Go."))
            await is_running.wait()
            await (session.cancel() if end == "cancel" else session.close())
            assert not child.is_running
            assert (await running).stop == "cancelled"
            assert child.history.ledger.pending == ()
            if end == "close":
                with pytest.raises(InputError, match="is closed"):
                    await child.run("More.")


async def test_a_fork_goes_its_own_way() -> None:
    async with simulated_providers() as providers:
        async with providers.session(CLAUDE, tools=[look_up]) as session:
            await session.run("Look.")
            before = session.history.turns
            fork = session.fork(model=OPENAI)
            assert (await fork.run("And now?")).model == OPENAI
            assert session.history.turns == before
            assert fork.history.turns[: len(before)] == before
            assert session.usage != fork.usage
            logged = session.fork(log=MemoryLog())
            assert len(logged.history) == 0
        assert providers.refused == []


async def test_a_fork_of_a_session_that_runs_has_no_open_calls() -> None:
    async with simulated_providers() as providers:

        async def split(n: int, context: ToolContext) -> str:
            assert isinstance(context.session, Session)
            fork = context.session.fork(tools=[look_up])
            assert fork.history.ledger.pending == ()
            return (await fork.run(f"And {n}?")).text

        rules = [calling(1, name="split", turn=1, results=0), {"reply": {"text": "Fine."}}]
        providers.simulator.use({"rules": rules})
        async with providers.session(CLAUDE, tools=[tool(split, description="Split.")]) as session:
            await session.run("Go.")
            (found,) = session.history.ledger
            assert found.result is not None
            assert found.result.text == "Fine."
        assert providers.refused == []


async def test_undo_takes_back_what_the_user_said_last_and_everything_after_it() -> None:
    async with simulated_providers() as providers:
        async with providers.session(CLAUDE, tools=[look_up], system="Be brief.") as session:
            await session.run("First.")
            kept = session.history.turns
            await session.run("Second.")
            taken = await session.undo()
            assert taken is not None
            assert taken.text == "Second."
            assert session.history.turns == kept
            assert (await session.run("Third.")).stop == "stop"
            await session.undo()
            await session.undo()
            assert [turn.role for turn in session.history.turns] == ["system"]
            assert await session.undo() is None
        assert providers.refused == []


async def test_a_summary_is_not_undone() -> None:
    async with simulated_providers(FINE) as providers:
        limits = SessionLimits(keep_turns=1)
        async with providers.session(CLAUDE, summarise=lambda turns: f"{len(turns)} turns", limits=limits) as session:
            for _ in range(3):
                await session.run("Hello")
            assert await session.compress() == 5
            assert await session.undo() is None
            assert len(session.history) == 2


# --- what goes wrong around it ----------------------------------------------------------------------


class BrokenLog(MemoryLog):
    """A log that cannot write some things."""

    def __init__(self, *broken: str) -> None:
        super().__init__()
        self.broken = set(broken)

    async def commit(self, attempt: Attempt, *, usage: Usage | None = None, cost: Decimal | None = None) -> Turn:
        if "commit" in self.broken:
            raise OSError("the disk is full")
        return await super().commit(attempt, usage=usage, cost=cost)

    async def end_turn(self, reason: str = "", known: Sequence[ToolResult] = ()) -> None:
        if "land" in self.broken:
            raise OSError("the disk is gone")
        await super().end_turn(reason, known)


@pytest.mark.parametrize(
    ("broken", "problem"), [(("commit",), "full"), (("commit", "land"), "full"), (("land",), "gone")]
)
async def test_a_write_that_fails_is_told_and_the_session_is_not_stuck(broken: tuple[str, ...], problem: str) -> None:
    async with simulated_providers(FINE) as providers:
        log = BrokenLog(*broken)
        async with providers.session(CLAUDE, log=log) as session:
            with pytest.raises(OSError, match=problem):
                await session.run("Hello")
            assert not session.is_running
            log.broken.clear()
            await session.cancel()
            log.broken.update(broken)
            with pytest.raises(OSError, match=problem):
                await collect_events(session, "Hello")
            log.broken.clear()
            await session.cancel()
            assert (await session.run("Hello")).text == "Fine."
        assert providers.refused == []


async def test_a_session_in_a_store_goes_on_in_another_process(tmp_path: Any) -> None:
    async with simulated_providers() as providers:
        store = SqliteStore(tmp_path / "sessions.db")
        try:
            log = await SessionLog.create(store, model=CLAUDE)
            async with providers.session(CLAUDE, tools=[look_up], log=log) as session:
                await session.run("Look.")
                session.switch(OPENAI)
                await session.run("Thanks.")
                turns, id, spent = session.history.turns, session.id, (session.usage, session.cost)
            again = await SessionLog.open(store, id)
            assert again.model == OPENAI
            async with providers.session(again.model, tools=[look_up], log=again) as session:
                assert session.history.turns == turns
                assert (session.usage, session.cost) == spent, "what was spent is not forgotten"
                assert (await session.run("And now?")).stop == "stop"
        finally:
            await store.close()
        assert providers.refused == []


async def test_an_outer_scope_that_is_cancelled_leaves_everything_in_order() -> None:
    async with simulated_providers() as providers:
        for rounds in range(0, 150, 3):
            session = providers.session(CLAUDE, tools=[look_up])
            with anyio.CancelScope() as scope:

                async def end(scope: anyio.CancelScope = scope, rounds: int = rounds) -> None:
                    for _ in range(rounds):
                        await asyncio.sleep(0)
                    scope.cancel()

                ending = asyncio.ensure_future(end())
                async with session:
                    answer = await session.run("Look.")
                    assert isinstance(answer, RunResult)
            await ending
            assert session.is_closed
            assert session.history.in_flight is None
            assert session.history.ledger.pending == ()
            async with providers.session(OPENAI, tools=[look_up], history=session.history) as again:
                assert (await again.run("And now?")).stop == "stop"
        assert providers.refused == []


def test_many_sessions_at_once_do_not_hear_of_each_other() -> None:
    async def scene(providers: SimulatedProviders) -> None:
        async def remember(n: int, context: ToolContext) -> str:
            return f"{context.session_id} has {n}"

        async def one(number: int) -> None:
            target = TARGETS[number % len(TARGETS)]
            async with providers.session(target, tools=[tool(remember, description="Remember.")]) as session:
                answer = await session.run(f"I am number {number}.")
                assert answer.stop == "stop", (target, answer.failure)
                texts = [result.text for turn in session.history.turns for result in turn.results]
                assert len(texts) == 5
                assert all(text.startswith(f"{session.id} has") for text in texts)
                assert session.history.turns[0].text == f"I am number {number}."
                others = [turn for turn in session.history.turns if "number" in turn.text][1:]
                assert all(f"number {number}." in turn.text for turn in others)

        await asyncio.gather(*(one(number) for number in range(50)))
        assert providers.refused == []

    rules = [calling(n, name="remember", results=n) for n in range(5)]
    run_with_providers(scene, {"rules": rules})


def test_settings_of_the_stage_are_those_that_are_meant() -> None:
    """The suites rely on them: nothing in them waits long."""
    assert QUICK.grace <= 1
    assert PATIENT.retry_seconds <= 5
