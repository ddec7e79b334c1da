"""The accumulator of tool calls of seed 003: R-003-8 and its traps."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from support.translate.translated_streams import (
    ANSWER,
    stream_bytes,
)
from toolglot import (
    StreamTranslator,
    ToolCall,
    ToolCallAccumulator,
)


def test_R_003_8_chunks_add_up_to_calls_and_none_comes_twice() -> None:
    stream = stream_bytes(ANSWER, "openai_chat", 3)
    calls = ToolCallAccumulator("openai_chat")
    drained: list[ToolCall] = []
    for position in range(0, len(stream), 5):
        calls.add_chunk(stream[position : position + 5])
        drained += calls.drain()
    calls.finish()
    drained += calls.drain()
    assert [call.id for call in drained] == ["call_1", "call_2"]
    assert calls.get_completed() == tuple(drained)
    assert calls.drain() == ()
    assert calls.text == "é "
    assert calls.failure is None


SEED_CHUNKS = [
    {"index": 0, "id": "call_abc", "function": {"name": "get_weather", "arguments": ""}},
    {"index": 0, "function": {"arguments": '{"loc'}},
    {"index": 0, "function": {"arguments": 'ation":'}},
    {"index": 0, "function": {"arguments": '"SF"}'}},
]
SEED_JSON = [json.dumps({"choices": [{"delta": {"tool_calls": [call]}}]}) for call in SEED_CHUNKS]


def collect_calls(source: str, written: str, size: int) -> ToolCallAccumulator:
    calls = ToolCallAccumulator(source)
    for position in range(0, len(written), size):
        calls.add_chunk(written[position : position + size])
    return calls


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("source", ["", "openai", "deepseek", "anthropic"])
def test_R_003_8_the_seeds_json_chunks_add_up_to_a_call_before_the_stream_ends(source: str, size: int) -> None:
    (call,) = collect_calls(source, "\n".join(SEED_JSON), size).get_completed()
    assert (call.id, call.name, call.arguments) == ("call_abc", "get_weather", {"location": "SF"})


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("source", ["", "openai"])
def test_R_002_13_the_seeds_lines_without_empty_lines_between_them_are_a_stream(source: str, size: int) -> None:
    calls = collect_calls(source, "".join(f"data: {line}\n" for line in SEED_JSON), size)
    calls.finish()
    assert [(call.name, call.arguments) for call in calls.get_completed()] == [("get_weather", {"location": "SF"})]


def test_R_002_13_R_002_14_the_seeds_lines_become_the_seeds_events() -> None:
    translator = StreamTranslator(source="openai", target="anthropic")
    finish = json.dumps({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    lines = [*SEED_JSON, finish, "[DONE]"]
    output = translator.feed("".join(f"data: {line}\n" for line in lines).encode()) + translator.finish()
    events = [json.loads(line[6:]) for line in output.decode().splitlines() if line.startswith("data: ")]
    start, *deltas, stop = [event for event in events if event["type"].startswith("content_block")]
    assert start["content_block"] == {"type": "tool_use", "id": "toolu_abc", "name": "get_weather", "input": {}}
    assert "".join(event["delta"]["partial_json"] for event in deltas) == '{"location":"SF"}'
    assert (start["index"], stop["type"]) == (0, "content_block_stop")


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("source", ["", "openai", "xai", "deepseek"])
@pytest.mark.parametrize(
    ("written", "found", "text"),
    [
        (
            'Hi <tool name="get"><x>1</x></tool> or <x.ai:tool_call>{"name": "q", "arguments": {}}</x.ai:tool_call>',
            [("get", {"x": "1"}), ("q", {})],
            "Hi  or ",
        ),
        (
            '{"content": [{"type": "text", "text": "hm"}, {"type": "tool_use", "id": "1", "name": "f", "input": {}}]}',
            [("f", {})],
            "",
        ),
        ('{"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}', [("f", {})], ""),
        ('{"name": "f", "parameters": {"a": "}"}}', [], '{"name": "f", "parameters": {"a": "}"}}'),
        ("data, and nothing else", [], "data, and nothing else"),
        ('{"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "argum', [], None),
        ("", [], ""),
    ],
)
def test_R_003_8_text_formats_and_whole_replies_are_distinguished(
    written: str, found: list[Any], text: str | None, source: str, size: int
) -> None:
    calls = collect_calls(source, written, size)
    calls.finish()
    assert [(call.name, call.arguments) for call in calls.get_completed()] == found
    assert len({call.id for call in calls.drain()}) == len(found)
    assert calls.failure is None
    if text is not None:
        assert calls.text.replace("hm", "") == text


def test_R_003_8_R_003_18_a_bare_command_is_a_call_where_the_source_is_unknown() -> None:
    for source, count in (("", 1), ("deepseek", 1), ("openai", 0)):
        calls = collect_calls(source, "<tool>ls -la</tool>", 3)
        calls.finish()
        found = [(call.name, call.arguments) for call in calls.get_completed()]
        assert found == [("bash", {"command": "ls -la"})] * count


def test_R_003_T1_an_empty_object_is_no_whole_call_before_its_end() -> None:
    calls = ToolCallAccumulator("openai")
    for arguments in ("{}", ""):
        call = {"index": 0, "id": "c", "function": {"name": "now", "arguments": arguments}}
        calls.add_chunk(json.dumps({"choices": [{"delta": {"tool_calls": [call]}}]}))
        assert calls.drain() == ()
    calls.add_chunk(json.dumps({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}))
    calls.finish()
    assert [call.arguments for call in calls.drain()] == [{}]


def test_R_003_8_a_chunk_that_completes_no_call_loses_no_text() -> None:
    calls = ToolCallAccumulator("anthropic")
    for piece in ("Hel", "lo"):
        event = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
        start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        if piece == "Hel":
            calls.add_chunk(f"data: {msgspec.json.encode(start).decode()}\n\n")
        calls.add_chunk(f"data: {msgspec.json.encode(event).decode()}\n\n")
        assert calls.get_completed() == ()
    assert calls.text == "Hello"
