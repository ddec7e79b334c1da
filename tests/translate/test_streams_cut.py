"""Streams whose bytes end in order before their protocol's own end: they were cut, and each client gets an error.

Law: the client gets an error inside the stream, in its own protocol, and never an end; a call that was whole before
it can not be run, since the turn was not whole. A turn that says why it ended is whole.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from support.javascript_clients import READERS, JavaScript
from toolglot import StreamReader, StreamTranslator
from toolglot.conversation import Reply, Text, ToolCall, Turn, Usage
from toolglot.conversation.reply_events import of_reply
from toolglot.protocols.base import codec
from toolglot.protocols.framing.event_builder import CUT_OFF
from toolglot.protocols.framing.text_frames import Frame

END: Final = {
    "anthropic": b'"message_delta"',
    "openai_chat": b'"finish_reason":"tool_calls"',
    "openai_responses": b'"response.completed"',
    "bedrock": b"messageStop",
    "gemini": b'"finishReason"',
    "ollama": b'"done":true',
    "cohere": b'"message-end"',
}
"""What the event that ends a reply contains."""
CLIENTS: Final = ("anthropic", "openai_chat", "openai_responses", "gemini")
REPLY: Final = Reply(
    Turn("assistant", (Text("Let me look."), ToolCall("call_0a1b2c3d4", "look", {"city": "Zürich"}))),
    "tool_calls",
    Usage(12, 5),
    "reply_1",
    "m",
)


def frames_of(protocol: str) -> list[Frame]:
    """The events of a whole reply."""
    stream = codec(protocol).stream
    framer = stream.framer()
    return [*framer.feed(stream.Encoder().write(of_reply(REPLY))), *framer.finish()]


def cut_off(protocol: str) -> list[bytes]:
    """The stream, cut before each of its events from the first one with content, up to the end."""
    frames = frames_of(protocol)
    (end, *_) = [number for number, frame in enumerate(frames) if END[protocol] in frame.raw]
    assert end > 0, "the end is an event of its own"
    return [b"".join(frame.raw for frame in frames[:number]) for number in range(1, end + 1)]


def error_of(protocol: str, out: bytes) -> Any:
    """The error that the last event of a client's stream holds."""
    last = [line[6:] for line in out.decode().splitlines() if line.startswith("data: ") and line != "data: [DONE]"][-1]
    event = json.loads(last)
    if protocol == "openai_responses":
        return event["response"]["error"] if event["type"] == "response.failed" else event
    return event["error"]


@pytest.mark.parametrize("target", CLIENTS)
@pytest.mark.parametrize("source", END)
def test_a_stream_that_was_cut_is_an_error_inside_the_clients_stream(source: str, target: str) -> None:
    for data in cut_off(source):
        translator = StreamTranslator(source=source, target=target)
        out = translator.feed(data) + translator.finish()
        assert translator.failure is not None
        assert error_of(target, out)["message"] == translator.failure.message
        assert END[target] not in out
        assert translator.reply.stop is None
        assert translator.calls == ()
    assert translator.failure == CUT_OFF, "cut behind the last block"
    assert [call.name for call in translator.reply.turn.calls] == ["look"]


@pytest.mark.parametrize("source", END)
def test_an_agent_gets_an_error_for_a_cut_stream_and_has_nothing_to_run(source: str) -> None:
    for data in cut_off(source):
        reader = StreamReader(source=source)
        reader.feed(data)
        reader.finish()
        assert reader.failure is not None
        assert reader.failure.retryable
        assert reader.calls == ()


@pytest.mark.parametrize("source", END)
def test_a_stream_that_came_to_its_end_can_be_run(source: str) -> None:
    reader = StreamReader(source=source)
    for frame in frames_of(source):
        reader.feed(frame.raw)
    reader.finish()
    assert reader.failure is None
    assert [call.name for call in reader.calls] == ["look"]


@pytest.mark.parametrize("target", CLIENTS)
def test_a_message_with_its_stop_reason_is_whole_without_message_stop(target: str) -> None:
    frames = frames_of("anthropic")
    assert b"message_stop" in frames[-1].raw
    translator = StreamTranslator(source="anthropic", target=target)
    out = translator.feed(b"".join(frame.raw for frame in frames[:-1])) + translator.finish()
    assert translator.failure is None
    assert END[target] in out
    assert [call.name for call in translator.calls] == ["look"]
    assert any("message_stop" in entry.reason for entry in translator.report)


@pytest.mark.parametrize("source", [protocol for protocol in CLIENTS if protocol != "openai_chat"])
def test_a_stream_that_was_cut_goes_to_its_own_protocol_as_it_came_and_then_fails(source: str) -> None:
    data = cut_off(source)[-1]
    translator = StreamTranslator(source=source, target=source)
    out = translator.feed(data) + translator.finish()
    assert out.startswith(data)
    assert error_of(source, out[len(data) :])["message"] == CUT_OFF.message


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("source", END)
def test_the_javascript_sdks_raise_at_a_stream_that_was_cut(javascript: JavaScript, source: str, reader: str) -> None:
    translator = StreamTranslator(source=source, target=READERS[reader].protocol)
    out = translator.feed(cut_off(source)[-1]) + translator.finish()
    got = javascript.read(reader, out, REPLY.turn.calls)
    assert CUT_OFF.message in json.dumps(got["error"])
    assert got["finish"] in (None, "", "error")
