"""Streams of Ollama's chat protocol: what is read, what is written, and that Ollama's SDK reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import ollama
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sdk.loopback import serving
from sdk.made_replies import REPLIES
from sdk.recording import load
from support.conversations import event_grammar
from support.conversations.strategies import json_objects, json_values, texts
from support.protocols.strategies.ollama import ollama_calls, ollama_replies
from support.protocols.streams.reading import accumulate, read_pieces
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
    ThinkingDelta,
    Used,
)
from toolglot.conversation.reply_events import of_reply
from toolglot.errors import InputError, LimitError
from toolglot.limits import Limits
from toolglot.protocols.base import StreamOptions, get
from toolglot.protocols.framing.event_builder import CUT_OFF
from toolglot.protocols.framing.text_frames import Frame
from toolglot.protocols.ollama import reply as one_shot
from toolglot.protocols.ollama.form import OllamaReply
from toolglot.protocols.ollama.stream_reader import Decoder, framer
from toolglot.protocols.ollama.stream_writer import Encoder

Fields = dict[str, Any]


def line(done: bool = False, role: str = "assistant", **message: Any) -> Fields:
    whole_message = {"role": role, "content": "", **message}
    return {"model": "qwen3", "created_at": "2026-01-02T03:04:05Z", "message": whole_message, "done": done}


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def read(*pieces: bytes) -> tuple[list[Event], Decoder]:
    decoder = Decoder()
    return read_pieces(framer(), decoder, pieces), decoder


def reply_of(*values: Any) -> Reply:
    events, decoder = read(lines(*values))
    assert decoder.builder.problems == []
    return accumulate(events).reply


CALL = {"function": {"name": "f", "arguments": {"a": 1.0, "b": [10**30]}, "index": 0}}
OTHER = {"id": "c2", "function": {"name": "g", "arguments": {}}}
END = {
    "done_reason": "stop",
    "total_duration": 5,
    "load_duration": 1,
    "prompt_eval_count": 7,
    "eval_count": 5,
}
TALK = (
    line(thinking="Hm"),
    line(thinking="m."),
    line(content="Kö"),
    line(content="ln"),
    line(tool_calls=[CALL, OTHER]),
    {**line(done=True), **END, "created_at": "2026-01-02T03:04:06Z"},
)
WHOLE = {
    **line(done=True, content="Köln", thinking="Hmm.", tool_calls=[CALL, OTHER]),
    **END,
    "created_at": "2026-01-02T03:04:06Z",
}


# --- reading ----------------------------------------------------------------------------------------


def test_a_stream_adds_up_to_the_one_shot_reply() -> None:
    assert reply_of(*TALK) == one_shot.decode(WHOLE)
    assert one_shot.encode(reply_of(*TALK)) == WHOLE


def test_events_come_with_the_lines() -> None:
    decoder = Decoder()
    seen = [decoder.read(Frame(json.dumps(value).encode())) for value in TALK]
    assert [type(event) for event in seen[0]] == [Started, BlockStarted, ThinkingDelta]
    assert seen[1] == [ThinkingDelta("m.")]
    assert seen[3] == [TextDelta("ln")]
    assert [type(event) for event in seen[4]] == [BlockEnded, *[BlockStarted, InputDelta, BlockEnded] * 2]
    assert [type(event) for event in seen[5]] == [Used, Finished]
    assert decoder.finish() == []


def test_every_cut_of_the_bytes_gives_the_same_events() -> None:
    data = lines(*TALK)
    whole, _ = read(data)
    for position in range(len(data)):
        assert read(data[:position], data[position:])[0] == whole
    assert read(*(data[position : position + 1] for position in range(len(data))))[0] == whole


def test_thinking_and_words_of_one_line_are_two_blocks() -> None:
    found = reply_of(line(), line(thinking="a", content="b"), {**line(done=True), "done_reason": "length"})
    assert found.turn.blocks == (Thinking("a"), Text("b"))
    assert found.stop == "length"


def test_images_are_blocks() -> None:
    found = reply_of(line(content="a", images=["aGk="]), line(done=True))
    assert found.turn.blocks == (Text("a"), Media("image", data="aGk="))


def test_log_probabilities_of_all_lines_are_kept() -> None:
    found = reply_of(
        {**line(content="a"), "logprobs": [1]},
        {**line(content="b"), "logprobs": [2, 3]},
        {**line(done=True)},
    )
    assert one_shot.encode(found)["logprobs"] == [1, 2, 3]


def test_j1_calls_with_the_reason_stop_are_tool_calls() -> None:
    assert reply_of(line(tool_calls=[OTHER]), {**line(done=True), "done_reason": "stop"}).stop == "tool_calls"


def test_h1_calls_that_all_have_index_0_are_calls_of_their_own() -> None:
    calls = [{"function": {"name": "f", "arguments": {"a": number}, "index": 0}} for number in range(3)]
    found = reply_of(*(line(tool_calls=[call]) for call in calls), line(done=True))
    assert [call.arguments for call in found.turn.calls] == [{"a": 0}, {"a": 1}, {"a": 2}]


def test_an_error_in_the_stream_is_a_failure() -> None:
    total = accumulate(read(lines(line(content="a"), {"error": "model runner has stopped"}, line(content="b")))[0])
    assert total.failure is not None
    assert total.failure.message == "model runner has stopped"
    assert total.failure.in_band
    assert total.reply.turn.text == "a"


@pytest.mark.parametrize(
    ("written", "arguments", "raw"),
    [('{"a":1}', {"a": 1}, None), ("", {}, None), (None, {}, None), ("[1]", None, "[1]")],
)
def test_f3_arguments_that_are_no_object_are_reported(written: str | None, arguments: Any, raw: str | None) -> None:
    call = {"function": {"name": "f", "arguments": written}}
    events, decoder = read(lines(line(tool_calls=[call]), line(done=True)))
    (found,) = accumulate(events).reply.turn.calls
    assert (found.arguments, found.raw_input) == (arguments, raw)
    assert decoder.builder.problems


@pytest.mark.parametrize(
    "call", [7, {}, {"function": 7}, {"function": {"name": 7, "arguments": ""}}, {"function": {"arguments": []}}]
)
def test_a_call_that_cannot_be_read_is_a_failure_and_not_an_empty_success(call: Any) -> None:
    total = accumulate(read(lines(line(tool_calls=[call, OTHER]), line(done=True)))[0])
    assert total.failure is not None
    assert total.failure.kind == "bad_output"
    assert total.calls == ()


@pytest.mark.parametrize(
    "odd",
    [
        b"nonsense\n",
        b"7\n",
        lines(line(content=7)),
        lines(line(thinking=[])),
        lines(line(images=7)),
        lines(line(images=[7])),
        lines(line(tool_calls=7)),
        lines(line(role="user")),
        lines({"model": "m", "done": False}),
        lines({"model": "m", "message": 7, "done": False}),
        lines({**line(), "prompt_eval_count": "7"}),
        b'{"message":{"role":"assistant","role":"assistant"}}\n',
    ],
)
def test_what_the_protocol_does_not_allow_is_reported_and_left_out(odd: bytes) -> None:
    end = {**line(done=True), "done_reason": "length"}
    events, decoder = read(lines(line(content="a")), odd, lines(line(content="b"), end))
    found = accumulate(events).reply
    assert (found.turn.blocks, found.stop) == ((Text("ab"),), "length")
    assert len(decoder.builder.problems) == 1


def test_the_end_of_the_bytes_without_the_last_line() -> None:
    events, _ = read(lines(line(content="a")))
    assert accumulate(events).failure == CUT_OFF
    failure = accumulate(read(lines(line(content="a")), b'{"model')[0]).failure
    assert failure is not None
    assert failure.kind == "server"
    assert accumulate(read(b"\n\n")[0]).failure is not None


def test_an_end_without_a_message_is_an_end() -> None:
    assert reply_of(line(content="a"), {"model": "m", "done": True}).stop == "stop"


def test_nothing_follows_the_end() -> None:
    decoder = Decoder()
    decoder.read(Frame(lines(line(content="a"))))
    decoder.read(Frame(lines(line(done=True))))
    assert decoder.read(Frame(lines(line(content="b")))) == []


def test_the_length_of_a_reply_is_bounded() -> None:
    decoder = Decoder(limits=Limits(max_bytes=250))
    decoder.read(Frame(lines(line(content="a" * 90))))
    decoder.read(Frame(lines(line(content="a" * 90))))
    with pytest.raises(LimitError):
        decoder.read(Frame(lines(line(content="a" * 90))))


# --- laws -------------------------------------------------------------------------------------------


def stream_lines(body: Fields) -> list[Fields]:
    """A whole body as lines: one for each kind of content, and the end."""
    message = body["message"]
    head = {"model": body["model"], "message": {"role": "assistant", "content": ""}, "done": False}
    content_lines = [
        {**head, "message": {"role": "assistant", key: message[key]}}
        for key in ("thinking", "content", "images", "tool_calls")
        if message.get(key) is not None
    ]
    return [*content_lines, {**body, "message": {"role": "assistant", "content": ""}, "done": True}]


@pytest.mark.law
@given(ollama_replies)
def test_a_streamed_body_adds_up_to_what_the_whole_one_is(body: Fields) -> None:
    try:
        expected = one_shot.decode({**body, "done": True})
    except InputError:
        assume(False)
    assume("error" not in body)
    total = accumulate(read(lines(*stream_lines(body)))[0])
    assert total.reply.turn.blocks == expected.turn.blocks
    found = total.reply
    assert (found.stop, found.usage, found.model, found.extra) == (
        expected.stop,
        expected.usage,
        expected.model,
        expected.extra,
    )


@pytest.mark.law
@given(
    st.lists(json_values | ollama_replies | st.builds(line, content=json_values, tool_calls=json_values), max_size=4)
)
def test_nothing_that_is_json_breaks_the_reader(values: list[Any]) -> None:
    event_grammar.check(read(lines(*values))[0])


@pytest.mark.law
@given(st.binary(max_size=80) | texts.map(str.encode))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    event_grammar.check(read(lines(line(content="a")) + data)[0])


# --- writing ----------------------------------------------------------------------------------------


def written(reply: Reply) -> bytes:
    return Encoder().write(of_reply(reply))


def joined(blocks: Iterable[Block]) -> list[Block]:
    """Blocks as this protocol keeps them apart: words of one kind run together."""
    found: list[Block] = []
    for block in blocks:
        last = found[-1] if found else None
        if isinstance(block, Text) and isinstance(last, Text):
            found[-1] = Text(last.text + block.text)
        else:
            found.append(block)
    return found


@pytest.mark.parametrize("name", REPLIES)
def test_what_is_written_is_read_as_what_the_one_shot_form_is(name: str) -> None:
    events, decoder = read(written(REPLIES[name]))
    found = accumulate(events).reply
    expected = one_shot.decode(one_shot.encode(REPLIES[name]))
    assert joined(found.turn.blocks) == joined(expected.turn.blocks)
    assert (found.model, found.stop, found.usage) == (expected.model, expected.stop, expected.usage)
    assert decoder.builder.problems == []


blocks = st.one_of(
    st.builds(Thinking, texts),
    st.builds(Text, texts),
    st.builds(ToolCall, texts, texts, json_objects),
)


@pytest.mark.law
@given(
    st.lists(blocks, max_size=5),
    st.sampled_from(["stop", "length"]),
    st.none() | st.builds(Usage, st.integers(0), st.integers(0)),
)
def test_a_reply_comes_back_from_its_stream(content: list[Block], stop: Any, usage: Usage | None) -> None:
    has_calls = any(isinstance(block, ToolCall) for block in content)
    reply = Reply(Turn("assistant", tuple(content)), "tool_calls" if has_calls and stop == "stop" else stop, usage)
    found = accumulate(read(written(reply))[0]).reply
    assert (found.turn.calls, found.turn.text) == (
        tuple(block for block in content if isinstance(block, ToolCall)),
        reply.turn.text,
    )
    thoughts = [
        "".join(block.text for block in turn.blocks if isinstance(block, Thinking)) for turn in (found.turn, reply.turn)
    ]
    assert thoughts[0] == thoughts[1]
    assert (found.stop, found.usage) == (reply.stop, usage)


@pytest.mark.law
@given(st.lists(ollama_calls, max_size=3), ollama_replies)
def test_what_is_ollamas_own_comes_back_whole(calls: list[Fields], body: Fields) -> None:
    try:
        whole = {**body, "done": True, "message": {"role": "assistant", "tool_calls": calls, "images": ["aGk="]}}
        reply = one_shot.decode(whole)
    except InputError:
        assume(False)
    found = accumulate(read(written(reply))[0]).reply
    assert found.turn.blocks == reply.turn.blocks
    assert one_shot.decode(one_shot.encode(found)).usage == reply.usage
    assert found.stop == reply.stop


def test_lines_are_as_ollama_writes_them() -> None:
    options = StreamOptions(created=1767323045, model="requested")
    out = Encoder(options).write(
        [Started(), BlockStarted(Text("")), TextDelta("ä"), BlockEnded(Text("ä")), Finished("stop")]
    )
    head = '{"model":"requested","created_at":"2026-01-02T03:04:05Z","message":'
    assert out.decode() == (
        head
        + '{"role":"assistant","content":"ä"},"done":false}\n'
        + head
        + '{"role":"assistant","content":""},"done":true,"done_reason":"stop"}\n'
    )


@pytest.mark.parametrize("created", [10**15, -(10**15)])
def test_a_time_that_no_calendar_has_is_none(created: int) -> None:
    assert b'"created_at":"1970-01-01T00:00:00Z"' in Encoder(StreamOptions(created=created)).ping()


def test_a_call_that_was_cut_is_not_written() -> None:
    call = ToolCall("c", "f", {"a": 1})
    out = Encoder().write([Started(), BlockStarted(call), BlockEnded(call, cut=True), Finished("length")])
    assert b"tool_calls" not in out
    assert b'"done_reason":"length"' in out


def test_what_has_no_field_is_left_out() -> None:
    media = (Media("image", "image/png", data="aGk="), Media("image", url="https://example.invalid"))
    for form, count in ((None, 0), (OllamaReply(done=True), 1)):
        reply = Reply(Turn("assistant", (*media, Opaque("anthropic", 1))), "stop", form=form)
        assert written(reply).count(b"images") == count


def test_a_failure_is_a_line_and_the_last_thing_that_is_written() -> None:
    out = Encoder().write([Started(), TextDelta("a"), Failed(Failure("overloaded", "full"))])
    assert json.loads(out.splitlines()[-1])["error"].endswith("full")


# --- Ollama's SDK -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REPLIES)
def test_ollama_reads_what_is_written(name: str) -> None:
    reply, encoder = REPLIES[name], Encoder(StreamOptions(created=1))
    events = list(of_reply(reply))
    sdk = load("ollama")
    with serving() as provider, sdk.open(provider.url) as client:
        provider.give(encoder.write(events[:1]) + encoder.ping() + encoder.write(events[1:]), get("ollama").stream_type)
        parts = list(client.chat("m", [{"role": "user", "content": "hi"}], stream=True))
    assert "".join(part.message.content or "" for part in parts) == reply.turn.text
    thought = "".join(block.text for block in reply.turn.blocks if isinstance(block, Thinking))
    assert "".join(part.message.thinking or "" for part in parts) == thought
    calls = [call for part in parts for call in part.message.tool_calls or ()]
    expected = list(one_shot.decode(one_shot.encode(reply)).turn.calls)
    assert [(call.function.name, call.function.arguments) for call in calls] == [
        (call.name, call.arguments) for call in expected
    ]
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert (parts[-1].prompt_eval_count, parts[-1].eval_count) == (
        (reply.usage.input_tokens, reply.usage.output_tokens) if reply.usage else (None, None)
    )


def test_ollama_reads_a_failure() -> None:
    out = Encoder().write([Started(), TextDelta("a"), Failed(Failure("server", "out of memory"))])
    sdk = load("ollama")
    with serving() as provider, sdk.open(provider.url) as client:
        provider.give(out, get("ollama").stream_type)
        with pytest.raises(ollama.ResponseError, match="out of memory"):
            list(client.chat("m", [{"role": "user", "content": "hi"}], stream=True))
