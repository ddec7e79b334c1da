"""A stream between two sides of one protocol that its provider ends in order, but without the event that ends it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolglot


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (event.get("type", "message").encode(), json.dumps(event).encode())
        for event in events
    )


MESSAGE = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": []}
BEGUN = {
    "anthropic": sse(
        {"type": "message_start", "message": {**MESSAGE, "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
        {"type": "content_block_stop", "index": 0},
    ),
    "openai": b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    b'"delta":{"role":"assistant","content":"hi"},"finish_reason":null}]}\n\n',
    "gemini": b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"index":0}]}\n\n',
    "ollama": b'{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"hi"},'
    b'"done":false}\n',
}
ENDS = {"anthropic": b"message_stop", "openai": b"[DONE]", "gemini": b"finishReason", "ollama": b'"done":true'}


def test_a_chat_stream_with_neither_a_reason_nor_done_was_cut_and_ends_as_an_error() -> None:
    translator = toolglot.StreamTranslator(source="openai", target="openai")
    assert translator.feed(BEGUN["openai"]) == BEGUN["openai"], "as it came"
    assert b'"error"' in translator.finish()
    assert translator.failure is not None
    assert "cut off" in translator.failure.message


@pytest.mark.parametrize("target", ["anthropic", "openai_responses", "gemini"])
def test_a_chat_stream_that_was_cut_is_an_error_for_other_clients_too(target: str) -> None:
    translator = toolglot.StreamTranslator(source="openai", target=target)
    assert b"error" in translator.feed(BEGUN["openai"]) + translator.finish()
    assert translator.failure is not None


@pytest.mark.parametrize("protocol", sorted(BEGUN.keys() - {"openai"}))
def test_a_stream_without_its_end_gets_one_at_home_too(protocol: str) -> None:
    translator = toolglot.StreamTranslator(source=protocol, target=protocol)
    assert translator.feed(BEGUN[protocol]) == BEGUN[protocol], "as it came"
    assert ENDS[protocol] in translator.finish()
    assert translator.failure is None
    assert translator.reply.turn.text == "hi"
    assert any(entry.action == "assumed" for entry in translator.report)
