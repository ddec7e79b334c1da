"""Tool calls in translated streams: cut ones are never run, names and ids come back, free text stays free text."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import toolglot
from support.conversations.event_grammar import check
from support.translate.translated_streams import (
    ANSWER,
    PROTOCOLS,
    events_of,
    feed_through,
    read_reply,
    stream_bytes,
    translate,
)
from toolglot import (
    InputError,
    Media,
    Policy,
    Reply,
    StreamReader,
    StreamTranslator,
    Text,
    ToolCall,
    ToolCallAccumulator,
    Turn,
    convert,
    convert_reply,
)
from toolglot.conversation.events import BlockEnded, Event, Failed, Finished, InputDelta, TextDelta
from toolglot.conversation.reply_events import of_block
from toolglot.protocols.base import codec

# --- F1: calls that were cut ------------------------------------------------------------------------


def cut_stream(source: str, arguments_text: str, stop: str) -> bytes:
    """A stream that ends inside the arguments of a call, with any stop reason."""
    if source == "openai_chat":
        lines: list[Any] = [
            {"delta": {"role": "assistant", "content": "ok"}},
            {"delta": {"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "run", "arguments": ""}}]}},
            *[{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}} for piece in arguments_text],
        ]
        if stop:
            lines.append({"delta": {}, "finish_reason": stop})
        chunks = [{"id": "x", "model": "m", "choices": [{"index": 0, **line}]} for line in lines]
        end = b"data: [DONE]\n\n" if stop else b""
        return b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks) + end
    raise NotImplementedError(source)


@pytest.mark.parametrize("policy", [Policy(), Policy(stream_calls="whole")], ids=["live", "whole"])
@pytest.mark.parametrize("target", PROTOCOLS)
@pytest.mark.parametrize("stop", ["length", "tool_calls", "stop", ""])
def test_F1_J4_a_call_that_was_cut_is_never_one_that_can_be_run(target: str, stop: str, policy: Policy) -> None:
    text = '{"command":["ls","rm -rf /tmp/x"]}'
    for position in range(len(text)):
        translator = StreamTranslator(source="openai_chat", target=target, policy=policy)
        output = feed_through(translator, cut_stream("openai_chat", text[:position], stop))
        if position == 0 and stop in ("tool_calls", "stop"):
            continue  # a call without arguments
        assert translator.calls == ()
        events = events_of(output, target)
        check(events)
        shown = [event for event in events if isinstance(event, BlockEnded) and isinstance(event.block, ToolCall)]
        if policy.stream_calls == "whole":
            assert shown == []
        assert all(event.cut for event in shown)
        if stop:
            assert isinstance(events[-1], Finished)
            assert events[-1].stop == "length" if shown else events[-1].stop != "tool_calls"
        else:
            assert isinstance(events[-1], Failed)
        is_marked = (target, stop, policy.stream_calls) == (
            "openai_chat",
            "length",
            "live",
        )  # the provider's own reason
        if position and not is_marked:
            assert any(text[:position] in entry.reason for entry in translator.report)


@pytest.mark.parametrize("target", PROTOCOLS)
def test_arguments_that_cannot_be_read_are_not_run_where_the_client_wants_an_object(target: str) -> None:
    translator = StreamTranslator(source="openai_chat", target=target)
    output = feed_through(translator, cut_stream("openai_chat", '{"a": nonsense}', "tool_calls"))
    assert any("cannot be run" in entry.reason for entry in translator.report)
    got = events_of(output, target)
    calls = [event.block for event in got if isinstance(event, BlockEnded) and isinstance(event.block, ToolCall)]
    assert all(call.arguments is None for call in calls)


# --- names, ids and free text -----------------------------------------------------------------------


def request_with(**tool: Any) -> toolglot.ConvertedRequest:
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": "a" * 80, "input_schema": {"type": "object", "properties": {}}, **tool}],
    }
    return convert(body, source="anthropic", target="openai", model="gpt-4.1")


def test_E4_a_renamed_tool_comes_back_under_its_own_name() -> None:
    request = request_with()
    sent = request.body["tools"][0]["function"]["name"]
    reply = Reply(Turn("assistant", (ToolCall("call_1", sent, {}),)), "tool_calls", None, "id", "m")
    translator = StreamTranslator(source="openai", target="anthropic", request=request)
    output = feed_through(translator, stream_bytes(reply, "openai_chat"))
    assert [call.name for call in read_reply(output, "anthropic").turn.calls] == ["a" * 80]


def test_a_tool_that_was_not_offered_is_reported() -> None:
    reply = Reply(Turn("assistant", (ToolCall("call_1", "other", {}),)), "tool_calls", None, "id", "m")
    translator = StreamTranslator(source="openai", target="anthropic", request=request_with())
    feed_through(translator, stream_bytes(reply, "openai_chat"))
    assert "which is not a tool of the request" in str(translator.report)


def test_B1_calls_without_ids_get_ids_of_their_own_that_are_those_of_the_whole_answer() -> None:
    calls = (ToolCall("", "run", {"a": 1}), ToolCall("", "run", {"a": 2}), ToolCall("", "run", {"a": 1}))
    reply = Reply(Turn("assistant", calls), "tool_calls", None, "", "m")
    translator = StreamTranslator(source="ollama", target="anthropic")
    output = feed_through(translator, stream_bytes(reply, "ollama"))
    whole = convert_reply(codec("ollama").reply.encode(reply), source="ollama", target="anthropic")
    got = [call.id for call in read_reply(output, "anthropic").turn.calls]
    assert len(set(got)) == 3
    assert got == [call.id for call in whole.reply.turn.calls]


def test_E8_free_text_that_went_out_wrapped_comes_back_as_free_text() -> None:
    body = {
        "model": "gpt-5.1",
        "input": "hi",
        "tools": [{"type": "custom", "name": "apply_patch", "description": "Patches."}],
    }
    request = convert(body, source="openai_responses", target="anthropic", model="claude-sonnet-4-5")
    call = ToolCall("toolu_1", "apply_patch", {"input": "*** Begin\n+é"})
    reply = Reply(Turn("assistant", (call,)), "tool_calls", None, "id", "m")
    translator = StreamTranslator(source="anthropic", target="openai_responses", request=request)
    output = feed_through(translator, stream_bytes(reply, "anthropic", 3))
    (got,) = read_reply(output, "openai_responses").turn.calls
    assert (got.type, got.raw_input) == ("custom", "*** Begin\n+é")


# --- the seam for calls written as text -------------------------------------------------------------


class Shouting:
    """A reader that changes text; real ones find calls in it."""

    is_settled = True

    def feed(self, events: list[Event]) -> list[Event]:
        return [
            TextDelta(event.text.upper())
            if isinstance(event, TextDelta)
            else BlockEnded(replace(event.block, text=event.block.text.upper()))
            if isinstance(event, BlockEnded) and isinstance(event.block, Text)
            else event
            for event in events
        ]


def test_a_reader_of_text_runs_between_the_provider_and_the_client() -> None:
    translator = StreamTranslator(source="openai_chat", target="openai_chat", reader=Shouting())
    output = feed_through(translator, stream_bytes(ANSWER, "openai_chat"))
    assert read_reply(output, "openai_chat").turn.text == "É "


def test_media_in_a_reply_is_left_out_where_the_client_cannot_read_it() -> None:
    reply = Reply(Turn("assistant", (Text("a"), Media("image", "image/png", data="QUJD"))), "stop", None, "i", "m")
    for target in PROTOCOLS:
        output = translate(stream_bytes(reply, "gemini"), "gemini", target)
        check(events_of(output, target))
        assert read_reply(output, target).turn.text == "a"


def test_of_block_marks_a_cut_block() -> None:
    events = list(of_block(ToolCall("a", "f", raw_input='{"x'), cut=True, piece=2))
    assert [event.text for event in events if isinstance(event, InputDelta)] == ['{"', "x"]
    assert isinstance(events[-1], BlockEnded)
    assert events[-1].cut


# --- F1: free text that was cut ---------------------------------------------------------------------


@pytest.mark.parametrize("policy", [Policy(), Policy(stream_calls="whole")], ids=["live", "whole"])
@pytest.mark.parametrize("target", PROTOCOLS)
@pytest.mark.parametrize("source", ["openai_chat", "openai_responses"])
def test_F1_free_text_that_was_cut_is_never_a_call_that_can_be_run(source: str, target: str, policy: Policy) -> None:
    call = ToolCall("call_1", "apply_patch", type="custom", raw_input="*** Begin Patch\n*** Delete File: a")
    stream = stream_bytes(Reply(Turn("assistant", (call,)), "tool_calls", None, "i", "m"), source, 3)
    end = stream.index(b"\n\n", stream.index(b"gin")) + 2
    translator = StreamTranslator(source=source, target=target, policy=policy)
    output = translator.feed(stream[:end]) + translator.fail()
    assert translator.calls == ()
    events = events_of(output, target)
    check(events)
    assert not [
        event
        for event in events
        if isinstance(event, BlockEnded) and isinstance(event.block, ToolCall) and not event.cut
    ]


def test_F1_free_text_that_went_out_wrapped_and_was_cut_is_no_call() -> None:
    body = {
        "model": "gpt-5.1",
        "input": "hi",
        "tools": [{"type": "custom", "name": "apply_patch", "description": "P."}],
    }
    request = convert(body, source="openai_responses", target="anthropic", model="claude-sonnet-4-5")
    call = ToolCall("toolu_1", "apply_patch", {"input": "*** Begin\n*** Delete File: a"})
    stream = stream_bytes(Reply(Turn("assistant", (call,)), "tool_calls", None, "id", "m"), "anthropic", 20)
    translator = StreamTranslator(source="anthropic", target="openai_responses", request=request)
    output = translator.feed(stream[: stream.index(b"\n\n", stream.index(b"*** B")) + 2]) + translator.fail()
    assert translator.calls == ()
    assert b"output_item.done" not in output or b"custom_tool_call" not in output


def test_a_malformed_event_ends_the_stream_since_its_content_is_lost() -> None:
    def piece(text: str) -> bytes:
        call = {"index": 0, "function": {"arguments": text}}
        return b"data: " + msgspec.json.encode({"choices": [{"delta": {"tool_calls": [call]}}]}) + b"\n\n"

    start = {"index": 0, "id": "c", "type": "function", "function": {"name": "rm", "arguments": ""}}
    begun = b"data: " + msgspec.json.encode({"id": "x", "choices": [{"delta": {"tool_calls": [start]}}]}) + b"\n\n"
    stream = begun + piece('{"path":"/tmp/x"') + b'data: {"choices":[{"delta"\n\n' + piece("}") + b"data: [DONE]\n\n"
    translator = StreamTranslator(source="openai_chat", target="anthropic")
    assert b"event: error" in feed_through(translator, stream)
    assert translator.calls == ()


def test_bytes_of_any_kind_are_taken_and_anything_else_is_named() -> None:
    reader = StreamReader(source="openai_chat")
    reader.feed(bytearray(b": hi\n\n"))  # type: ignore[arg-type]
    reader.feed(memoryview(b": hi\n\n"))  # type: ignore[arg-type]
    for wrong in ("text", None, 7):
        with pytest.raises(InputError, match="expected bytes"):
            reader.feed(wrong)  # type: ignore[arg-type]


# --- seed 002 ---------------------------------------------------------------------------------------


def test_R_002_13_the_chunks_of_the_seed_are_one_call_in_the_events_of_the_seed() -> None:
    def chunk(function: dict[str, str], **first: str) -> bytes:
        call = {"index": 0, **first, "function": function}
        return b"data: " + msgspec.json.encode({"choices": [{"delta": {"tool_calls": [call]}}]}) + b"\n\n"

    pieces = [
        chunk({"name": "get_weather", "arguments": ""}, id="call_abc"),
        chunk({"arguments": '{"loc'}),
        chunk({"arguments": 'ation":'}),
        chunk({"arguments": '"SF"}'}),
        b"data: [DONE]\n\n",
    ]
    translator = StreamTranslator(source="openai_chat", target="anthropic")
    output = b"".join(translator.feed(piece) for piece in pieces) + translator.finish()
    lines = [msgspec.json.decode(line[6:]) for line in output.split(b"\n") if line.startswith(b"data: ")]
    kinds = [line["type"] for line in lines]
    assert kinds[1:-2] == ["content_block_start", *["content_block_delta"] * 3, "content_block_stop"]
    assert lines[1]["content_block"] == {"type": "tool_use", "id": "toolu_abc", "name": "get_weather", "input": {}}
    assert "".join(line["delta"]["partial_json"] for line in lines[2:5]) == '{"location":"SF"}'
    assert lines[-2]["delta"]["stop_reason"] == "tool_use"


@pytest.mark.parametrize("wrap", [lambda delta: delta, lambda delta: {"delta": delta}], ids=["delta", "choice"])
def test_bare_deltas_of_a_chat_stream_are_one_call_and_never_a_call_without_its_arguments(wrap: Any) -> None:
    begun = {"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "bash", "arguments": ""}}]}
    more = [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in ('{"command"', ':"ls"}')]
    calls = ToolCallAccumulator()
    for delta in (begun, *more):
        assert calls.drain() == ()
        calls.add_chunk(json.dumps(wrap(delta)))
    (call,) = calls.drain()
    assert (call.id, call.name, call.arguments) == ("call_1", "bash", {"command": "ls"})
