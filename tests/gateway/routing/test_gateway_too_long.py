"""Conversations that are too long: refused before they are sent or by the provider, in the client's own words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest

from support.gateway.http_client import Got, ask
from support.gateway.served_gateway import UPSTREAMS, gateway
from toolglot.protocols.base import codec
from toolglot.protocols.errors.overflow import counts_of
from toolglot.simulator import Server, serve

LONG: Final = "one more word " * 4_000
"""12,000 words."""
SHORT: Final = "hello"
MODELS: Final = {
    "anthropic": "claude-opus-4-5",
    "openai_chat": "gpt-4.1",
    "openai_responses": "gpt-4.1",
    "gemini": "gemini-2.5-flash",
    "mistral": "mistral-large-latest",
    "deepseek": "deepseek-chat",
    "kimi": "kimi-k2.5",
    "ollama": "qwen3",
    "cohere": "command-a-03-2025",
    "bedrock": "anthropic.claude-opus-4-5-v1:0",
    "xai": "grok-4",
}
COUNTED: Final = {"anthropic", "openai_chat", "gemini", "mistral", "deepseek", "kimi", "cohere", "xai"}
"""Upstreams whose refusals name both numbers."""
WINDOW: Final = 8_000


class Client(NamedTuple):
    """A client of a protocol: its request, and what makes real clients of it compact."""

    protocol: str
    path: str
    body: Callable[[str, str, bool], Any]
    """By model, text and whether it streams."""
    is_too_long: Callable[[int, Any], bool]


def _messages(model: str, text: str, stream: bool) -> dict[str, Any]:
    return {"model": model, "max_tokens": 100, "stream": stream, "messages": [{"role": "user", "content": text}]}


def _responses(model: str, text: str, stream: bool) -> dict[str, Any]:
    return {"model": model, "stream": stream, "input": [{"role": "user", "content": text}]}


def _gemini(_model: str, text: str, _stream: bool) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": text}]}]}


def _bedrock(_model: str, text: str, _stream: bool) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"text": text}]}]}


def _plain(model: str, text: str, stream: bool) -> dict[str, Any]:
    return {"model": model, "stream": stream, "messages": [{"role": "user", "content": text}]}


CLIENTS: Final = {
    client.protocol: client
    for client in (
        Client(
            "anthropic",
            "/v1/messages",
            _messages,
            lambda status, body: (
                status == 400
                and body["error"]["type"] == "invalid_request_error"
                and body["error"]["message"].startswith("prompt is too long")
            ),
        ),
        Client(
            "openai_chat",
            "/v1/chat/completions",
            _plain,
            lambda status, body: status == 400 and body["error"]["code"] == "context_length_exceeded",
        ),
        Client(
            "openai_responses",
            "/v1/responses",
            _responses,
            lambda status, body: (
                status == 400
                and body["error"]["code"] == "context_length_exceeded"
                and "exceeds the context window" in body["error"]["message"]
            ),
        ),
        Client(
            "gemini",
            "/v1beta/models/{model}:generateContent",
            _gemini,
            lambda status, body: (
                status == 400
                and body["error"]["status"] == "INVALID_ARGUMENT"
                and "exceeds the maximum number of tokens" in body["error"]["message"]
            ),
        ),
        Client(
            "bedrock",
            "/model/{model}/converse",
            _bedrock,
            lambda status, body: status == 400 and "Input is too long for requested model" in body["message"],
        ),
        Client(
            "cohere", "/v2/chat", _plain, lambda status, body: status == 400 and "too many tokens" in body["message"]
        ),
        Client(
            "ollama",
            "/api/chat",
            _plain,
            lambda status, body: status == 400 and "exceeded max context length" in body["error"],
        ),
    )
}


def send(served: Any, client: Client, model: str, text: str, *, stream: bool = False) -> Got:
    path = client.path.format(model=model)
    if stream:
        path = path.replace(":generateContent", ":streamGenerateContent?alt=sse").replace(
            "/converse", "/converse-stream"
        )
    headers = {"anthropic-version": "2023-06-01"} if client.protocol == "anthropic" else None
    return ask(served, path, client.body(model, text, stream), headers=headers)


@pytest.fixture(scope="module")
def narrow() -> Iterator[Server]:
    """Every model takes 8,000 tokens."""
    with serve({"windows": {"*": WINDOW}}) as server:
        yield server


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("upstream", MODELS)
def test_the_refusal_of_every_provider_reaches_every_client_in_its_own_words(
    upstream: str, stream: bool, narrow: Server
) -> None:
    models = {"m": f"{upstream}/{MODELS[upstream]}"}
    with gateway(narrow, models=models) as served:
        for client in CLIENTS.values():
            got = send(served, client, "m", LONG, stream=stream)
            assert client.is_too_long(got.status, got.body), (client.protocol, got.status, got.body)
            failure = codec(client.protocol).errors.decode(got.status, got.body)
            assert failure is not None
            assert failure.kind == "context_overflow"
            if upstream in COUNTED and client.protocol in ("anthropic", "openai_chat", "gemini", "cohere"):
                counts = counts_of(json.dumps(got.body, ensure_ascii=False))
                assert counts is not None, (client.protocol, got.body)
                assert counts.window == WINDOW < counts.tokens
            assert send(served, client, "m", SHORT, stream=stream).status == 200


def test_a_reply_that_does_not_fit_is_named_for_anthropics_clients(narrow: Server) -> None:
    with gateway(narrow, models={"m": "vllm/some-model"}) as served:
        body = {"model": "m", "max_tokens": WINDOW, "messages": [{"role": "user", "content": SHORT}]}
        got = ask(served, "/v1/messages", body, headers={"anthropic-version": "2023-06-01"})
        assert got.status == 400
        assert got.body["error"]["message"].startswith("input length and `max_tokens` exceed context limit: ")
        assert ask(served, "/v1/messages", {**body, "max_tokens": 100}).status == 200


def own_window(tokens: int = WINDOW) -> str:
    profiles = {target or provider for provider, target in UPSTREAMS.values()}
    return "\n".join(f'[profiles.{name}.rules]\n"context.window" = {tokens}' for name in sorted(profiles))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_what_cannot_fit_is_refused_before_it_is_sent(stream: bool) -> None:
    with serve() as wide, gateway(wide, models={"m": "openai_chat/gpt-4.1"}, upstreams=own_window()) as served:
        for client in CLIENTS.values():
            got = send(served, client, "m", LONG, stream=stream)
            assert client.is_too_long(got.status, got.body), (client.protocol, got.status, got.body)
            assert got.headers.get("x-should-retry") == "false"
        assert [request for request in wide.requests if request.method == "POST"] == []
        text = json.dumps(send(served, CLIENTS["anthropic"], "m", LONG).body)
        assert f"prompt is too long: 9000 tokens > {WINDOW} maximum" in text
        assert "context.window" in text
        assert send(served, CLIENTS["anthropic"], "m", SHORT).status == 200


def test_the_windows_of_known_models_count() -> None:
    with serve() as wide, gateway(wide, models={"m": "openai_chat/gpt-4"}) as served:
        assert send(served, CLIENTS["openai_chat"], "m", LONG).status == 400
        assert send(served, CLIENTS["openai_chat"], "m", "one more word " * 2_600).status == 200  # it could fit
        assert len([request for request in wide.requests if request.method == "POST"]) == 1


def test_a_model_whose_window_is_not_known_is_asked() -> None:
    with serve() as wide, gateway(wide, models={"m": "vllm/some-model"}) as served:
        assert send(served, CLIENTS["openai_chat"], "m", LONG).status == 200


@pytest.mark.parametrize(
    ("client", "upstream", "extra"),
    [
        (
            "anthropic",
            "anthropic/claude-opus-4-5",
            {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
        ),
        ("openai_responses", "openai_responses/gpt-4.1", {"truncation": "auto"}),
    ],
)
def test_a_conversation_that_the_provider_shortens_is_sent(client: str, upstream: str, extra: dict[str, Any]) -> None:
    found = CLIENTS[client]
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "context-management-2025-06-27"}
    with serve() as wide, gateway(wide, models={"m": upstream}, upstreams=own_window()) as served:
        body = {**found.body("m", LONG, False), **extra}
        assert ask(served, found.path, body, headers=headers).status == 200
        assert ask(served, found.path, found.body("m", LONG, False), headers=headers).status == 400


# --- several upstreams ------------------------------------------------------------------------------


def windows(**tokens: int) -> str:
    return "\n".join(f'[profiles.{name}.rules]\n"context.window" = {number}' for name, number in tokens.items())


def test_a_fallback_with_a_larger_window_takes_what_the_first_cannot() -> None:
    chain = '["mistral/mistral-large-latest", "cohere/command-a-03-2025", "anthropic/claude-opus-5"]'
    own = windows(mistral=WINDOW, cohere=WINDOW, anthropic=100_000)
    with serve() as wide, gateway(wide, models={"m": chain}, upstreams=own) as served:
        got = send(served, CLIENTS["openai_chat"], "m", LONG)
        assert got.status == 200
        assert [request.provider for request in wide.requests] == ["anthropic"]
        assert served.records[-1].route.upstream == "anthropic"
        assert send(served, CLIENTS["openai_chat"], "m", SHORT).status == 200
        assert [request.provider for request in wide.requests] == ["anthropic", "mistral"]


def test_after_a_refusal_of_the_provider_only_larger_windows_are_tried(narrow: Server) -> None:
    chain = '["mistral/mistral-large-latest", "cohere/command-a-03-2025", "kimi/kimi-k3"]'
    own = windows(mistral=50_000, cohere=40_000, kimi=60_000)
    before = len(narrow.requests)
    with gateway(narrow, models={"m": chain}, upstreams=own) as served:
        got = send(served, CLIENTS["anthropic"], "m", LONG)
    assert got.status == 400
    assert [request.provider for request in list(narrow.requests)[before:]] == ["mistral", "kimi"]
    assert got.body["error"]["message"].startswith("prompt is too long: ")
