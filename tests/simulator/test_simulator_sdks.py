"""The real SDKs complete tool loops against the simulator."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic import beta_tool

from sdk import simulated
from sdk.simulated import LOOPS, WEATHER_RESULT
from toolglot.simulator import Server

pytest_plugins = ["toolglot.simulator.pytest_plugin"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", LOOPS)
def test_an_sdk_completes_a_tool_loop(toolglot_simulator: Server, name: str, stream: bool) -> None:
    provider, loop = LOOPS[name]
    steps, text = loop(toolglot_simulator.url(provider), stream=stream)
    assert steps == [("get_weather", {"city": "Bonn"})]
    assert WEATHER_RESULT in text
    assert [request.status for request in toolglot_simulator.requests] == [200, 200]
    assert {request.provider for request in toolglot_simulator.requests} == {provider}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", LOOPS)
def test_an_sdk_runs_several_calls_at_once_and_in_turn(toolglot_simulator: Server, name: str, stream: bool) -> None:
    city = {"name": "get_weather", "arguments": {"city": "Köln", "days": 3}}
    toolglot_simulator.script(
        chunk=3,
        bytes=7,
        rules=[
            {"when": {"results": 0}, "reply": {"text": "I look.", "calls": [city, {"name": "get_weather"}]}},
            {"when": {"results": 2}, "reply": {"calls": 1}},
            {"when": {"results": 3}, "reply": {"text": "All is known: grün."}},
        ],
    )
    provider, loop = LOOPS[name]
    steps, text = loop(toolglot_simulator.url(provider), stream=stream)
    assert steps == [("get_weather", city["arguments"]), *[("get_weather", {"city": "Bonn"})] * 2]
    assert text == "All is known: grün."


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-haiku-4-5", {"type": "enabled", "budget_tokens": 1024}),
        ("claude-opus-5", {"type": "adaptive"}),
        ("claude-fable-5-1", {"type": "adaptive"}),
    ],
)
def test_signed_thinking_comes_back_through_the_sdk(
    toolglot_simulator: Server, model: str, thinking: dict[str, Any], stream: bool
) -> None:
    url = toolglot_simulator.url("anthropic")
    simulated.anthropic(url, stream=stream, model=model, thinking=thinking)
    sent_back = toolglot_simulator.requests[-1].body["messages"][1]["content"][0]
    assert sent_back["type"] == "thinking"
    assert sent_back["signature"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_encrypted_reasoning_comes_back_through_the_sdk(toolglot_simulator: Server, stream: bool) -> None:
    steps, text = simulated.responses(toolglot_simulator.url("openai"), stream=stream, store=False)
    assert steps
    assert WEATHER_RESULT in text
    kinds = [item.get("type") for item in toolglot_simulator.requests[-1].body["input"]]
    assert kinds == [None, "reasoning", "function_call", "function_call_output"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_tool_runner_of_anthropics_sdk_learns_that_there_are_no_threads_and_goes_on(
    toolglot_simulator: Server, stream: bool
) -> None:
    ran: list[str] = []

    @beta_tool
    def get_weather(city: str) -> str:
        """The weather."""
        ran.append(city)
        return WEATHER_RESULT

    with simulated.anthropic_client(toolglot_simulator.url("anthropic")) as client:
        messages: list[Any] = [{"role": "user", "content": "The weather?"}]
        runner: Any = client.beta.messages.tool_runner(
            model="claude-opus-5", max_tokens=1000, tools=[get_weather], messages=messages, stream=stream
        )
        assert WEATHER_RESULT in runner.until_done().content[-1].text
    assert ran == ["Bonn"]
    requests = toolglot_simulator.requests
    assert [(request.status, request.rule) for request in requests] == [(400, "threads"), (200, ""), (200, "")]
    assert ["thread" in request.body for request in requests] == [True, False, False]
