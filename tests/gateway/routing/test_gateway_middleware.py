"""The chain of seed 003 in the gateway: what steps see, what they may change, and what becomes of their errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolglot
from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import gateway
from toolglot import InputError
from toolglot.gateway.routing.middleware_chain import load_steps
from toolglot.simulator import serve
from toolglot.simulator.serving import Server

SCRIPT = {"rules": [{"when": {"results": 0}, "reply": {"text": "I look.", "calls": 1}}]}
MODEL = "mistral/mistral-large-latest"


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve(SCRIPT) as server:
        yield server


class Step:
    """Notes what it sees."""

    def __init__(self) -> None:
        self.requests: list[toolglot.Request] = []
        self.responses: list[toolglot.Response] = []

    def process_request(self, request: toolglot.Request) -> None:
        self.requests.append(request)

    def process_response(self, response: toolglot.Response) -> None:
        self.responses.append(response)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", ["anthropic", "openai", "openai_responses", "gemini", "ollama"])
def test_a_step_sees_the_request_and_the_reply_of_every_client(simulated: Server, protocol: str, stream: bool) -> None:
    step = Step()
    with gateway(simulated, middleware=[step]) as served:
        path, body = request_of(protocol, MODEL, stream=stream)
        assert ask(served, path, body).status == 200
        assert served.records[-1].response.error == ""
    (request,), (response,) = step.requests, step.responses
    assert request.provider_id == "mistral"
    assert request.model == MODEL
    assert "a.txt" in str(request.messages)
    assert [call.name for call in response.tool_calls] == ["read_file"]
    assert response.request is request
    assert "read_file" in str(response.body)


def test_a_step_changes_what_the_model_gets_and_what_the_client_gets(simulated: Server) -> None:
    class Polite(Step):
        def process_request(self, request: toolglot.Request) -> None:
            request.messages[-1]["content"] += " Please."
            request.tools = [*(request.tools or []), {"name": "thank", "input_schema": {"type": "object"}}]

        def process_response(self, response: toolglot.Response) -> None:
            response.body["content"][0]["text"] = "I look, gladly."

    with gateway(simulated, middleware=[Polite()]) as served:
        path, body = request_of("anthropic", MODEL)
        got = ask(served, path, body)
    sent = simulated.requests[-1].body
    assert sent["messages"][-1]["content"] == "What is in a.txt? Please."
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["read_file", "thank"]
    assert got.body["content"][0]["text"] == "I look, gladly."


def test_a_step_may_send_a_request_to_another_model(simulated: Server) -> None:
    class Elsewhere(Step):
        def process_request(self, request: toolglot.Request) -> None:
            request.model = "anthropic/claude-sonnet-4-5"

    with gateway(simulated, middleware=[Elsewhere()]) as served:
        path, body = request_of("openai", MODEL)
        got = ask(served, path, body)
    assert got.headers["x-toolglot-upstream"] == "anthropic/claude-sonnet-4-5"
    assert simulated.requests[-1].provider == "anthropic"


def test_a_step_may_refuse(simulated: Server) -> None:
    class Strict(Step):
        def process_request(self, request: toolglot.Request) -> None:  # noqa: ARG002
            raise InputError("no files today", path="$.tools", hint="ask tomorrow")

    with gateway(simulated, middleware=[Strict()]) as served:
        path, body = request_of("anthropic", MODEL)
        got = ask(served, path, body)
    assert got.status == 400
    assert "no files today" in got.body["error"]["message"]
    assert simulated.requests == []


def test_steps_of_the_configuration_are_found_by_name(
    simulated: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_steps.py").write_text(
        "class Shout:\n"
        "    def process_request(self, request):\n"
        "        request.messages[-1]['content'] = request.messages[-1]['content'].upper()\n"
        "    def process_response(self, response): pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with gateway(simulated, settings='middleware = ["my_steps:Shout"]') as served:
        path, body = request_of("anthropic", MODEL)
        assert ask(served, path, body).status == 200
    assert simulated.requests[-1].body["messages"][-1]["content"] == "WHAT IS IN A.TXT?"


@pytest.mark.parametrize("name", ["no_such_module:Step", "json:NoSuchThing", "json", ":x", "json:"])
def test_a_step_that_cannot_be_found_is_reported_at_the_start(name: str) -> None:
    with pytest.raises(InputError, match=r"package\.module:Name|cannot load"):
        load_steps([name])


@pytest.mark.parametrize("left", [None, [], "text"])
def test_a_step_that_leaves_no_reply_is_an_error_of_the_gateway(simulated: Server, left: Any) -> None:
    class Lost(Step):
        def process_response(self, response: toolglot.Response) -> None:
            response.body = left

    with gateway(simulated, middleware=[Lost()]) as served:
        path, body = request_of("anthropic", MODEL)
        got = ask(served, path, body)
    assert got.status == 500
    assert "middleware" in got.body["error"]["message"]


def test_a_step_that_fails_on_what_was_streamed_does_not_cut_the_stream(simulated: Server) -> None:
    class Late(Step):
        def process_response(self, response: toolglot.Response) -> None:  # noqa: ARG002
            raise InputError("too late")

    with gateway(simulated, middleware=[Late()]) as served:
        path, body = request_of("anthropic", MODEL, stream=True)
        got = ask(served, path, body)
        assert got.events[-1] == {"type": "message_stop"}
        assert "too late" in served.records[-1].response.error
