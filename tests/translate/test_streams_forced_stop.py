"""A Chat stream with calls that ends with `stop`: what OpenAI does where a call was forced stays as it came there."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from toolglot import ConvertedRequest, StreamTranslator, convert

HEAD: Final = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
PIECE: Final = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TOOL: Final = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
NAMED: Final = {"type": "function", "function": {"name": "look"}}


def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
    return b"data: %b\n\n" % json.dumps({**HEAD, "choices": choices}).encode()


STREAM: Final = (
    chunk({"role": "assistant", "content": None, "tool_calls": [PIECE]}) + chunk({}, "stop") + b"data: [DONE]\n\n"
)


def request(choice: Any) -> ConvertedRequest:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}], "tools": [TOOL], "tool_choice": choice}
    return convert(body, source="openai", target="openai")


def translate(source: str, converted: ConvertedRequest | None) -> bytes:
    translator = StreamTranslator(source=source, target="openai", request=converted)
    out = translator.feed(STREAM) + translator.finish()
    assert [call.name for call in translator.calls] == ["look"]
    assert translator.reply.stop == "tool_calls"
    assert bool(len(translator.report)) == (out != STREAM)
    return out


@pytest.mark.parametrize("source", ["openai", "azure"])
@pytest.mark.parametrize("choice", [NAMED, "required"])
def test_stop_with_a_call_that_was_forced_stays(source: str, choice: Any) -> None:
    assert translate(source, request(choice)) == STREAM


@pytest.mark.parametrize("source", ["openai", "azure"])
def test_stop_with_calls_stays_where_the_provider_ends_so_and_no_request_is_known(source: str) -> None:
    assert translate(source, None) == STREAM


@pytest.mark.parametrize(
    ("source", "choice"), [("openai", "auto"), ("openai", None), ("openai_compatible", ...), ("vllm", ...)]
)
def test_stop_with_calls_is_fixed_where_nothing_was_forced_or_the_provider_is_not_known_for_it(
    source: str, choice: Any
) -> None:
    out = translate(source, None if choice is ... else request(choice))
    assert b'"finish_reason":"tool_calls"' in out
    assert b'"stop"' not in out
