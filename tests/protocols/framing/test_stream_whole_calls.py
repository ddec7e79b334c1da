"""Clients that read each call from one event, calls that only look whole, and reasons to stop that are not true."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolglot import StreamTranslator, convert, convert_reply, profiles
from toolglot.conversation import Block, Reply, StopReason, Text, ToolCall, Turn, Usage
from toolglot.conversation.events import BlockEnded, BlockStarted, Event, Finished, InputDelta, Started
from toolglot.conversation.reply_events import of_reply
from toolglot.protocols.base import codec

LOOK = ToolCall("call_0a1b2c3d4", "look", {"city": "Zürich", "days": 3})
NOW = ToolCall("call_1a1b2c3d4", "now", {})
PATCH = ToolCall("call_2a1b2c3d4", "patch", type="custom", raw_input="*** Begin")
COST = Usage(input_tokens=12, output_tokens=5)


def reply(*blocks: Block, stop: StopReason = "tool_calls") -> Reply:
    return Reply(Turn("assistant", blocks), stop, COST, "reply_1", "m")


def stream_of(protocol: str, events: list[Event]) -> bytes:
    return codec(protocol).stream.Encoder().write(events)


def chunks_of(data: bytes) -> list[dict[str, Any]]:
    lines = [line[6:] for line in data.decode().splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


def translate(source: str, target: str, data: bytes) -> bytes:
    translator = StreamTranslator(source=source, target=target)
    return translator.feed(data) + translator.finish()


@pytest.mark.parametrize("source", ["anthropic", "openai", "openai_responses", "bedrock"])
def test_a_client_of_mistral_gets_each_call_in_one_chunk(source: str) -> None:
    protocol = profiles.get(source).protocol
    events = of_reply(reply(Text("I look."), LOOK, NOW), piece=3)
    chunks = chunks_of(translate(source, "mistral", stream_of(protocol, list(events))))
    calls = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert [call["index"] for call in calls] == [0, 1]
    assert [call["function"]["name"] for call in calls] == ["look", "now"]
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [LOOK.arguments, {}]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["usage"]["completion_tokens"] == 5, "the last chunk says what it cost"


def test_a_call_that_was_cut_is_nothing_to_a_client_of_mistral() -> None:
    opened = ToolCall("toolu_1", "look")
    cut = ToolCall("toolu_1", "look", raw_input='{"city":"Zü')
    events: list[Event] = [
        Started("msg_1", "m"),
        BlockStarted(opened),
        InputDelta('{"city":"Zü'),
        BlockEnded(cut, cut=True),
    ]
    chunks = chunks_of(translate("anthropic", "mistral", stream_of("anthropic", [*events, Finished("length")])))
    assert not any(chunk["choices"][0]["delta"].get("tool_calls") for chunk in chunks)
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"


def test_a_free_text_call_comes_whole_too() -> None:
    data = stream_of("openai_responses", list(of_reply(reply(PATCH), piece=2)))
    chunks = chunks_of(translate("openai_responses", "mistral", data))
    (call,) = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert call["custom"] == {"name": "patch", "input": "*** Begin"}


def test_the_stream_of_mistral_itself_is_forwarded_as_it_is() -> None:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "mistral-large-latest"}
    function = {"name": "look", "arguments": '{"city": "Oslo"}'}
    call = {"id": "abcDEF123", "index": 0, "function": function}
    first = {**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}
    last = {**head, "choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in (first, last)) + b"data: [DONE]\n\n"
    assert translate("mistral", "mistral", data) == data


# --- calls that only look whole ---------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    {"type": "function", "function": {"name": "look", "parameters": SCHEMA}},
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
]
REQUEST = {"model": "m", "messages": [{"role": "user", "content": "go"}], "tools": TOOLS}


def answer(name: str, arguments: dict[str, Any], stop: str) -> dict[str, Any]:
    call = {"type": "tool_use", "id": "toolu_01", "name": name, "input": arguments}
    usage = {"input_tokens": 1, "output_tokens": 1}
    kept = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "stop_sequence": None}
    return {**kept, "content": [call], "stop_reason": stop, "usage": usage}


@pytest.mark.parametrize(
    ("name", "arguments", "stop", "is_call"),
    [
        ("look", {}, "max_tokens", False),
        ("look", {}, "tool_use", True),
        ("look", {"city": "Oslo"}, "max_tokens", True),
        ("now", {}, "max_tokens", True),
    ],
)
def test_a_call_without_its_arguments_in_an_answer_that_was_cut_is_not_run_F1(
    name: str, arguments: dict[str, Any], stop: str, is_call: bool
) -> None:
    request = convert(REQUEST, source="openai_chat", target="anthropic", model="claude-sonnet-4-5")
    out = convert_reply(answer(name, arguments, stop), source="anthropic", target="openai_chat", request=request)
    message = out.body["choices"][0]["message"]
    assert bool(message.get("tool_calls")) == is_call
    if not is_call:
        assert not message["content"]  # no word that the model did not write
        assert out.body["choices"][0]["finish_reason"] == "length"
        assert any("cut off" in entry.reason for entry in out.report.entries)


def test_a_call_in_the_text_is_why_the_answer_ended_J1() -> None:
    request = convert(REQUEST, source="openai_chat", target="vllm", model="Qwen/Qwen3-8B")
    text = 'I look.\n<tool_call>\n{"name": "look", "arguments": {"city": "Oslo"}}\n</tool_call>'
    kept = {"id": "c1", "created": 1, "model": "Qwen/Qwen3-8B"}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {**kept, "object": "chat.completion", "choices": [choice]}
    whole = convert_reply(body, source="vllm", target="openai_chat", request=request).body["choices"][0]
    assert whole["finish_reason"] == "tool_calls"
    assert whole["message"]["tool_calls"][0]["function"]["name"] == "look"
    deltas = [{"role": "assistant", "content": text[:20]}, {"content": text[20:]}, {}]
    data = b""
    for index, delta in enumerate(deltas):
        reason = "stop" if index == 2 else None
        chunk = {**kept, "object": "chat.completion.chunk"}
        chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": reason}]
        data += b"data: " + json.dumps(chunk).encode() + b"\n\n"
    translator = StreamTranslator(source="vllm", target="openai_chat", request=request)
    chunks = chunks_of(translator.feed(data + b"data: [DONE]\n\n") + translator.finish())
    reasons = [chunk["choices"][0].get("finish_reason") for chunk in chunks if chunk["choices"]]
    assert [reason for reason in reasons if reason] == ["tool_calls"]
