"""What is forgotten while a stream runs: the bodies that only a request to another upstream would need."""

from __future__ import annotations

from typing import Any

import msgspec

import toolglot
from toolglot.gateway.http.requests import ClientRequest
from toolglot.translate.requests import ReceivedRequest, read_request

BODY: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 10,
    "stream": True,
    "messages": [{"role": "user", "content": "Look."}],
    "tools": [{"name": "mcp.look/up", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}],
}
CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "", "arguments": "{}"}}


def received() -> ReceivedRequest:
    return read_request(msgspec.json.encode(BODY), source="anthropic")


def streamed(request: toolglot.ConvertedRequest, name: str) -> bytes:
    call = {**CALL, "function": {"name": name, "arguments": "{}"}}
    chunks = [
        {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}}]},
        {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    translator = toolglot.StreamTranslator(source="openai", target="anthropic", request=request)
    data = b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
    return translator.feed(data) + translator.finish()


def test_a_reply_is_translated_the_same_when_the_body_of_its_request_is_forgotten() -> None:
    kept, dropped = (received().for_target("openai", model="gpt-4.1") for _ in range(2))
    name = kept.body["tools"][0]["function"]["name"]
    assert name != "mcp.look/up"
    dropped.drop_body()
    assert (dropped.body, dropped.data) == ({}, b"")
    assert streamed(dropped, name) == streamed(kept, name)
    assert b"mcp.look/up" in streamed(dropped, name)


def test_the_conversation_stays_when_its_body_is_forgotten() -> None:
    request = received()
    before = request.original
    request.drop_body()
    assert request.fields == {}
    assert request.original is before


def test_the_size_of_a_body_that_was_forgotten_is_known() -> None:
    request = ClientRequest(None, "POST", "/v1/messages", "/v1/messages", "", {}, 0)  # type: ignore[arg-type]
    request.body = b"x" * 100
    request.drop_body()
    request.drop_body()
    assert (request.body, request.body_bytes) == (b"", 100)
