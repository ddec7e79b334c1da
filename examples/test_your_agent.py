"""Tests of a small agent against the simulator: a tool loop, a provider that is busy, a model that is cut off.

Run it with pytest, or with python.
"""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from toolglot.simulator import Server

pytest_plugins = ["toolglot.simulator.pytest_plugin"]

Tools = dict[str, Callable[..., str]]
TOOL = {
    "name": "get_weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def send(url: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Send one request to Anthropic's API, and once more if the provider is busy."""
    body = {"model": "claude-opus-5", "max_tokens": 1000, "messages": messages, "tools": [TOOL]}
    headers = {"x-api-key": "any", "anthropic-version": "2023-06-01"}
    for is_last in (False, True):
        request = urllib.request.Request(f"{url}/v1/messages", json.dumps(body).encode(), headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request) as response:  # noqa: S310
                reply: dict[str, Any] = json.load(response)
                return reply
        except urllib.error.HTTPError as error:
            with error:
                if is_last or error.code not in (429, 529):
                    raise
    raise AssertionError


def agent(question: str, url: str, tools: Tools) -> str:
    """Send the question, run the tools that the model calls, and return its answer."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    while True:
        reply = send(url, messages)
        if reply["stop_reason"] == "max_tokens":
            return "The answer was cut off."
        messages.append({"role": "assistant", "content": reply["content"]})  # thinking and its signature included
        calls = [block for block in reply["content"] if block["type"] == "tool_use"]
        if not calls:
            return "".join(block["text"] for block in reply["content"] if block["type"] == "text")
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": tools[call["name"]](**call["input"])}
            for call in calls
        ]
        messages.append({"role": "user", "content": results})


def weather(city: str) -> str:
    return f"7 degrees in {city}"


def test_the_agent_runs_the_tool_and_answers(toolglot_simulator: Server) -> None:
    answer = agent("The weather?", toolglot_simulator.url("anthropic"), {"get_weather": weather})
    assert answer == "get_weather says: 7 degrees in Bonn"  # the default script quotes the result
    assert [request.status for request in toolglot_simulator.requests] == [200, 200]


def test_the_agent_runs_many_calls_at_once(toolglot_simulator: Server) -> None:
    calls = [{"name": "get_weather", "arguments": {"city": city}} for city in ("Bonn", "Ulm")]
    toolglot_simulator.script(
        rules=[
            {"when": {"results": 0}, "reply": {"calls": calls}},
            {"when": {"results": 2}, "reply": {"text": "Cold in both."}},
        ]
    )
    assert agent("?", toolglot_simulator.url("anthropic"), {"get_weather": weather}) == "Cold in both."


def test_the_agent_survives_a_busy_provider(toolglot_simulator: Server) -> None:
    toolglot_simulator.fault(529)
    assert "7 degrees" in agent("?", toolglot_simulator.url("anthropic"), {"get_weather": weather})
    assert toolglot_simulator.unused() == []  # the fault was injected


def test_the_agent_does_not_run_a_call_that_was_cut(toolglot_simulator: Server) -> None:
    toolglot_simulator.fault("truncated_call")
    assert agent("?", toolglot_simulator.url("anthropic"), {}) == "The answer was cut off."


def test_thinking_that_is_edited_is_refused_as_the_provider_does(toolglot_simulator: Server) -> None:
    url = toolglot_simulator.url("anthropic")
    messages: list[dict[str, Any]] = [{"role": "user", "content": "The weather?"}]
    content = send(url, messages)["content"]
    content[0]["thinking"] += " Or not."
    result = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": "7"}
    messages += [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    with pytest.raises(urllib.error.HTTPError) as found:
        send(url, messages)
    found.value.close()
    assert "cannot be modified" in toolglot_simulator.requests[-1].error


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-p", "no:cacheprovider"]))
