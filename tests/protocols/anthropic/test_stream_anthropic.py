"""Streams of the Anthropic Messages protocol, read: what they add up to, and what providers do to them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations.event_grammar import check
from support.conversations.strategies import json_values, texts
from support.protocols.streams.anthropic import (
    EVERYTHING,
    WHOLE,
    Fields,
    begin,
    delta,
    events,
    frame,
    input_delta,
    kinds,
    read_bytes,
    sse,
    start,
    stop,
    text_delta,
)
from support.protocols.streams.reading import ReadStream
from toolglot.conversation import Compaction, Media, Opaque, ServerTool, Text, Thinking, ToolCall, ToolResult, Usage
from toolglot.conversation.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    InputDelta,
    TextDelta,
    Used,
)
from toolglot.errors import LimitError
from toolglot.limits import Limits
from toolglot.protocols.anthropic import reply
from toolglot.protocols.anthropic.stream_reader import Decoder, framer
from toolglot.protocols.anthropic.stream_writer import Encoder
from toolglot.protocols.framing.text_frames import Frame


def end_events(reason: str | None = "end_turn", **more: Any) -> list[Fields]:
    return [
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None, **more},
            "usage": {"output_tokens": 20},
        },
        {"type": "message_stop"},
    ]


CALL = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
CALLED = [begin(0, **CALL), input_delta(0, ""), input_delta(0, '{"a"'), input_delta(0, ":1}"), stop(0)]


def read(*events: Fields) -> ReadStream:
    return read_bytes(sse(*events))


def test_a_stream_adds_up_to_the_same_reply_as_the_whole_body() -> None:
    found = read(*EVERYTHING)
    assert found.reply == reply.decode(WHOLE)
    assert reply.encode(found.reply) == WHOLE
    assert found.problems == []
    assert found.decoder.builder.is_settled


@pytest.mark.parametrize("piece", range(1, 40))
def test_however_the_bytes_are_cut_the_events_are_the_same(piece: int) -> None:
    data = sse(*EVERYTHING)
    assert read_bytes(data, piece=piece).events == read_bytes(data).events


def test_every_single_cut_gives_the_same_events() -> None:
    data = sse(start(), *CALLED, begin(1, type="text", text=""), text_delta(1, "ä😀"), stop(1), *end_events("tool_use"))
    whole = read_bytes(data)
    for at in range(len(data)):
        decoder, frames = Decoder(), framer()
        events = [event for part in (data[:at], data[at:]) for one in frames.feed(part) for event in decoder.read(one)]
        assert events + decoder.finish() == whole.events


def test_what_an_event_has_held_is_not_changed_later() -> None:
    found = read(*EVERYTHING)
    opened = [event.block for event in found.events if isinstance(event, BlockStarted)]
    assert opened[5] == Compaction("", protocol="anthropic", extra={"anthropic": {"parts": [1], "note": None}})
    assert opened[3] == ServerTool(
        "anthropic", "call", EVERYTHING[15]["content_block"], name="web_search", id="srvtoolu_1"
    )


def test_what_our_own_writer_shows_later_is_held_back() -> None:
    decoder, held = Decoder(), []
    for each in framer().feed(sse(*EVERYTHING)):
        decoder.read(each)
        held.append(not decoder.builder.is_settled)
    expected = [2, 7, 11, 12, 13, 15, 16, 17, 19, 21, 22, 23, 25, 26, 30, len(EVERYTHING) - 2]
    assert [position for position, is_held in enumerate(held) if is_held] == expected


def test_pieces_are_handed_on_as_they_come() -> None:
    found = read(start(), *CALLED, *end_events("tool_use"))
    assert [event.text for event in found.events if isinstance(event, InputDelta)] == ['{"a"', ":1}"]
    assert found.problems == []
    assert found.reply.stop == "tool_calls"
    assert found.blocks == (ToolCall("toolu_1", "f", {"a": 1}),)


def test_usage_is_merged_as_the_sdks_do_it() -> None:
    found = read(start(), *CALLED, *end_events("tool_use"))
    usage = found.reply.usage
    assert usage is not None
    assert usage == Usage(15, 20, 5, extra={"anthropic": {"service_tier": "standard"}})


@pytest.mark.parametrize("usage", [{"output_tokens": "many"}, "many", None, {}])
def test_usage_that_is_none_changes_nothing(usage: Any) -> None:
    last = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}
    found = read(start(), last, {"type": "message_stop"})
    assert found.reply.usage == Usage(15, 1, 5, extra={"anthropic": {"service_tier": "standard"}})


def test_blocks_that_are_whole_in_their_start_are_read_as_in_a_reply() -> None:
    blocks: list[Fields] = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "tool_result", "tool_use_id": "x", "content": "r"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
        {"type": "unheard_of", "x": 1},
        {"type": "image"},
    ]
    streamed = [event for index, block in enumerate(blocks) for event in (begin(index, **block), stop(index))]
    found = read(start(), *streamed, *end_events())
    assert [type(block) for block in found.blocks] == [Media, ToolResult, Text, Opaque, Opaque]
    assert reply.encode(found.reply)["content"] == blocks
    assert found.problems == []


# --- what providers do ------------------------------------------------------------------------------


def test_H7_blocks_that_overlap_come_out_one_after_the_other() -> None:
    found = read(
        start(),
        begin(0, type="text", text=""),
        text_delta(0, "a"),
        begin(1, **CALL),
        input_delta(1, '{"a"'),
        text_delta(0, "b"),
        begin(2, type="thinking", thinking=""),
        delta(2, "thinking_delta", thinking="hm"),
        input_delta(1, ":1}"),
        stop(0),
        stop(1),
        stop(2),
        *end_events("tool_use"),
    )
    assert found.blocks == (Text("ab"), ToolCall("toolu_1", "f", {"a": 1}), Thinking("hm"))
    assert found.problems


def test_H7_a_call_that_is_whole_ends_where_the_next_block_begins() -> None:
    found = read(
        start(),
        *CALLED[:-1],
        begin(1, type="text", text=""),
        text_delta(1, "x"),
        input_delta(0, "\n"),
        *end_events("tool_use"),
    )
    assert found.blocks == (ToolCall("toolu_1", "f", {"a": 1}), Text("x"))
    later = read(
        start(),
        *CALLED[:-1],
        begin(1, type="text", text=""),
        input_delta(0, "{}"),
        stop(0),
        stop(1),
        *end_events("tool_use"),
    )
    assert later.blocks == (ToolCall("toolu_1", "f", {"a": 1}), Text(""))
    assert "something came for a call that was whole, and was left out" in later.problems


@pytest.mark.parametrize("reason", ["tool_use", "max_tokens", "end_turn", None])
@pytest.mark.parametrize("closes", [True, False])
def test_F1_J4_a_call_that_was_cut_is_never_whole(reason: str | None, closes: bool) -> None:
    text = '{"command": ["ls", {"a": "}"}], "b": "\\""}'
    for at in range(1, len(text)):
        tail = [stop(0)] if closes else []
        found = read(
            start(), begin(0, **CALL), input_delta(0, text[:at]), *tail, *(end_events(reason) if reason else [])
        )
        assert found.accumulator.calls == ()
        assert [event.cut for event in found.events if isinstance(event, BlockEnded)] == [True]
        last = found.events[-1]
        assert isinstance(last, Failed) or (isinstance(last, Finished) and last.stop == "length")


def test_F1_a_whole_call_in_an_answer_that_was_cut_is_whole() -> None:
    found = read(start(), *CALLED[:-1], *end_events("max_tokens"))
    assert found.accumulator.calls == (ToolCall("toolu_1", "f", {"a": 1}),)
    assert found.reply.stop == "length"


@pytest.mark.parametrize(
    ("blocks", "reason", "stopped", "is_reported"),
    [
        (CALLED, "end_turn", "tool_calls", True),
        (CALLED, "stop_sequence", "tool_calls", True),
        (CALLED, "tool_use", "tool_calls", False),
        (CALLED, "refusal", "filter", False),
        (CALLED, "max_tokens", "length", False),
        ([], "tool_use", "stop", True),
        ([], "end_turn", "stop", False),
        ([], "pause_turn", "pause", False),
        ([], "compaction", "pause", False),
        ([], "later", "stop", False),
    ],
)
def test_J1_J2_the_reason_is_derived_from_what_is_there(
    blocks: list[Fields], reason: str, stopped: str, is_reported: bool
) -> None:
    found = read(start(), *blocks, *end_events(reason))
    assert found.reply.stop == stopped
    assert bool(found.problems) == is_reported


def test_K_an_error_in_the_middle_is_the_end() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1"}
    found = read(start(), *CALLED, begin(1, type="text", text=""), text_delta(1, "x"), error, text_delta(1, "y"))
    failure = found.accumulator.failure
    assert failure is not None
    assert (failure.kind, failure.in_band, failure.request_id) == ("overloaded", True, "req_1")
    assert found.accumulator.cut == (Text("x"),)
    assert found.problems == []


@pytest.mark.parametrize(
    "data",
    [
        b'event: error\ndata: {"error": {"type": "rate_limit_error", "message": "slow down"}}\n\n',
        b'data: {"error": {"type": "rate_limit_error", "message": "slow down"}}\n\n',
        b'event: error\ndata: {"type": "rate_limit_error", "message": "slow down"}\n\n',
        b"event: error\ndata: rate limit exceeded: slow down\n\n",
    ],
)
def test_K_errors_in_other_shapes_are_errors(data: bytes) -> None:
    failure = read_bytes(sse(start()) + data).accumulator.failure
    assert failure is not None
    assert "slow down" in failure.message


def test_K1_a_second_message_is_not_added_to_the_first() -> None:
    found = read(start(), *CALLED, start(id="msg_2"), *CALLED, *end_events("tool_use"))
    assert isinstance(found.events[-1], Failed)
    assert len(found.blocks) == 1
    again = read(start(), start(), *CALLED, *end_events("tool_use"))
    assert again.reply.stop
    assert again.problems == ["the message began twice"]


def test_a_call_that_began_with_its_arguments_has_them() -> None:
    with_arguments = begin(0, **{**CALL, "input": {"a": 1}})
    for tail in ([stop(0)], []):
        found = read(start(), with_arguments, *tail, *end_events("tool_use"))
        assert found.accumulator.calls == (ToolCall("toolu_1", "f", {"a": 1}),)
        assert found.problems
    twice = read(start(), with_arguments, input_delta(0, '{"a":2}'), stop(0), *end_events("tool_use"))
    assert twice.blocks == (ToolCall("toolu_1", "f", {"a": 2}),)
    as_text = read(start(), begin(0, **{**CALL, "input": '{"a":1}'}), stop(0), *end_events("tool_use"))
    assert as_text.blocks == (ToolCall("toolu_1", "f", {"a": 1}),)


@pytest.mark.parametrize("key", ["partial_json", "input"])
def test_arguments_may_come_as_an_object(key: str) -> None:
    found = read(
        start(), begin(0, **CALL), delta(0, "input_json_delta", **{key: {"a": 1}}), stop(0), *end_events("tool_use")
    )
    assert found.blocks == (ToolCall("toolu_1", "f", {"a": 1}),)
    assert found.problems == ["arguments came as an object, not as text"]


def test_a_block_may_begin_with_its_text() -> None:
    found = read(
        start(),
        begin(0, type="thinking", thinking="a", signature="s"),
        stop(0),
        begin(1, type="text", text="He"),
        text_delta(1, "llo"),
        stop(1),
        *end_events(),
    )
    assert found.blocks == (Thinking("a", "s"), Text("Hello"))
    assert found.problems == ["a block began with its text"]


def test_blocks_in_the_start_of_the_message_are_read() -> None:
    found = read(
        start(content=[{"type": "text", "text": "x"}, {}]), begin(1, type="text", text=""), stop(1), *end_events()
    )
    assert found.blocks == (Text("x"), Text(""))
    assert "a message began with blocks in it" in found.problems


def test_words_for_a_block_that_is_not_open_are_kept() -> None:
    found = read(
        start(), text_delta(0, "a"), delta(0, "thinking_delta", thinking="b"), input_delta(0, "{}"), *end_events()
    )
    assert found.blocks == (Text("a"), Thinking("b"))
    after = read(
        start(), begin(0, type="text", text=""), text_delta(0, "a"), stop(0), text_delta(0, "b"), *end_events()
    )
    assert after.blocks == (Text("a"), Text("b"))
    mixed = read(
        start(),
        begin(0, **CALL),
        input_delta(0, '{"a"'),
        text_delta(0, "x"),
        input_delta(0, ":1}"),
        stop(0),
        *end_events("tool_use"),
    )
    assert mixed.blocks == (ToolCall("toolu_1", "f", {"a": 1}), Text("x"))
    assert found.problems
    assert after.problems
    assert mixed.problems


def test_arguments_after_the_end_of_a_call_are_left_out() -> None:
    found = read(start(), *CALLED, input_delta(0, '{"b":2}'), stop(0), *end_events("tool_use"))
    assert found.blocks == (ToolCall("toolu_1", "f", {"a": 1}),)
    assert len(found.problems) == 2


def without_index(event: Fields) -> Fields:
    return {key: value for key, value in event.items() if key != "index"}


def test_events_without_an_index_belong_to_the_last_block() -> None:
    events = [*CALLED, begin(1, type="text", text=""), text_delta(1, "x"), stop(1)]
    found = read(start(), *map(without_index, events), *end_events("tool_use"))
    assert found.blocks == (ToolCall("toolu_1", "f", {"a": 1}), Text("x"))
    nothing = read(start(), without_index(text_delta(0, "x")), without_index(stop(0)), *end_events())
    assert nothing.blocks == (Text("x"),)


@pytest.mark.parametrize("closes", [True, False])
def test_an_index_that_comes_twice_is_another_block(closes: bool) -> None:
    second = begin(0, **{**CALL, "id": "toolu_2"})
    first = CALLED if closes else CALLED[:-1]
    found = read(start(), *first, second, input_delta(0, '{"b":2}'), stop(0), *end_events("tool_use"))
    assert found.blocks == (ToolCall("toolu_1", "f", {"a": 1}), ToolCall("toolu_2", "f", {"b": 2}))
    assert found.problems


def test_a_start_that_comes_twice_is_one_block() -> None:
    found = read(start(), CALLED[0], *CALLED, *end_events("tool_use"))
    assert found.blocks == (ToolCall("toolu_1", "f", {"a": 1}),)
    assert "a block began twice" in found.problems


def test_indexes_with_gaps_are_reported() -> None:
    found = read(start(), begin(3, type="text", text=""), text_delta(3, "x"), stop(3), *end_events())
    assert found.blocks == (Text("x"),)
    assert found.problems == ["the indexes of blocks do not count up from 0"]


@pytest.mark.parametrize("gone", ["ping", "message_stop", "message_delta", "message_start", "content_block_stop"])
def test_events_that_are_missing(gone: str) -> None:
    found = read(*[event for event in EVERYTHING if event["type"] != gone])
    assert found.reply.stop
    assert found.reply.stop == "tool_calls"
    assert found.accumulator.calls == reply.decode(WHOLE).turn.calls
    assert bool(found.problems) == (gone != "ping")


def test_the_end_of_the_bytes_inside_a_block_is_a_failure() -> None:
    for cut in ([], [start()], [start(), begin(0, type="text", text=""), text_delta(0, "x")], [start(), *CALLED[:3]]):
        assert isinstance(read(*cut).events[-1], Failed)
    assert isinstance(read(start(), *CALLED).events[-1], Failed), "cut between two blocks"
    stopped = read(start(), begin(0, type="text", text=""), text_delta(0, "x"), {"type": "message_stop"})
    assert stopped.reply.stop == "stop"


def test_the_name_of_an_event_counts_where_its_data_has_no_type() -> None:
    nameless = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in EVERYTHING)
    assert read_bytes(nameless).reply == reply.decode(WHOLE)
    assert read_bytes(nameless).problems == ["an event has no name, or another one than its type"]
    untyped = b"".join(
        b"event: %b\ndata: %b\n\n"
        % (event["type"].encode(), json.dumps({key: event[key] for key in event if key != "type"}).encode())
        for event in EVERYTHING
    )
    assert read_bytes(untyped).reply == reply.decode(WHOLE)
    assert read_bytes(untyped).problems == ["an event does not say its type in its data"]


@pytest.mark.parametrize(
    "odd",
    [
        b"data: [DONE]\n\n",
        b"event: later\ndata: {}\n\n",
        b"data: {}\n\n",
        sse({"type": "later"}),
        sse({"type": "message_start"}),
        sse({"type": "message_delta"}),
        sse({"type": "content_block_delta", "index": 0}),
        sse({"type": "content_block_start", "index": 1, "content_block": {"type": 5}}),
        sse(delta(0, "text_delta")),
        sse(delta(0, "input_json_delta")),
        sse(delta(0, "signature_delta", signature="s")),
        sse(delta(0, "citations_delta")),
        sse(delta(0, "later_delta", text="x")),
        b"event: content_block_delta\ndata: " + b"[" * 1000 + b"\n\n",
    ],
)
def test_what_makes_no_sense_is_left_out_and_reported(odd: bytes) -> None:
    found = read_bytes(
        sse(start(), begin(0, type="text", text=""), text_delta(0, "a"))
        + odd
        + sse(text_delta(0, "b"), stop(0), *end_events())
    )
    assert found.blocks == (Text("ab"),)
    assert found.problems


@pytest.mark.parametrize("payload", [b"{", b'{"delta":' * 2000 + b"1" + b"}" * 2000])
def test_a_corrupt_event_ends_the_stream(payload: bytes) -> None:
    odd = b"event: content_block_delta\ndata: " + payload + b"\n\n"
    found = read_bytes(
        sse(start(), begin(0, type="text", text=""), text_delta(0, "a"))
        + odd
        + sse(text_delta(0, "b"), stop(0), *end_events())
    )
    assert found.accumulator.failure is not None
    assert "corrupt" in found.accumulator.failure.message
    assert found.blocks == (Text("a"),)


def test_half_a_surrogate_pair_does_not_stop_a_stream() -> None:
    half = sse(text_delta(0, "\ud83d"))
    assert b"\\ud83d" in half
    found = read_bytes(
        sse(start(), begin(0, type="text", text="")) + half + sse(text_delta(0, "b"), stop(0), *end_events())
    )
    assert found.blocks == (Text("\ufffdb"),)


def test_starts_that_lack_a_field_are_completed() -> None:
    found = read(
        start(),
        begin(0, type="text"),
        stop(0),
        begin(1, type="thinking", thinking=None),
        delta(1, "signature_delta", signature=5),
        stop(1),
        begin(2, type="tool_use", id=None, name="f"),
        stop(2),
        begin(3, type="thinking", signature=5),
        stop(3),
        *end_events("tool_use"),
    )
    assert found.blocks[:3] == (Text(""), Thinking(""), ToolCall("", "f", {}))
    assert isinstance(found.blocks[3], Opaque)
    assert len(found.problems) == 3


def test_arguments_of_a_server_tool_that_cannot_be_read_are_left_out() -> None:
    tool = begin(0, type="server_tool_use", id="s", name="n", input={})
    found = read(start(), tool, input_delta(0, '{"a"'), stop(0), *end_events())
    assert found.blocks[0].value["input"] == {}
    assert found.problems == ["the arguments of a server tool could not be read"]


def test_late_fields_that_are_null_do_not_replace_earlier_values() -> None:
    found = read(start(container={"id": "c"}), *end_events(container=None, stop_details=None))
    assert reply.encode(found.reply)["container"] == {"id": "c"}
    assert reply.encode(found.reply)["stop_details"] is None


def test_nothing_follows_the_end() -> None:
    found = read_bytes(
        sse(
            start(),
            begin(0, type="text", text=""),
            text_delta(0, "x"),
            stop(0),
            *end_events(),
            text_delta(0, "y"),
            start(),
        )
    )
    assert found.blocks == (Text("x"),)
    assert found.problems == []


def test_a_keep_alive_adds_nothing() -> None:
    assert read_bytes(b": hello\n\n" + sse(start(), *end_events())).problems == []


def test_a_stream_is_bounded() -> None:
    limits = Limits(max_bytes=1000)
    with pytest.raises(LimitError):
        read_bytes(sse(start(), begin(0, type="text", text=""), *[text_delta(0, "x" * 100)] * 20), limits=limits)
    with pytest.raises(LimitError):
        read_bytes(sse(start(), *[{"type": "ping"}] * 200), limits=limits)
    with pytest.raises(LimitError, match="open at once"):
        read(start(), *[begin(index, type="text", text="") for index in range(1001)])


def test_counts_under_ever_new_names_are_bounded() -> None:
    """Each event holds all of them, so that without a bound the work would grow with their square."""
    counts = [{"type": "message_delta", "delta": {}, "usage": {f"k{i}": i, "output_tokens": i}} for i in range(500)]
    found = read(start(), *counts, *end_events())
    assert found.problems == ["the usage has more than 100 counts; the others were left out"]
    assert found.reply.usage is not None
    assert found.reply.usage.output_tokens == 20
    assert len(repr([event for event in found.events if isinstance(event, Used)])) < 500 * 100 * 20


@pytest.mark.parametrize("text", ['{"a": 1}', ' \n{"a": 1}', "[1]", "", " "])
def test_a_call_that_our_writer_does_not_show_yet_is_held_back(text: str) -> None:
    """Otherwise, a writer that takes over in the middle of a call would begin it a second time."""
    decoder, encoder, shown = Decoder(), Encoder(), b""
    for event in (start(), begin(0, **CALL), *[input_delta(0, letter) for letter in text], stop(0)):
        for each in framer().feed(sse(event)):
            shown += encoder.write(decoder.read(each))
            if event["type"] != "message_start":
                assert decoder.builder.is_settled == (b"content_block_start" in shown)


# --- laws -------------------------------------------------------------------------------------------


@pytest.mark.law
@given(st.lists(events | json_values.map(lambda value: {"type": "content_block_delta", "index": 0, "delta": value})))
def test_whatever_comes_the_events_are_legal(found: list[Fields]) -> None:
    decoder = Decoder()
    read_events: list[Event] = []
    for event in found:
        read_events += decoder.read(frame(event))
    check(read_events + decoder.finish())


@pytest.mark.law
@given(st.lists(st.tuples(st.binary(), kinds)), st.binary())
def test_whatever_bytes_come_nothing_is_raised(frames: list[tuple[bytes, str]], data: bytes) -> None:
    decoder = Decoder()
    read_events: list[Event] = []
    for content, name in frames:
        read_events += decoder.read(Frame(content, name))
    check(read_events + decoder.finish())
    read_bytes(data)


@pytest.mark.law
@given(st.lists(texts), st.lists(texts))
def test_no_word_is_lost(words: list[str], thought: list[str]) -> None:
    found = read(
        start(),
        begin(0, type="thinking", thinking=""),
        *[delta(0, "thinking_delta", thinking=piece) for piece in thought],
        stop(0),
        begin(1, type="text", text=""),
        *[text_delta(1, piece) for piece in words],
        stop(1),
        *end_events(),
    )
    assert found.blocks == (Thinking("".join(thought)), Text("".join(words)))
    assert [event.text for event in found.events if isinstance(event, TextDelta)] == [one for one in words if one]
    assert found.problems == []
