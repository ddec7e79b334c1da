"""Models that a provider serves, or that take tools, on one of its endpoints only: the gateway sends them there."""

from __future__ import annotations

import pytest

from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import Served
from toolglot import ModelProtocolError, convert, lint
from toolglot.simulator.serving import Server

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"


SCRIPT = {"rules": [{"reply": {"text": "Hello."}}]}


@pytest.mark.parametrize(
    ("protocol", "model", "tools", "path", "rule"),
    [
        ("openai", "gpt-5-pro", False, RESPONSES, "openai-only-by-responses"),
        ("anthropic", "gpt-5.1-codex", True, RESPONSES, ""),
        ("openai", "gpt-5.4", True, RESPONSES, "openai-tools-by-responses"),
        ("openai", "gpt-5.4", False, CHAT, ""),
        ("openai", "gpt-4.1", True, CHAT, ""),
        ("openai_responses", "gpt-5-pro", True, RESPONSES, ""),
        ("openai_responses", "gpt-4.1", True, RESPONSES, ""),
        ("openai_responses", "gpt-4o-search-preview", False, CHAT, "openai-responses-only-by-chat"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_model_is_called_on_the_endpoint_that_serves_it(
    protocol: str, model: str, tools: bool, path: str, rule: str, stream: bool, served: Served, simulated: Server
) -> None:
    client_path, body = request_of(protocol, f"openai/{model}", stream=stream)
    if not tools:
        body.pop("tools")
    got = ask(served, client_path, body)
    assert got.status == 200, got.data
    assert b"Hello." in got.data
    sent = simulated.requests[-1]
    assert (sent.path.removeprefix("/openai"), sent.model) == (path, model)
    reasons = [entry.reason for entry in served.records[-1].sent.entries if "in another protocol only" in entry.reason]
    assert [rule in reason for reason in reasons] == ([True] if rule else [])


@pytest.mark.parametrize(
    ("model", "target", "instead"),
    [("gpt-5-pro", "openai", "openai_responses"), ("gpt-4o-search-preview", "openai_responses", "openai")],
)
def test_the_library_names_the_target_that_serves_a_model(model: str, target: str, instead: str) -> None:
    body = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    with pytest.raises(ModelProtocolError, match=f"{model} is served in another protocol only") as refused:
        convert(body, source="anthropic", target=target, model=model)
    assert refused.value.hint == f"send the request to the target {instead!r}"
    sent = convert(body, source="anthropic", target=instead, model=model).body
    assert lint(sent, target=instead) == ()
