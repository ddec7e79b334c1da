"""Cohere streams, written, and read by Cohere's SDK."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdk.loopback import EVENT_STREAM, serving
from sdk.made_replies import REPLIES
from sdk.recording import load
from support.conversations.strategies import json_values, texts
from support.protocols.streams.cohere import (
    BEGIN,
    CALL_END,
    TALK,
    USAGE,
    Fields,
    bodies,
    call_delta,
    call_start,
    content,
    end,
    event,
    read,
    reply_of,
    sse,
)
from support.protocols.streams.reading import accumulate
from toolglot.conversation import Block, Failure, Media, Opaque, Reply, Text, Thinking, ToolCall, Turn, Usage
from toolglot.conversation.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    InputDelta,
    Started,
    TextDelta,
    Used,
)
from toolglot.conversation.reply_events import of_reply
from toolglot.protocols.cohere import reply as one_shot
from toolglot.protocols.cohere.form import STREAMED, THINKING
from toolglot.protocols.cohere.stream_reader import Decoder, framer
from toolglot.protocols.cohere.stream_writer import Encoder

# --- writing ----------------------------------------------------------------------------------------


def written(reply: Reply) -> bytes:
    return Encoder().write(of_reply(reply))


def unplanned(blocks: Iterable[Block]) -> list[Block]:
    """Blocks as a stream has them: it does not know that words will be a plan."""
    return [Text(block.text) if isinstance(block, Text) else block for block in blocks]


@pytest.mark.parametrize("name", REPLIES)
def test_what_is_written_is_read_as_what_the_one_shot_form_is(name: str) -> None:
    events, decoder = read(written(REPLIES[name]))
    found = accumulate(events).reply
    expected = one_shot.decode(one_shot.encode(REPLIES[name]))
    assert unplanned(found.turn.blocks) == unplanned(expected.turn.blocks)
    assert (found.id, found.stop, found.usage) == (expected.id, expected.stop, expected.usage)
    assert decoder.builder.problems == []


blocks = st.one_of(
    st.builds(lambda text: Thinking(text, form=THINKING), texts),
    st.builds(Text, texts),
    st.builds(ToolCall, texts.filter(bool), texts, st.dictionaries(texts, json_values, max_size=3)),
)


@pytest.mark.law
@given(
    st.lists(blocks, max_size=5),
    st.sampled_from(["stop", "length", "error"]),
    st.none() | st.builds(Usage, st.integers(0), st.integers(0)),
)
def test_a_reply_comes_back_from_its_stream(content: list[Block], stop: Any, usage: Usage | None) -> None:
    has_calls = any(isinstance(block, ToolCall) for block in content)
    reply = Reply(Turn("assistant", tuple(content)), "tool_calls" if has_calls and stop == "stop" else stop, usage, "r")
    found = accumulate(read(written(reply))[0]).reply
    assert found.turn == reply.turn
    assert (found.stop, found.id) == (reply.stop, "r")
    assert (found.usage is None) == (usage is None)


@pytest.mark.law
@given(bodies())
def test_what_is_coheres_own_comes_back(body: Fields) -> None:
    reply = one_shot.decode(body)
    found = accumulate(read(written(reply))[0]).reply
    assert (found.stop, found.usage, found.id, found.extra) == (reply.stop, reply.usage, reply.id, reply.extra)
    assert found.turn.calls == reply.turn.calls
    assert unplanned(found.turn.blocks) == unplanned(
        Thinking(block.text, form=THINKING) if isinstance(block, Thinking) else block for block in reply.turn.blocks
    )


def test_a_plan_is_written_as_one() -> None:
    found = accumulate(read(Encoder().write(read(sse(*TALK))[0]))[0]).reply
    assert found == reply_of(*TALK)


def test_events_are_as_cohere_writes_them() -> None:
    call = ToolCall("c1", "f", {"a": 1})
    events: list[Event] = [
        Started("r1"),
        *(BlockStarted(Text("")), TextDelta("ä"), BlockEnded(Text("ä"))),
        *(BlockStarted(ToolCall("c1", "f")), InputDelta('{"a":1}'), BlockEnded(call)),
        Used(Usage(1, 2)),
        Finished("tool_calls"),
    ]
    data = [json.loads(part.split(b"\ndata: ")[1]) for part in Encoder().write(events).split(b"\n\n") if part]
    assert data == [
        BEGIN,
        event("content-start", {"content": {"type": "text", "text": ""}}, index=0),
        event("content-delta", {"content": {"text": "ä"}}, index=0),
        event("content-end", index=0),
        call_start(),
        call_delta('{"a":1}'),
        CALL_END,
        end("TOOL_CALL", usage={"tokens": {"input_tokens": 1, "output_tokens": 2}}),
    ]


def test_a_call_that_was_cut_does_not_end() -> None:
    cut, whole = ToolCall("c1", "f", {"a": 1}), ToolCall("c2", "g", {})
    out = Encoder().write(
        [
            Started(),
            *(BlockStarted(ToolCall("c1", "f")), InputDelta("{"), BlockEnded(cut, cut=True)),
            *(BlockStarted(ToolCall("c2", "g")), BlockEnded(whole)),
            *(BlockStarted(ToolCall("c3", "p", type="custom")), InputDelta("x"), BlockEnded(whole, cut=True)),
            Finished("length"),
        ]
    )
    assert out.count(b"event: tool-call-start") == 2
    assert out.count(b"event: tool-call-end") == 1
    assert b'"type":"tool-call-end","index":1' in out
    assert b'"arguments":"{}"' in out
    assert b"MAX_TOKENS" in out


def test_what_a_stream_cannot_carry_is_left_out() -> None:
    image = Media("image", "image/png", data="aGk=")
    blocks = (image, Opaque("anthropic", {"a": 1}), Opaque("cohere", {"type": "later"}), Thinking())
    foreign = written(Reply(Turn("assistant", blocks), "stop"))
    assert foreign.count(b"event: content-start") == 1
    assert written(Reply(Turn("assistant", blocks), "stop", form=STREAMED)).count(b"event: content-start") == 2


def test_a_beginning_is_written_even_if_none_came() -> None:
    assert Encoder().write([Finished("stop")]).startswith(b"event: message-start\n")


def test_a_failure_ends_the_message() -> None:
    out = Encoder().write([Started(), Failed(Failure("overloaded", "full"))])
    (data,) = (json.loads(block.split(b"\ndata: ")[1]) for block in out.split(b"\n\n")[1:] if block)
    assert data["type"] == "message-end"
    assert data["delta"]["finish_reason"] == "ERROR"
    assert data["delta"]["error"].endswith("full")


def test_a_failure_of_coheres_own_is_written_as_it_came() -> None:
    events, _ = read(sse(BEGIN, end("ERROR", error="internal error", usage=USAGE)))
    assert json.dumps(end("ERROR", error="internal error", usage=USAGE), separators=(",", ":")).encode() in (
        Encoder().write(events)
    )


# --- Cohere's SDK -----------------------------------------------------------------------------------


def read_with_sdk(out: bytes) -> list[Any]:
    sdk = load("cohere")
    with serving() as provider, sdk.open(provider.url) as client:
        provider.give(out, EVENT_STREAM)
        return list(client.chat_stream(model="m", messages=[{"role": "user", "content": "hi"}]))


@pytest.mark.parametrize("name", REPLIES)
def test_cohere_reads_what_is_written(name: str) -> None:
    reply, encoder = REPLIES[name], Encoder()
    events = list(of_reply(reply))
    found = read_with_sdk(encoder.write(events[:2]) + encoder.ping() + encoder.write(events[2:]))
    assert [found[0].type, found[-1].type] == ["message-start", "message-end"]
    words = [value.delta.message.content for value in found if value.type == "content-delta"]
    assert "".join(word.text or "" for word in words) == reply.turn.text
    thought = "".join(block.text for block in reply.turn.blocks if isinstance(block, Thinking))
    assert "".join(word.thinking or "" for word in words) == thought
    starts = [value for value in found if value.type == "tool-call-start"]
    calls = [value.delta.message.tool_calls for value in starts]
    assert [(call.id, call.function.name) for call in calls] == [(call.id, call.name) for call in reply.turn.calls]
    expected = one_shot.decode(one_shot.encode(reply)).turn.calls
    for index, call in enumerate(expected):
        pieces = [
            value.delta.message.tool_calls.function.arguments
            for value in found
            if value.type == "tool-call-delta" and value.index == index
        ]
        assert json.loads("".join(pieces)) == call.arguments
    assert (found[-1].delta.usage is not None) == (reply.usage is not None)
    assert found[-1].delta.finish_reason == one_shot.encode(reply)["finish_reason"]


def test_cohere_reads_a_failure() -> None:
    found = read_with_sdk(Encoder().write([Started(), Failed(Failure("server", "out of memory"))]))
    assert found[-1].delta.error == "out of memory"


def test_a_thought_that_breaks_off_before_its_first_word_begins_once() -> None:
    decoder, encoder, out = Decoder(), Encoder(), b""
    for frame in framer().feed(sse(BEGIN, *content("thinking", "Hmm.")[:1])):
        out += encoder.write(decoder.read(frame))
        assert decoder.builder.is_settled
    decoder.builder.fail(Failure("server", "lost"))
    assert out.count(b"event: content-start") == 1
    assert encoder.write(decoder.builder.take()).count(b"event: content-start") == 0
