"""Streams that stay in their protocol and are not forwarded to their end as they came: nothing comes twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.javascript_clients import JavaScript
from toolglot.protocols.openai_responses.stream_writer import CLOSING_EVENTS
from toolglot.translate.streams import StreamTranslator

USAGE = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
RESPONSE = {
    "id": "resp_1",
    "created_at": 1,
    "object": "response",
    "model": "gpt-5.5",
    "status": "in_progress",
    "output": [],
}
PART = {"type": "output_text", "text": "", "annotations": []}
FINISHED_PART = {**PART, "text": "Hello"}
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "f",
    "arguments": "",
    "status": "in_progress",
}
TEXT_EVENTS: list[dict[str, Any]] = [
    {"type": "response.created", "response": RESPONSE},
    {"type": "response.in_progress", "response": RESPONSE},
    {"type": "response.output_item.added", "output_index": 0, "item": MESSAGE},
    {"type": "response.content_part.added", "item_id": "msg_1", "output_index": 0, "content_index": 0, "part": PART},
    {
        "type": "response.output_text.delta",
        "item_id": "msg_1",
        "output_index": 0,
        "content_index": 0,
        "delta": "Hello",
        "logprobs": [],
    },
    {
        "type": "response.output_text.done",
        "item_id": "msg_1",
        "output_index": 0,
        "content_index": 0,
        "text": "Hello",
        "logprobs": [],
    },
    {
        "type": "response.content_part.done",
        "item_id": "msg_1",
        "output_index": 0,
        "content_index": 0,
        "part": FINISHED_PART,
    },
    {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": {**MESSAGE, "status": "completed", "content": [FINISHED_PART]},
    },
]
CALL_EVENTS: list[dict[str, Any]] = [
    *TEXT_EVENTS,
    {"type": "response.output_item.added", "output_index": 1, "item": CALL},
    {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 1, "delta": "{}"},
    {"type": "response.function_call_arguments.done", "item_id": "fc_1", "output_index": 1, "arguments": "{}"},
    {
        "type": "response.output_item.done",
        "output_index": 1,
        "item": {**CALL, "arguments": "{}", "status": "completed"},
    },
]


def frames_of(events: list[dict[str, Any]]) -> list[bytes]:
    return [
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n".encode()
        for number, event in enumerate(events)
    ]


def read_events(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: ")]


@pytest.mark.parametrize("end", range(1, len(CALL_EVENTS) + 1))
@pytest.mark.parametrize("is_broken", [False, True])
def test_wherever_a_response_ends_its_events_are_numbered_and_no_end_comes_twice(end: int, is_broken: bool) -> None:
    translator = StreamTranslator(source="openai_responses", target="openai_responses")
    out = b"".join([translator.feed(frame) for frame in frames_of(CALL_EVENTS)[:end]])
    out += translator.fail() if is_broken else translator.finish()
    events = read_events(out)
    numbers = [event["sequence_number"] for event in events]
    assert numbers == sorted(set(numbers))
    ends = [(event["type"], event.get("output_index")) for event in events if event["type"].endswith(".done")]
    assert len(ends) == len(set(ends))


def test_what_ends_as_it_should_is_forwarded_as_it_came() -> None:
    items = [event["item"] for event in CALL_EVENTS if event["type"] == "response.output_item.done"]
    response = {**RESPONSE, "status": "completed", "output": items, "usage": USAGE}
    frames = frames_of([*CALL_EVENTS, {"type": "response.completed", "response": response}])
    translator = StreamTranslator(source="openai_responses", target="openai_responses")
    assert b"".join([translator.feed(frame) for frame in frames]) + translator.finish() == b"".join(frames)


def test_a_last_response_without_its_items_is_forwarded_as_the_backend_of_codex_writes_it() -> None:
    frames = frames_of(
        [*CALL_EVENTS, {"type": "response.completed", "response": {**RESPONSE, "status": "completed", "usage": USAGE}}]
    )
    translator = StreamTranslator(source="openai_responses", target="openai_responses")
    assert b"".join([translator.feed(frame) for frame in frames]) + translator.finish() == b"".join(frames)
    assert len(translator.report) == 0
    assert [call.name for call in translator.calls] == ["f"]


def test_a_last_response_without_its_items_is_healed_where_an_item_did_not_end() -> None:
    last = {"type": "response.completed", "response": {**RESPONSE, "status": "completed", "usage": USAGE}}
    translator = StreamTranslator(source="openai_responses", target="openai_responses")
    out = b"".join([translator.feed(frame) for frame in frames_of([*CALL_EVENTS[:-1], last])]) + translator.finish()
    assert [item["type"] for item in read_events(out)[-1]["response"]["output"]] == ["message", "function_call"]
    assert len(translator.report) == 1


def test_the_end_of_a_part_waits_for_the_end_of_its_item() -> None:
    translator = StreamTranslator(source="openai_responses", target="openai_responses")
    waited = [
        event["type"]
        for event, frame in zip(CALL_EVENTS, frames_of(CALL_EVENTS), strict=True)
        if translator.feed(frame) == b"" and event["type"] in CLOSING_EVENTS
    ]
    assert waited == [event["type"] for event in CALL_EVENTS if event["type"] in CLOSING_EVENTS]


def test_calls_of_one_chunk_at_one_index_are_written_at_several() -> None:
    calls = [
        {"index": 0, "id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for id in ("aaaaaaaa1", "bbbbbbbb2")
    ]
    chunks = [
        {"index": 0, "delta": {"role": "assistant", "content": "Hi"}, "finish_reason": None},
        {"index": 0, "delta": {"tool_calls": calls}, "finish_reason": "tool_calls"},
    ]
    head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    data = "".join([f"data: {json.dumps({**head, 'choices': [chunk]})}\n\n" for chunk in chunks]) + "data: [DONE]\n\n"
    for source in ("mistral", "openai"):
        translator = StreamTranslator(source=source, target="openai")
        out = translator.feed(data.encode()) + translator.finish()
        lines = [json.loads(line[6:]) for line in out.decode().splitlines() if line.startswith("data: {")]
        deltas = [call for line in lines for call in line["choices"][0]["delta"].get("tool_calls") or []]
        assert {call["id"]: call["index"] for call in deltas if call.get("id")} == {"aaaaaaaa1": 0, "bbbbbbbb2": 1}
        assert any("same index" in str(entry) for entry in translator.report.entries)


PROGRAMMATIC: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    },
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"city": "Oslo"}},
    },
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 9},
    },
    {"type": "message_stop"},
]


@pytest.mark.parametrize("reader", ["anthropic", "ai/anthropic"])
def test_a_call_that_begins_with_its_input_stays_as_it_came_and_is_read(javascript: JavaScript, reader: str) -> None:
    data = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in PROGRAMMATIC)
    translator = StreamTranslator(source="anthropic", target="anthropic")
    assert translator.feed(data) + translator.finish() == data
    assert len(translator.report) == 0
    got = javascript.read(reader, data, translator.calls)
    assert [(call["name"], call["input"]) for call in got["calls"]] == [("look", {"city": "Oslo"})]
