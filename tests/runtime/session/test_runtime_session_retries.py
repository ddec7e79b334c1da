"""Sessions that try again or on another model, and what their requests cost."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import Any

import pytest

from support.sessions.session_scripts import ASK_ONCE, CLAUDE, FINE, OPENAI, look_up
from support.sessions.simulated_sessions import (
    RESPONSES,
    SimulatedProviders,
    collect_events,
    run_with_providers,
    simulated_providers,
)
from toolglot import InputError, Options
from toolglot.conversation import Reasoning
from toolglot.runtime.session.events import (
    ModelSwitched,
    RequestStarted,
)
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.models import UpstreamModels
from toolglot.runtime.session.session import Session
from toolglot.runtime.tools.toolbox import ToolContext, tool

# --- tries ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["429,retry_after=0", "503,retry_after=0", "529,retry_after=0", "500,retry_after=0"])
async def test_a_provider_that_is_busy_is_called_again(fault: str) -> None:
    async with simulated_providers(FINE) as providers:
        providers.simulator.fault(fault, times=2)
        async with providers.session(CLAUDE) as session:
            events = await collect_events(session, "Hello")
            assert [event.attempt for event in events if isinstance(event, RequestStarted)] == [1, 2, 3]
            assert session.history.turns[-1].text == "Fine."


async def test_a_provider_is_not_called_for_ever() -> None:
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


async def test_every_fallback_is_called_once_in_order_and_the_chosen_model_stays_where_none_answers() -> None:
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


async def test_an_answer_that_cannot_be_used_is_requested_again() -> None:
    async with simulated_providers() as providers:
        providers.simulator.use({"rules": [{"times": 1, "reply": {"text": "Half", "stop": "error"}}, *FINE["rules"]]})
        async with providers.session("gemini/gemini-2.5-pro") as session:
            answer = await session.run("Hello")
            assert answer.text == "Fine."
            assert len(providers.called) == 2


@pytest.mark.parametrize(("reason", "stop"), [("length", "length"), ("filter", "filter"), ("stop", "stop")])
async def test_why_a_model_stopped_is_reported(reason: str, stop: str) -> None:
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
async def test_a_model_that_takes_tools_in_another_protocol_is_called_in_that(tools: list[Any], path: str) -> None:
    async with simulated_providers() as providers:
        async with providers.session(
            RESPONSES, tools=tools, options=Options(reasoning=Reasoning(effort="low"))
        ) as session:
            assert (await session.run("Hello")).stop == "stop"
            assert providers.simulator.requests[-1].path == path
        assert providers.refused == []


# --- what it costs --------------------------------------------------------------------------------


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
